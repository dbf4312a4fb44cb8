#include "lab/svg_plot.h"

#include <gtest/gtest.h>

#include "base/numbers.h"
#include "lab/markup.h"

namespace outrider::lab {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(Markup, WhatCouldEndATextOrAnAttributeIsSpelledOut) {
  EXPECT_EQ(escape_markup("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(escape_markup("&lt;"), "&amp;lt;");
  EXPECT_EQ(escape_markup("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(escape_markup("a\x01"
                          "b\n\xFF"),
            "a\xEF\xBF\xBD"
            "b\n\xEF\xBF\xBD");
}

TEST(Markup, NumbersAreShort) {
  EXPECT_EQ(fixed(1.005, 1), "1.0");
  EXPECT_EQ(fixed(-0.0001, 2), "0.00");
  EXPECT_EQ(fixed(1.0 / 0.0, 2), "-");
  EXPECT_EQ(shortly(0.25), "0.25");
  EXPECT_EQ(shortly(150.0), "150");
  EXPECT_EQ(shortly(123456.0), "123456");
}

TEST(RoundTicks, AreRoundAndReachBothEnds) {
  EXPECT_EQ(round_ticks(0.0, 97.0, 6), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(round_ticks(0.0, 3.0, 6).size(), 7U);
  for (const double most : {0.003, 0.7, 1.0, 8.0, 12.4, 99.9, 12345.0}) {
    for (const double least : {0.0, 0.4 * most, -most}) {
      const std::vector<double> ticks = round_ticks(least, most, 6);
      EXPECT_LE(ticks.front(), least + 1e-9 * most);
      EXPECT_GE(ticks.back(), most * (1.0 - 1e-9));
      EXPECT_GE(ticks.size(), 3U) << least << " " << most;
      EXPECT_LE(ticks.size(), 9U) << least << " " << most;
    }
  }
}

XyPlot plot() {
  return {.title = "T <b> & more",
          .x = {.label = "tokens"},
          .y = {.label = "ms"},
          .right = {},
          .series = {{.name = "mea\"sured",
                      .points = {{.x = 1, .y = 5, .low = 4, .high = 6}, {.x = 4, .y = 9}}},
                     {.name = "limit",
                      .look = SeriesLook::kReference,
                      .points = {{.x = 1, .y = 5}, {.x = 4, .y = 500}}}}};
}

TEST(SvgPlot, IsWholeEscapedAndHasWhatAReaderNeeds) {
  const std::string svg = svg_of(plot());
  EXPECT_EQ(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\"", 0), 0U);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  for (const char* text : {"T &lt;b&gt; &amp; more", ">tokens<", ">ms<", ">mea&quot;sured<",
                           ">limit<", "prefers-color-scheme:dark"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(count(svg, "<circle"), 2U);
  EXPECT_EQ(count(svg, "class=\"whisker\""), 3U) << "of the one point with a spread";
  for (const char* tag : {"svg", "text", "title", "style"}) {
    const std::string name = tag;
    EXPECT_EQ(count(svg, "<" + name + ">") + count(svg, "<" + name + " "),
              count(svg, "</" + name + ">"))
        << name;
  }
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

// The reference leaves the plot's height: it is cut off inside, not drawn over the title.
TEST(SvgPlot, AReferenceIsCutOffAtTheEdge) {
  const std::string svg = svg_of(plot());
  std::size_t found = 0;
  for (std::size_t at = svg.find("class=\"reference\""); at != std::string::npos;
       at = svg.find("class=\"reference\"", at + 1)) {
    const std::size_t y2 = svg.find("y2=\"", at) + 4;
    EXPECT_GE(std::stod(svg.substr(y2)), 30.0);
    ++found;
  }
  EXPECT_EQ(found, 2U) << "the line and its place in the legend";
}

TEST(SvgPlot, NothingAndOnePointCanBeDrawn) {
  XyPlot empty;
  EXPECT_EQ(svg_of(empty).find("nan"), std::string::npos);
  XyPlot one;
  one.series.push_back({.name = "", .points = {{.x = 1, .y = 0}}});
  EXPECT_EQ(svg_of(one).find("nan"), std::string::npos);
  EXPECT_EQ(count(svg_of(one), "<circle"), 1U);
}

TEST(SvgBars, AWhiskerThatIsFarTooLongDoesNotSquashTheBars) {
  BarChart chart{.title = "", .label = "", .parts = {}, .rows = {}, .origin = 1.0};
  chart.rows.push_back({.label = "sure", .parts = {1.5}, .low = 1.4, .high = 1.6});
  const std::string alone = svg_of(chart);
  chart.rows.push_back({.label = "unsure", .parts = {1.2}, .low = 0.5, .high = 900.0});
  const std::string both = svg_of(chart);
  const std::string last_tick = ">2.5<";
  EXPECT_EQ(alone.find(last_tick), std::string::npos);
  EXPECT_NE(both.find(last_tick), std::string::npos) << both;
  EXPECT_EQ(both.find(">1000<"), std::string::npos);
  EXPECT_EQ(count(both, "class=\"axis\"") - count(alone, "class=\"axis\""), 2U)
      << "its line and one end";
}

TEST(SvgBars, EachPartHasItsBarAndLongNamesAreShortened) {
  BarChart chart{.title = "time", .label = "ms", .parts = {"draft", "verify"}, .rows = {}};
  chart.rows.push_back({.label = std::string(200, 'x'), .parts = {1.0, 2.0}});
  chart.rows.push_back({.label = "a heading", .heading = true});
  chart.rows.push_back({.label = "<other>", .parts = {2.0, 0.5}});
  const std::string svg = svg_of(chart);
  EXPECT_EQ(count(svg, "<rect"), 1U + 2U + 4U) << "background, legend, parts";
  EXPECT_NE(svg.find("\xE2\x80\xA6<"), std::string::npos);
  EXPECT_NE(svg.find(">3.00<"), std::string::npos) << "the sum stands behind the bar";
  EXPECT_NE(svg.find("&lt;other&gt;: verify 0.50"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg_of(BarChart{}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace outrider::lab
