// Queries of attention and which cells they see, chosen by a test.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace outrider::testing {

inline constexpr std::uint16_t kMasked = 0xFC00;
inline constexpr std::uint16_t kOne = 0x3C00;  // 1 as an IEEE half

// A third of the cells is masked, some of the others have a score added.
struct Queries {
  Queries(int n, int key_size, int n_cells, std::mt19937_64* random)
      : query(static_cast<std::size_t>(n)), mask(static_cast<std::size_t>(n)) {
    std::normal_distribution<float> normal;
    for (int r = 0; r < n; ++r) {
      auto& q = query[static_cast<std::size_t>(r)];
      for (int d = 0; d < key_size; ++d) q.push_back(normal(*random));
      auto& m = mask[static_cast<std::size_t>(r)];
      for (int c = 0; c < n_cells; ++c) {
        m.push_back((*random)() % 3 == 0 ? kMasked : (*random)() % 4 == 0 ? kOne : 0);
      }
    }
  }

  std::vector<std::vector<float>> query;
  std::vector<std::vector<std::uint16_t>> mask;
};

}  // namespace outrider::testing
