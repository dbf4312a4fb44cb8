// Goodness of fit for the statistical tests.
#pragma once

#include <cstdint>
#include <vector>

namespace outrider::testing {

// The chance of a chi-square statistic at least as large as the one of `counts` against
// `probabilities` (same length, summing to 1), when they fit. Cells with probability 0 must be
// empty (else 0 is returned) and do not count; cells with fewer than 5 expected draws are joined.
double chi_square_p(const std::vector<std::int64_t>& counts,
                    const std::vector<double>& probabilities);

// The same for independence of a table's rows and columns, [rows][columns].
double chi_square_independence_p(const std::vector<std::vector<std::int64_t>>& table);

// What p must be above in a test of draws from test_seed(): 0.001 with the tests' own seeds, which
// pass or fail each time alike; 10^-6 where OUTRIDER_TEST_SEED gives others. A soak does, in each
// round, and right draws would fail one round in 28 at 0.001: 36 such comparisons are made. A
// million draws whose chances are off by a hundredth stay below it.
double least_p();

// The seed of randomised tests: OUTRIDER_TEST_SEED from the environment, else `fallback`. Prints
// it.
std::uint64_t test_seed(std::uint64_t fallback);

}  // namespace outrider::testing
