// What bench_rules measures, and its plot.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace outrider {

struct Setting {
  std::string draft;
  float temperature;
  float top_p;
  std::string rule;
  bool tree;
};

struct Counts {
  std::int64_t drafts = 0;
  std::int64_t first = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t emitted = 0;
  std::int64_t steps = 0;
};

inline double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

// Horizontal bars of tokens a step, one group for each draft, temperature and filter.
class RulesPlot {
 public:
  void add(const Setting& s, const Counts& c) {
    char group[64];
    std::snprintf(group, sizeof group, "%s, T %.1f, top-p %.2f", s.draft.c_str(),
                  static_cast<double>(s.temperature), static_cast<double>(s.top_p));
    if (group_ != group) {
      group_ = group;
      y_ += 14;
      text(10, group_, "bold");
    }
    const double tokens = share(c.emitted, c.steps);
    const double width = (tokens - 1.0) * 120.0;
    char bar[256];
    std::snprintf(bar, sizeof bar,
                  "<rect x=\"150\" y=\"%d\" width=\"%.1f\" height=\"11\" fill=\"%s\"/>\n", y_ - 10,
                  width, s.tree ? "#2a9d8f" : "#457b9d");
    body_ << bar;
    std::snprintf(bar, sizeof bar, "<text x=\"%.1f\" y=\"%d\">%.2f</text>\n", 156.0 + width, y_,
                  tokens);
    body_ << bar;
    text(20, s.rule + (s.tree ? ", tree" : ", chain"), "normal");
  }

  // False when the file cannot be written.
  bool write(const std::string& path) const {
    std::ofstream file(path);
    file << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 660 " << y_ + 10
         << "\" font-family=\"sans-serif\" font-size=\"11\">\n"
         << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
         << "<text x=\"10\" y=\"16\" font-size=\"13\">Tokens a step (bars begin at 1: plain "
            "decoding)</text>\n"
         << body_.str() << "</svg>\n";
    return static_cast<bool>(file.flush());
  }

 private:
  void text(int x, const std::string& what, const char* weight) {
    body_ << "<text x=\"" << x << "\" y=\"" << y_ << "\" font-weight=\"" << weight << "\">" << what
          << "</text>\n";
    y_ += 15;
  }

  std::string group_;
  std::ostringstream body_;
  int y_ = 26;
};

}  // namespace outrider
