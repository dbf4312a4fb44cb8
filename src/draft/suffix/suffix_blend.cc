#include "draft/suffix/suffix_blend.h"

#include <algorithm>

namespace outrider {

float SuffixBlend::escape(const SuffixLevel& level) const {
  const float n = static_cast<float>(level.total);
  const float d = static_cast<float>(level.n_distinct) * distinct;
  const float shorter = 1.0f + static_cast<float>(level.length) / length_scale;
  return std::min(0.95f, d / ((n + d) * shorter) + floor);
}

void SuffixBlend::blend(std::span<const SuffixLevel> levels, std::vector<SuffixChance>& out) const {
  out.clear();
  float weight = 1.0f;
  for (const SuffixLevel& level : levels) {
    if (weight < least_weight) break;
    const float share = escape(level);
    const float n = static_cast<float>(level.total);
    const float bonus = level.first_is_last_used ? recency * n : 0.0f;
    const float each = weight * (1.0f - share) / (n + bonus);
    for (std::size_t i = 0; i < level.continuations.size(); ++i) {
      const SuffixIndex::Continuation& c = level.continuations[i];
      const float chance = each * (static_cast<float>(c.count) + (i == 0 ? bonus : 0.0f));
      const std::vector<SuffixChance>::iterator known =
          std::find_if(out.begin(), out.end(),
                       [&](const SuffixChance& other) { return other.token == c.token; });
      if (known == out.end()) {
        out.push_back({.token = c.token, .chance = chance});
      } else {
        known->chance += chance;
      }
    }
    weight *= share;
  }
}

}  // namespace outrider
