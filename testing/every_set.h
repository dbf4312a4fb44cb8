// Names of tests that run with each instruction set.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/instruction_set.h"

namespace outrider::testing {

inline std::string set_name(const ::testing::TestParamInfo<const kernels::InstructionSet*>& test) {
  std::string name(test.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace outrider::testing
