// Several clients at once, on a made-up machine: bench_planner --clients.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/give_up.h"
#include "bench/planner_setting.h"
#include "bench/planner_texts.h"
#include "draft/model/draft_model.h"
#include "draft/suffix/suffix_drafter.h"
#include "engine/engine.h"
#include "request/draft_defaults.h"
#include "testing/fake_model.h"

namespace outrider {

using RowsOf = testing::RowFunction;

struct ClientsPlay {
  const std::vector<Text>& texts;
  const Vocabulary& vocabulary;
  Capabilities draft;
  std::int32_t n_vocab = 0;  // of the target
  std::function<Request(const Text&)> request;
  std::function<bool(Token)> is_end;
};

// The text that `context` is a beginning of, or most like.
inline Token next_token(const std::vector<Text>& texts, std::span<const Token> context) {
  std::size_t longest = 0;
  Token next = 0;
  for (const Text& text : texts) {
    const std::size_t n_prompt = text.prompt.size();
    const std::size_t n = n_prompt + text.said.size();
    const auto at = [&](std::size_t i) {
      return i < n_prompt ? text.prompt[i] : text.said[i - n_prompt];
    };
    std::size_t common = 0;
    while (common < std::min(n, context.size()) && at(common) == context[common]) ++common;
    if (common < longest || common == 0) continue;
    longest = common;
    next = common == context.size() && common < n ? at(common) : 0;
  }
  return next;
}

// Rows of a draft model that is always wrong, and sometimes sure of it.
inline RowsOf noise_rows(std::int32_t n_vocab) {
  return [n_vocab](std::span<const Token> context) {
    std::vector<float> row(static_cast<std::size_t>(n_vocab), -1e30f);
    std::uint64_t draw = mix64(context.size() + static_cast<std::uint64_t>(context.back()) * 977);
    for (int i = 0; i < 20; ++i) {
      draw = mix64(draw);
      row[draw % static_cast<std::uint64_t>(n_vocab)] = 0.01f * static_cast<float>(draw % 997);
    }
    return row;
  };
}

// All texts, cut to `tokens`, by so many clients at once, each with the next one that is left;
// everything is charged, from the first request of a process on. `draft_pass`: as in Machine.
inline double play_clients(const ClientsPlay& p, const Machine& machine, const RowsOf& rows,
                           double draft_pass, std::int32_t clients, std::int32_t tokens,
                           std::int32_t width) {
  double now = 0.0;
  const CostCurve costs(machine.steps);
  const std::int32_t n_vocab = p.n_vocab;
  const auto knows = [&](std::span<const Token> context) {
    std::vector<float> row(static_cast<std::size_t>(n_vocab), -1e30f);
    row[static_cast<std::size_t>(next_token(p.texts, context))] = 0.0f;
    return row;
  };
  Capabilities capabilities = p.draft;
  capabilities.n_vocab = n_vocab;
  capabilities.max_width = kWidest;
  capabilities.n_sequences = clients;
  testing::FakeModel target(capabilities, knows);
  target.on_evaluated([&](std::int64_t n) { now += costs.ms(static_cast<std::int32_t>(n)); });
  Capabilities of_draft = p.draft;
  of_draft.n_sequences = clients;
  testing::FakeModel draft(of_draft, rows);
  draft.on_evaluated(
      [&](std::int64_t n) { now += draft_pass * costs.ms(static_cast<std::int32_t>(n)); });
  DraftModelDrafter drafter(draft, n_vocab, p.is_end);
  SuffixDrafter suffix(clients);
  Engine engine(target, p.vocabulary, {&drafter, &suffix}, {.now_ms = [&] { return now; }});
  engine.planner().set_target_cost(costs);
  engine.planner().expect_passes(0, draft_pass);
  std::size_t asked = 0;
  const auto ask = [&] {
    Request r = p.request(p.texts[asked++]);
    r.max_tokens = tokens;
    r.width = width;
    set_default_branches(r.draft, r.rule, width);
    need(engine.add(std::move(r)), "request");
  };
  while (asked < p.texts.size() && asked < static_cast<std::size_t>(clients)) ask();
  while (engine.busy()) {
    for (const Update& update : engine.step()) {
      if (!update.finished) continue;
      const Completion c = need(engine.take(update.id), "completion");
      if (!c.error.ok()) give_up(c.error.message());
      if (asked < p.texts.size()) ask();
    }
  }
  return now;
}

}  // namespace outrider
