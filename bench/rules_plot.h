// What bench_rules measures, and its plot.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/numbers.h"
#include "lab/svg_plot.h"

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
  RulesPlot() {
    chart_.title = "Tokens a step, by acceptance rule";
    chart_.label = "tokens a step (bars begin at 1: plain decoding)";
    chart_.origin = 1.0;
  }

  void add(const Setting& s, const Counts& c) {
    const std::string group =
        s.draft + ", T " + fixed(s.temperature, 1) + ", top-p " + fixed(s.top_p, 2);
    if (group_ != group) {
      group_ = group;
      chart_.rows.push_back({.label = group, .heading = true});
    }
    chart_.rows.push_back({.label = s.rule + (s.tree ? ", tree" : ", chain"),
                           .parts = {share(c.emitted, c.steps)},
                           .colour = s.tree ? 2 : 0});
  }

  // False when the file cannot be written.
  bool write(const std::string& path) const {
    std::ofstream file(path);
    file << lab::svg_of(chart_);
    return static_cast<bool>(file.flush());
  }

 private:
  std::string group_;
  lab::BarChart chart_;
};

}  // namespace outrider
