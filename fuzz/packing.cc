// Any bytes as weights, any numbers as activations: every instruction set gives the reference's
// bits, and none reads or writes outside of what it was given.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/targets.h"
#include "kernels/instruction_set.h"
#include "kernels/packed.h"
#include "testing/kernel_reference.h"

namespace outrider::fuzz {
namespace {

using namespace kernels;  // NOLINT: what this target is about

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
// Of exactly so many bytes, a multiple of 64: the sanitizer sees what lies behind it.
using Aligned = std::unique_ptr<std::uint8_t, Free>;
Aligned aligned(std::size_t bytes) {
  return Aligned(static_cast<std::uint8_t*>(std::aligned_alloc(64, bytes)));
}

// `n` bytes of the input, again from its beginning where it ends.
std::vector<std::uint8_t> repeated(Bytes input, std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  for (std::size_t i = 0; i < n && !input.empty(); ++i) bytes[i] = input[i % input.size()];
  return bytes;
}

// Small numbers: where a product overflows, its bits are not guaranteed.
std::vector<float> activations(Bytes input, std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n && !input.empty(); ++i) {
    const int value = input[(i * 7 + 3) % input.size()];
    x[i] = std::ldexp(static_cast<float>(value - 128), value % 9 - 4);
  }
  return x;
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

void check(const InstructionSet& set, WeightType type, std::int64_t n_rows, std::int64_t n_columns,
           const std::vector<std::uint8_t>& rows, const std::vector<float>& x,
           const std::vector<float>& expected) {
  const PackedLayout layout(type, n_rows, n_columns, set.strip_rows);
  const Aligned packed = aligned(layout.bytes());
  pack_strips(layout, rows.data(), 0, layout.n_strips, set.flip, packed.get());
  std::vector<ActivationGroup> groups(static_cast<std::size_t>(n_columns / 32));
  const bool is_float = weight_format(type).values == Values::kFloat;
  if (!is_float) {
    set.quantise(x.data(), static_cast<std::int64_t>(groups.size()), set.offset_rule(type),
                 groups.data());
  }
  std::vector<float> out(static_cast<std::size_t>(set.strip_rows));
  for (std::int64_t strip = 0; strip < layout.n_strips; ++strip) {
    set.multiply[static_cast<std::size_t>(type)](
        packed.get() + static_cast<std::size_t>(strip) * layout.strip_bytes, n_columns,
        is_float ? static_cast<const void*>(x.data()) : groups.data(), 0, 1, out.data());
    for (int r = 0; r < set.strip_rows && strip * set.strip_rows + r < n_rows; ++r) {
      const std::size_t row = static_cast<std::size_t>(strip * set.strip_rows + r);
      if (!same(out[static_cast<std::size_t>(r)], expected[row])) {
        violated(std::string(set.name) + ", " + std::string(weight_format(type).name) + ", row " +
                 std::to_string(row) + ": " + std::to_string(out[static_cast<std::size_t>(r)]) +
                 " instead of " + std::to_string(expected[row]));
      }
    }
  }
}

}  // namespace

void packing(Bytes input) {
  Reader reader(input);
  const auto type = static_cast<WeightType>(reader.below(kWeightTypes));
  const std::int64_t n_rows = 1 + static_cast<std::int64_t>(reader.below(70));
  const std::int64_t block = std::max(weight_format(type).block_weights, 32);
  const std::int64_t n_columns =
      block * (1 + static_cast<std::int64_t>(reader.below(block == 256 ? 3 : 20)));
  const PackedLayout layout(type, n_rows, n_columns, 8);
  const std::vector<std::uint8_t> rows =
      repeated(reader.rest(), static_cast<std::size_t>(n_rows) * layout.row_bytes);
  const std::vector<float> x = activations(reader.rest(), static_cast<std::size_t>(n_columns));
  const testing::ReferenceActivations quantised = testing::reference_activations(x);
  std::vector<float> expected;
  for (std::int64_t r = 0; r < n_rows; ++r) {
    const testing::ReferenceRow row = testing::reference_row(
        type, rows.data() + static_cast<std::size_t>(r) * layout.row_bytes, n_columns);
    expected.push_back(testing::reference_product(row, x, quantised));
  }
  for (const InstructionSet* set : instruction_sets()) {
    check(*set, type, n_rows, n_columns, rows, x, expected);
  }
}

}  // namespace outrider::fuzz
