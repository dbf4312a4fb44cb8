#include "lab/draft_verdict.h"

#include <filesystem>

#include "base/numbers.h"

namespace outrider::lab {
namespace {

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

bool is_faster(const DraftCandidate& a, const DraftCandidate& b) {
  if (a.measured && b.measured) return a.measured->speedup > b.measured->speedup;
  return a.measured && !b.measured;  // else as they are predicted
}

bool pays_for_certain(const DraftCandidate& c, bool is_measured) {
  if (!is_measured) return c.prediction.pays();
  return c.measured && c.measured->interval && c.measured->interval->low > 1.0;
}

bool cannot_be_told_apart(const DraftCandidate& a, const DraftCandidate& b) {
  if (!a.measured || !b.measured || !a.measured->interval || !b.measured->interval) return false;
  return a.measured->interval->low <= b.measured->interval->high &&
         b.measured->interval->low <= a.measured->interval->high;
}

std::string verdict_of_none(const DraftCandidate& best, const ChoiceSetting& setting) {
  return "no draft of '" + file_name(setting.source) + "' pays: the best one (" +
         make_text(best.make) + ") is " +
         (best.measured ? "measured at " + speed_text(*best.measured)
                        : "predicted at " + fixed(best.prediction.speedup, 2)) +
         " times the speed of plain decoding" +
         (best.measured && best.measured->speedup > 1.0 ? ", which shows no gain" : "");
}

std::string verdict_of(const DraftCandidate& best, const ChoiceSetting& setting) {
  std::string text = "the best is " + make_text(best.make) + ": ";
  text += setting.is_measured ? speed_text(*best.measured) : fixed(best.prediction.speedup, 2);
  text += " times the speed of plain decoding, ";
  text += setting.is_measured ? "measured" : "predicted";
  if (best.make == DraftMake()) text += "; it is no better than -d " + setting.source;
  return text;
}

}  // namespace

DraftVerdict choose_draft(const std::vector<DraftCandidate>& candidates,
                          const ChoiceSetting& setting) {
  const std::vector<std::size_t> order = best_drafts(candidates);
  if (order.empty()) {
    return {.chosen = std::nullopt,
            .verdict = "no draft of '" + file_name(setting.source) + "' works for '" +
                       file_name(setting.target) + "': " + candidates.front().status.message()};
  }
  std::size_t best = order.front();
  std::optional<std::size_t> fastest;  // of those that pay
  for (const std::size_t i : order) {
    if (is_faster(candidates[i], candidates[best])) best = i;
    if (!pays_for_certain(candidates[i], setting.is_measured)) continue;
    if (!fastest || is_faster(candidates[i], candidates[*fastest])) fastest = i;
  }
  if (!fastest) {
    return {.chosen = std::nullopt, .verdict = verdict_of_none(candidates[best], setting)};
  }
  std::size_t chosen = *fastest;
  for (const std::size_t i : order) {
    const DraftCandidate& other = candidates[i];
    if (!pays_for_certain(other, setting.is_measured)) continue;
    if (!cannot_be_told_apart(other, candidates[*fastest])) continue;
    if (other.bytes < candidates[chosen].bytes) chosen = i;
  }
  DraftVerdict choice{.chosen = chosen, .verdict = verdict_of(candidates[chosen], setting)};
  if (chosen != *fastest) {
    const DraftCandidate& larger = candidates[*fastest];
    choice.verdict += "; no difference could be shown to " + make_text(larger.make) + " (" +
                      fixed(larger.measured->speedup, 2) + "), a larger file";
  }
  return choice;
}

std::string speed_text(const DraftSpeed& speed) {
  std::string text = fixed(speed.speedup, 2);
  if (speed.interval) {
    text += " (" + fixed(speed.interval->low, 2) + " to " + fixed(speed.interval->high, 2) + ")";
  }
  return text;
}

}  // namespace outrider::lab
