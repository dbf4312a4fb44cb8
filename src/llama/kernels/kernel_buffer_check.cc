// The test that own kernels pass before they are used: the processor, the compiler and ggml as they
// are here, not as they were where the tests ran. This part needs no ggml.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/packed.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/kernel_check.h"
#include "llama/kernels/kernel_products.h"

namespace outrider::llama {
namespace {

using kernels::InstructionSet;
using kernels::PackedLayout;
using kernels::WeightType;

class Dense : public OutputRows {
 public:
  Dense(float* out, std::int64_t n_rows) : out_(out), n_rows_(n_rows) {}
  float* row(std::int64_t i) const override { return out_ + i * n_rows_; }

 private:
  float* out_;
  std::int64_t n_rows_;
};

// Of one row over cells of some half-precision numbers.
std::vector<float> attention(const InstructionSet& set) {
  constexpr int kSize = 80;
  constexpr int kCells = 75;
  const std::vector<float> query = some_activations(kSize);
  const std::vector<std::uint8_t> cells = some_weights(WeightType::kF16, kSize * kCells, 7);
  std::vector<float> out(kSize);
  const kernels::QueryRow row{.query = query.data(), .end = kCells, .out = out.data()};
  const kernels::CacheHeads head{.type = WeightType::kF16,
                                 .bytes = cells.data(),
                                 .stride = kSize * sizeof(std::uint16_t),
                                 .size = kSize};
  std::vector<float> scratch(kernels::attention_scratch(1, kSize, kSize, kCells));
  set.attend({.keys = head, .values = head, .scale = 0.1F, .rows = &row, .n_rows = 1},
             scratch.data());
  return out;
}

}  // namespace

std::vector<std::uint8_t> some_weights(WeightType type, std::int64_t n_weights,
                                       std::uint64_t which) {
  const kernels::WeightFormat& format = kernels::weight_format(type);
  const auto block_bytes = static_cast<std::size_t>(format.block_bytes);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n_weights / format.block_weights) *
                                  block_bytes);
  std::uint64_t state = (which << 40) + (static_cast<std::uint64_t>(type) << 32);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(mix64(state++));
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
    kernels::make_finite(type, bytes.data() + at);
  }
  return bytes;
}

std::vector<float> some_activations(std::int64_t n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::uint64_t state = 99;
  for (float& value : x) value = static_cast<float>(mix64(state++) % 2001) / 1000.0F - 1.0F;
  return x;
}

std::vector<float> product(const InstructionSet& set, WeightType type, std::int64_t n_rows,
                           std::int64_t n_columns, const std::vector<std::uint8_t>& bytes,
                           const std::vector<float>& x) {
  const PackedLayout layout(type, n_rows, n_columns, set.strip_rows);
  std::vector<std::uint8_t> memory(layout.bytes() + 64);
  void* aligned = memory.data();
  std::size_t space = memory.size();
  auto* packed = static_cast<std::uint8_t*>(std::align(64, layout.bytes(), aligned, space));
  pack_strips(layout, bytes.data(), 0, layout.n_strips, set.flip, packed);
  const ActivationRows rows(set, type, n_columns);
  const std::int64_t n = static_cast<std::int64_t>(x.size()) / n_columns;
  std::vector<std::uint8_t> activations(rows.row_bytes() * static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    rows.write(x.data() + i * n_columns,
               activations.data() + static_cast<std::size_t>(i) * rows.row_bytes());
  }
  std::vector<float> out(static_cast<std::size_t>(n * n_rows));
  const StripProduct strips(set, layout, n, 1);
  for (std::int64_t piece = 0; piece < strips.n_pieces(); ++piece) {
    strips.multiply(piece, packed, activations.data(), rows.row_bytes(), n,
                    Dense(out.data(), n_rows));
  }
  return out;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string test_kernel_buffer(const InstructionSet& set) {
  constexpr std::int64_t kRows = 37;  // the last strip is not full
  constexpr std::int64_t kColumns = 512;
  constexpr std::int64_t kTokens = 5;
  const InstructionSet& plain = *kernels::instruction_sets().back();
  if (!same(attention(plain), attention(set))) {
    return "attention with " + std::string(set.name) +
           " instructions is not that of plain code on this machine";
  }
  const std::vector<float> x = some_activations(kTokens * kColumns);
  for (int i = 0; i < kernels::kWeightTypes; ++i) {
    const auto type = static_cast<WeightType>(i);
    const std::vector<std::uint8_t> bytes = some_weights(type, kRows * kColumns, 0);
    if (!same(product(plain, type, kRows, kColumns, bytes, x),
              product(set, type, kRows, kColumns, bytes, x))) {
      return "the products of " + std::string(kernels::weight_format(type).name) +
             " weights with " + std::string(set.name) +
             " instructions are not those of plain code on this machine";
    }
  }
  return test_through_ggml(plain);
}

}  // namespace outrider::llama
