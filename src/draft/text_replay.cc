#include "draft/text_replay.h"

#include <algorithm>
#include <cassert>

#include "base/clock.h"

namespace outrider {
namespace {

constexpr std::int64_t kStepsPerReport = 256;

// How many nodes in a row, from the root on, `said` goes along.
std::size_t walk(const TokenTree& tree, std::span<const Token> said) {
  NodeId at = kRoot;
  std::size_t n = 0;
  while (n < said.size()) {
    at = tree.child(at, said[n]);
    if (at == kNoNode) break;
    ++n;
  }
  return n;
}

}  // namespace

TextReplay::TextReplay(Drafter& drafter, const ReplayOptions& options)
    : drafter_(drafter), options_(options) {
  stats_.steps_by_width.assign(static_cast<std::size_t>(options.width) + 1, 0);
}

Status TextReplay::step(std::span<const Token> text, std::size_t& decided, bool first) {
  TokenTree tree(text[decided - 1]);
  DraftRequest request{.seq = 0,
                       .text = text.first(decided),
                       .max_nodes = options_.width - 1,
                       .shape = options_.shape,
                       .mask = 1,
                       .tree = &tree};
  Status status;
  if (options_.width > 1) {
    ScopedTimer timer(first ? stats_.begin_ms : stats_.draft_ms);
    status = drafter_.draft(std::span(&request, 1));
  }
  OUTRIDER_RETURN_IF_ERROR(status);
  if (tree.size() > options_.width) {
    std::vector<bool> keep(static_cast<std::size_t>(tree.size()), true);
    std::fill(keep.begin() + options_.width, keep.end(), false);
    (void)tree.prune(keep);
  }
  const std::size_t accepted = walk(tree, text.subspan(decided));
  const std::size_t said = std::min(accepted + 1, text.size() - decided);
  ++stats_.steps;
  ++stats_.steps_by_width[static_cast<std::size_t>(tree.size())];
  stats_.drafted += tree.drafted();
  stats_.accepted += static_cast<std::int64_t>(accepted);
  stats_.tokens += static_cast<std::int64_t>(said);
  decided += said;
  ScopedTimer timer(stats_.accept_ms);
  drafter_.accept(0, text.first(decided));
  return Status();
}

Status TextReplay::run(std::span<const Token> text, std::size_t given, bool keep,
                       const std::atomic<bool>* interrupt,
                       const std::function<void(std::size_t)>& on_progress) {
  assert(given >= 1 && given <= text.size());
  const std::span<const Token> prompt = text.first(given);
  const std::size_t shared = static_cast<std::size_t>(
      std::mismatch(before_.begin(), before_.end(), prompt.begin(), prompt.end()).first -
      before_.begin());
  {
    ScopedTimer timer(stats_.begin_ms);
    OUTRIDER_RETURN_IF_ERROR(drafter_.begin(0, keep ? shared : 0));
  }
  ++stats_.texts;
  std::size_t decided = given;
  before_.assign(prompt.begin(), prompt.end());
  while (decided < text.size()) {
    if (interrupt != nullptr && interrupt->load()) return cancelled("interrupted");
    OUTRIDER_RETURN_IF_ERROR(step(text, decided, decided == given));
    if (on_progress && stats_.steps % kStepsPerReport == 0) on_progress(decided);
  }
  before_.assign(text.begin(), text.end());
  return Status();
}

}  // namespace outrider
