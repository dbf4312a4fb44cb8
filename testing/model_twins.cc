#include "testing/model_twins.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "testing/chi_square.h"

namespace outrider::testing {
ModelTwins::ModelTwins(LanguageModel& a, LanguageModel& b)
    : a_(a),
      b_(b),
      seed_(test_seed(1234)),
      random_(static_cast<unsigned>(seed_)),
      tentative_(static_cast<std::size_t>(a.capabilities().n_sequences)) {}

void ModelTwins::act(int n_calls) {
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed_));
  for (int i = 0; i < n_calls && !::testing::Test::HasFailure(); ++i) act();
}

Token ModelTwins::token() {
  const std::int32_t n_vocab = a_.capabilities().n_vocab;
  return draw(60) == 0 ? n_vocab : draw(n_vocab);
}

TokenTree ModelTwins::random_tree() {
  TokenTree tree(token());
  const bool is_chain = draw(2) == 0;
  for (int n = draw(6); n > 0; --n) {
    tree.add(is_chain ? tree.size() - 1 : draw(tree.size()), token(), 1.0f, 1);
  }
  return tree;
}

void ModelTwins::act() {
  const SeqId seq = draw(static_cast<int>(tentative_.size()));
  const int what = draw(13);
  if (what == 0) {
    truncate(seq);
  } else if (what == 12) {
    share(seq);
  } else if (tentative(seq).tree.has_value() && what < 4) {
    grow(seq);
  } else if (tentative(seq).open) {
    commit(seq);
  } else {
    evaluate();
  }
  for (SeqId s = 0; s < static_cast<SeqId>(tentative_.size()); ++s) {
    ASSERT_EQ(a_.length(s), b_.length(s));
    ASSERT_EQ(a_.room(s), b_.room(s));
  }
}

void ModelTwins::truncate(SeqId seq) {
  const Pos length = tentative(seq).open ? 0 : draw(a_.length(seq) + 1);
  expect_same(a_.truncate(seq, length), b_.truncate(seq, length));
  tentative(seq) = Tentative();
}

void ModelTwins::share(SeqId from) {
  const SeqId to = draw(static_cast<int>(tentative_.size()));
  if (to == from) return;
  const Pos length = draw(a_.length(from) + 1);
  expect_same(a_.share(from, to, length), b_.share(from, to, length));
  tentative(to) = Tentative();
}

// A batch for about half of the sequences that wait for nothing.
void ModelTwins::evaluate() {
  std::vector<std::vector<Token>> prefixes(tentative_.size());
  std::vector<Tentative> wanted(tentative_.size());
  std::vector<EvalItem> items;
  for (SeqId seq = 0; seq < static_cast<SeqId>(tentative_.size()); ++seq) {
    const std::size_t i = static_cast<std::size_t>(seq);
    if (tentative_[i].open || draw(2) == 0) continue;
    for (int n = draw(4); n > 0; --n) prefixes[i].push_back(token());
    wanted[i].open = true;
    if (prefixes[i].empty() || draw(4) > 0) wanted[i].tree = random_tree();
    items.push_back(
        {.seq = seq, .prefix = prefixes[i], .tree = wanted[i].tree ? &*wanted[i].tree : nullptr});
  }
  if (items.empty() || !run(items)) return;
  for (std::size_t i = 0; i < tentative_.size(); ++i) {
    if (wanted[i].open) tentative_[i] = std::move(wanted[i]);
  }
}

void ModelTwins::grow(SeqId seq) {
  TokenTree tree = *tentative(seq).tree;
  const NodeId before = tree.size();
  for (int n = 1 + draw(2); n > 0; --n) tree.add(draw(tree.size()), token(), 1.0f, 1);
  if (tree.size() == before) return;
  const EvalItem item{.seq = seq, .prefix = {}, .tree = &tree, .first_new = before};
  if (run({&item, 1})) tentative(seq).tree = tree;
}

void ModelTwins::commit(SeqId seq) {
  std::vector<NodeId> path;
  if (tentative(seq).tree) {
    path = tentative(seq).tree->path_to(draw(tentative(seq).tree->size()));
    path.resize(static_cast<std::size_t>(draw(static_cast<int>(path.size()) + 1)));
  }
  expect_same(a_.commit(seq, path), b_.commit(seq, path));
  tentative(seq) = Tentative();
}

bool ModelTwins::run(std::span<const EvalItem> items) {
  const Status a = a_.evaluate(items);
  const Status b = b_.evaluate(items);
  expect_same(a, b);
  if (!a.ok() || !b.ok()) return false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const NodeId end = items[i].tree == nullptr ? 0 : items[i].tree->size();
    for (NodeId node = items[i].first_new; node < end; ++node, ++n_rows_) {
      const std::span<const float> x = a_.logits(i, node);
      const std::span<const float> y = b_.logits(i, node);
      EXPECT_EQ(x.size(), y.size());
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size_bytes()), 0) << "row " << node;
    }
  }
  return true;
}

void ModelTwins::expect_same(const Status& a, const Status& b) const {
  EXPECT_EQ(a.code(), b.code());
  EXPECT_EQ(a.message(), b.message());
}

}  // namespace outrider::testing
