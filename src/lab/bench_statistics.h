// The statistics of repeated, paired measurements.
//
// Idea. Plain and speculative decoding are measured in turn, so what the machine does otherwise
// hits both; what counts is their ratio, repetition by repetition. Ratios are compared as
// logarithms (twice as fast and half as fast are equally far from 1): the mean of the logarithms is
// the geometric mean, and Student's t over the repetitions gives its interval.
//
// Example. Ratios 1.2, 1.3, 1.25: mean 1.249, and with 95 % confidence 1.13 to 1.38 (t = 4.30 with
// 2 degrees of freedom). Tested by bench_statistics_test.cc.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace outrider::lab {

// Nothing for no values. REQUIRES: all above 0
std::optional<double> geometric_mean(std::span<const double> values);

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

// Of the geometric mean of `ratios`, with 95 % confidence. Nothing for fewer than two.
// REQUIRES: all above 0
std::optional<Interval> ratio_interval(std::span<const double> ratios);

// The `share`-th quantile (0.5: the median), between two values in proportion (the seventh of
// Hyndman and Fan's definitions, 1996): of 10 and 100 the quartiles are 32.5 and 77.5. REQUIRES:
// `values` not empty, share in [0, 1]
double interpolated_quantile(std::vector<double> values, double share);

// Student's t that lies above 97.5 % of the distribution. To 0.001. REQUIRES: degrees >= 1
double student_t(int degrees);

}  // namespace outrider::lab
