// Prometheus' text form, version 0.0.4: what /metrics says.
//
//   # HELP name help
//   # TYPE name counter
//   name{label="value"} 3
//
// Tested by exposition_test.cc, and with Prometheus' own parser by tests/clients/test_metrics.py.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace outrider::http {

// How long things took: counts of those up to each bound, and their sum. One set of bounds for all,
// half a millisecond to ten minutes, three a decade.
class Histogram {
 public:
  static constexpr std::array<double, 19> kBounds = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                                     0.1,    0.2,   0.5,   1.0,   2.0,  5.0,  10.0,
                                                     20.0,   50.0,  100.,  200.,  600.};

  // `times` that took so many seconds each.
  void add(double seconds, std::int64_t times = 1);

  std::int64_t count() const;
  double sum() const { return sum_; }
  // [kBounds + 1]: above the bound before and up to this one; the last: above all.
  const std::array<std::int64_t, kBounds.size() + 1>& counts() const { return counts_; }

 private:
  std::array<std::int64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0.0;
};

class Exposition {
 public:
  using Label = std::pair<std::string_view, std::string_view>;  // a value may be any text
  using Labels = std::initializer_list<Label>;

  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  // A family begins; its samples follow. `type`: "counter", "gauge", "histogram".
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(Labels labels, double value);
  void sample(Labels labels, const Histogram& histogram);

  const std::string& text() const { return text_; }

 private:
  void line(std::string_view suffix, Labels labels, const Label* more, double value);

  std::string name_;  // of the family
  std::string text_;
};

}  // namespace outrider::http
