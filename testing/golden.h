// Golden files: texts that were reviewed once, and that a test compares its output with.
//
// They are in tests/golden. With OUTRIDER_UPDATE_GOLDEN=1 in the environment the files are written
// instead of compared; what git shows as changed is then to be looked at.
#pragma once

#include <string>

namespace outrider::testing {

// A GoogleTest failure, with both texts, unless `actual` is what the file `name` (a path below
// tests/golden) holds.
void expect_golden(const std::string& name, const std::string& actual);

}  // namespace outrider::testing
