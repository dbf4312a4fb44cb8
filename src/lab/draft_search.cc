#include "lab/draft_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace outrider::lab {

std::int32_t DraftSearch::size() const {
  std::size_t n = 1 + types.size() + n_tokens.size();
  for (const std::int32_t left_out : n_left_out) {
    n += places_to_leave_out(left_out, n_layers, places).size();
  }
  return static_cast<std::int32_t>(n);
}

std::vector<std::int32_t> places_to_leave_out(std::int32_t n, std::int32_t n_layers,
                                              std::int32_t places) {
  const std::int32_t first = n + 2 <= n_layers ? 1 : 0;
  const std::int32_t last = std::max(first, n_layers - n - 1);
  std::vector<std::int32_t> starts;
  for (std::int32_t i = 0; i < places; ++i) {
    // The middle of the i-th of so many equal parts.
    const std::int32_t start = first + ((last - first) * (2 * i + 1)) / (2 * places);
    if (starts.empty() || starts.back() != start) starts.push_back(start);
  }
  return starts;
}

Result<std::vector<DraftCandidate>> search_drafts(
    const DraftSearch& search,
    const std::function<Result<DraftCandidate>(const DraftMake&)>& try_one) {
  std::vector<DraftCandidate> candidates;
  DraftMake best;
  double best_speedup = -1.0;
  const auto try_all = [&](const std::vector<DraftMake>& makes) -> Status {
    for (const DraftMake& make : makes) {
      Result<DraftCandidate> tried = try_one(make);
      if (!tried.ok()) return tried.status();
      const double speedup = tried->status.ok() ? tried->prediction.speedup : -1.0;
      candidates.push_back(*std::move(tried));
      if (speedup <= best_speedup) continue;
      best_speedup = speedup;
      best = make;
    }
    return Status();
  };
  std::vector<DraftMake> makes = {best};
  for (const std::string& type : search.types) makes.push_back({.type = type});
  OUTRIDER_RETURN_IF_ERROR(try_all(makes));
  makes.clear();
  for (const std::int32_t n : search.n_tokens) {
    makes.push_back(best);
    makes.back().n_tokens = n;
  }
  OUTRIDER_RETURN_IF_ERROR(try_all(makes));
  makes.clear();
  for (const std::int32_t n : search.n_left_out) {
    for (const std::int32_t start : places_to_leave_out(n, search.n_layers, search.places)) {
      makes.push_back(best);
      makes.back().first_left_out = start;
      makes.back().n_left_out = n;
    }
  }
  OUTRIDER_RETURN_IF_ERROR(try_all(makes));
  return candidates;
}

std::vector<std::size_t> best_drafts(const std::vector<DraftCandidate>& candidates) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return !candidates[i].status.ok(); });
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const DraftCandidate& x = candidates[a];
    const DraftCandidate& y = candidates[b];
    if (x.prediction.speedup != y.prediction.speedup) {
      return x.prediction.speedup > y.prediction.speedup;
    }
    return x.bytes < y.bytes;
  });
  return order;
}

std::string make_text(const DraftMake& make) {
  std::string text = make.type;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (make.n_tokens > 0) add(std::to_string(make.n_tokens) + " tokens");
  if (make.n_left_out == 1) add("without layer " + std::to_string(make.first_left_out));
  if (make.n_left_out > 1) {
    add("without layers " + std::to_string(make.first_left_out) + "-" +
        std::to_string(make.first_left_out + make.n_left_out - 1));
  }
  return text.empty() ? "as it is" : text;
}

}  // namespace outrider::lab
