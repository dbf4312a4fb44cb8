#include "lab/svg_canvas.h"

#include "base/numbers.h"
#include "lab/markup.h"

namespace outrider::lab {
namespace {

constexpr int kColours = 5;
constexpr double kLetter = 6.1;  // a character's width at 11 pixels, about
constexpr double kLegendGap = 16.0;
constexpr double kLegendLine = 17.0;

// Each drawing carries it, so that it is whole by itself; inside a page the repetition is harmless.
// The hues are Okabe and Ito's, which people with any colour vision tell apart, darker on light and
// lighter on dark.
constexpr const char* kStyle =
    "<style>"
    ".plot{--ink:#1f2328;--muted:#59636e;--grid:#d8dde3;--paper:#ffffff;--c0:#0b62a8;--c1:#c4500a;"
    "--c2:#0a7d5a;--c3:#8a4a9e;--c4:#8b949e;background:var(--paper);"
    "font:11px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "@media (prefers-color-scheme:dark){.plot{--ink:#e6edf3;--muted:#9da7b1;--grid:#343b44;"
    "--paper:#12161c;--c0:#5eb1f2;--c1:#f29455;--c2:#4cc38f;--c3:#cf93e0;--c4:#7d8590}}"
    ".plot text{fill:var(--ink)}.plot .muted{fill:var(--muted)}"
    ".plot .strong{font-weight:600;font-size:14px}"
    ".plot .grid{stroke:var(--grid);stroke-width:1}.plot .axis{stroke:var(--muted);stroke-width:1}"
    ".plot .reference{stroke-width:1.4;stroke-dasharray:5 4}.plot .whisker{stroke-width:1.4}"
    ".plot .path{fill:none;stroke-width:2;stroke-linejoin:round}"
    "</style>\n";

std::string ink(int colour) { return "var(--c" + std::to_string(colour % kColours) + ")"; }

std::string quoted(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + escape_markup(value) + "\"";
}

std::string tooltip(std::string_view says) {
  return says.empty() ? "" : "<title>" + escape_markup(says) + "</title>";
}

}  // namespace

std::string at(double value) { return fixed(value, 1); }

double SvgCanvas::width_of(std::string_view text) {
  std::size_t characters = 0;
  for (const char c : text) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return kLetter * static_cast<double>(characters);
}

void SvgCanvas::text(double x, double y, Anchor anchor, std::string_view what,
                     std::string_view style) {
  body_ += "<text" + quoted("x", at(x)) + quoted("y", at(y));
  if (anchor != Anchor::kStart) {
    body_ += quoted("text-anchor", anchor == Anchor::kMiddle ? "middle" : "end");
  }
  if (!style.empty()) body_ += quoted("class", style);
  body_ += ">" + escape_markup(what) + "</text>\n";
}

void SvgCanvas::upright_text(double x, double y, std::string_view what) {
  body_ += "<text class=\"muted\" text-anchor=\"middle\" transform=\"translate(" + at(x) + "," +
           at(y) + ") rotate(-90)\">" + escape_markup(what) + "</text>\n";
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, std::string_view style,
                     int colour) {
  body_ += "<line" + quoted("class", style) + quoted("x1", at(x1)) + quoted("y1", at(y1)) +
           quoted("x2", at(x2)) + quoted("y2", at(y2));
  if (colour >= 0) body_ += quoted("style", "stroke:" + ink(colour));
  body_ += "/>\n";
}

void SvgCanvas::path(const std::string& points, int colour) {
  body_ += "<polyline class=\"path\"" + quoted("points", points) +
           quoted("style", "stroke:" + ink(colour)) + "/>\n";
}

void SvgCanvas::dot(double x, double y, int colour, std::string_view says) {
  body_ += "<circle" + quoted("cx", at(x)) + quoted("cy", at(y)) + " r=\"3.5\"" +
           quoted("style", "fill:" + ink(colour)) + ">" + tooltip(says) + "</circle>\n";
}

void SvgCanvas::bar(double x, double y, double width, double height, int colour,
                    std::string_view says, bool faint) {
  body_ += "<rect" + quoted("x", at(x)) + quoted("y", at(y)) + quoted("width", at(width)) +
           quoted("height", at(height)) +
           quoted("style", "fill:" + ink(colour) + (faint ? ";opacity:0.35" : "")) + ">" +
           tooltip(says) + "</rect>\n";
}

double SvgCanvas::legend(double x, double y, double right,
                         const std::vector<LegendEntry>& entries) {
  const double start = x;
  for (const LegendEntry& entry : entries) {
    const double needed = 18.0 + width_of(entry.name);
    if (x > start && x + needed > right) {
      x = start;
      y += kLegendLine;
    }
    if (entry.dashed) {
      line(x, y - 4, x + 14, y - 4, "reference", entry.colour);
    } else {
      bar(x + 1, y - 9, 11, 10, entry.colour, "", entry.faint);
    }
    text(x + 18, y, Anchor::kStart, entry.name);
    x += needed + kLegendGap;
  }
  return y;
}

std::string SvgCanvas::finish(std::string_view title, double width, double height) const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\"" +
         quoted("viewBox", "0 0 " + at(width) + " " + at(height)) + quoted("width", at(width)) +
         quoted("height", at(height)) + quoted("aria-label", title) + ">\n" + kStyle +
         "<rect width=\"100%\" height=\"100%\" style=\"fill:var(--paper)\"/>\n" + body_ +
         "</svg>\n";
}

}  // namespace outrider::lab
