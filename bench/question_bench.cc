// What a question to the planner takes: trees grow node by node, and behind each new node the
// drafter asks whether one more pass pays (engine/guide.h).
//
//   bench_question
//
// Arguments: nodes of each tree, requests of the step. An item is one node and one question.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "base/random.h"
#include "engine/guide.h"
#include "testing/fake_engine.h"
#include "testing/plan_machines.h"

namespace outrider {
namespace {

// Two in three nodes go on at the tip, the others are branches.
struct Growth {
  NodeId parent;
  Token token;
  float claim;
};

std::vector<Growth> random_growth(std::int32_t nodes) {
  std::vector<Growth> growth;
  TokenTree tree(0);
  std::uint64_t state = 7;
  while (tree.drafted() < nodes) {
    const bool tip = mix64(++state) % 3 != 0;
    const NodeId parent =
        tip ? tree.size() - 1
            : static_cast<NodeId>(mix64(++state) % static_cast<std::uint64_t>(tree.size()));
    const float claim = tree.node(parent).chance * (tip ? 0.8f : 0.1f);
    growth.push_back({parent, static_cast<Token>(tree.size()), claim});
    tree.add(parent, growth.back().token, claim, 1);
  }
  return growth;
}

void questions(benchmark::State& state) {
  const std::vector<Growth> growth = random_growth(static_cast<std::int32_t>(state.range(0)));
  const std::int32_t n = static_cast<std::int32_t>(state.range(1));
  const testing::PlanMachine machine = testing::plan_machines()[0];
  std::vector<CostPoint> points;
  for (std::int32_t width = 1; width <= 256; width *= 2) {
    points.push_back({.width = width, .ms = machine.ms(width)});
  }
  Planner planner;
  planner.set_target_cost(CostCurve(points));
  planner.account(0).note_pass(true, n, 0.1 * machine.ms(1) * n, planner.target_cost());
  testing::FakeModel target(testing::capabilities(n), testing::random_rows(testing::kVocab, 1, 1));
  testing::FakeModel draft(testing::capabilities(n), testing::random_rows(testing::kVocab, 1, 1));
  const testing::FakeVocabulary vocabulary(testing::kVocab);
  DraftModelDrafter drafter(draft, testing::kVocab, {});
  Drafter* const drafters[] = {&drafter};
  const NowMs clock = [] { return 0.0; };
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (std::int32_t i = 0; i < n; ++i) {
    sequences.push_back(
        std::make_unique<Sequence>(0, i, testing::request({1, 2}, 1.0f, 5, 100, kAutoWidth), 256));
  }
  for (auto _ : state) {
    Step step{.target = target,
              .vocabulary = vocabulary,
              .drafters = drafters,
              .planner = planner,
              .clock = &clock,
              .n_ready = n};
    step.costs.emplace(planner.target_cost(), n, n, 31 * n);
    SharedPasses passes;
    std::vector<StepGuide> guides;
    for (const std::unique_ptr<Sequence>& s : sequences) {
      step.parts.push_back({.sequence = s.get(), .ready = true});
      s->proposed.emplace(0);
      s->chances.clear();
      guides.emplace_back(step, *s, 0);
      guides.back().begin(&passes, false);
    }
    for (const Growth& node : growth) {
      for (std::size_t i = 0; i < guides.size(); ++i) {
        TokenTree& tree = *sequences[i]->proposed;
        const NodeId id = tree.add(node.parent, node.token, node.claim, 1);
        passes.requests = n;
        benchmark::DoNotOptimize(guides[i].another_pass(tree.node(id).chance, tree.node(id).depth));
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * n);
}
BENCHMARK(questions)->ArgsProduct({{16, 64}, {1, 4, 16}})->ArgNames({"nodes", "requests"});

}  // namespace
}  // namespace outrider
