#include "base/nearest.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr std::size_t kLongest = 64;  // bytes of a word that anybody meant

// Optimal string alignment: like Levenshtein's distance, but two neighbours swapped count once.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > kLongest) return "";
  const std::size_t letters = word.size() - std::min(word.size(), word.find_first_not_of('-'));
  const std::size_t limit = std::min<std::size_t>(2, letters / 3);
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : known) {
    const std::size_t d = distance(word, candidate);
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  if (!best.empty() || letters < 3) return best;
  for (const std::string& candidate : known) {
    if (candidate.size() > word.size() && candidate.compare(0, word.size(), word) == 0) {
      return candidate;
    }
  }
  return "";
}

}  // namespace outrider
