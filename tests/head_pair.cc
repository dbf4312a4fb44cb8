#include "tests/head_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "engine/engine.h"
#include "testing/fake_model.h"
#include "tests/step_widths.h"

namespace outrider::testing {

HeadPair::HeadPair(std::int32_t n_sequences, bool as_llama_cpp) {
  options.path = dir.file("target.gguf");
  options.n_ctx = 256;
  options.n_batch = 64;
  options.n_threads = 1;
  options.n_sequences = n_sequences;
  if (!as_llama_cpp) return;
  options.kernels = KernelChoice::kStock;
  options.cache_type_k = options.cache_type_v = "f16";
}

llama::OpenedTarget HeadPair::open(const ModelOptions& options) {
  llama::TargetOptions how;
  how.widest = kWidestCompared;
  how.cache_folder = std::filesystem::path();
  how.probe_budget_ms = 300.0;
  Result<llama::OpenedTarget> result = llama::open_target(options, {}, how);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return std::move(*result);
}

std::string HeadPair::check() const {
  const std::string wrong = target.model->check_integrity();
  return wrong.empty() ? check_head() : wrong;
}

Completion HeadPair::run(const RunOptions& run, bool speculative) {
  std::vector<Drafter*> drafters;
  if (speculative) drafters.push_back(drafter.get());
  return run_checked(*target.model, vocabulary(), drafters, run, [this] { return check(); });
}

RunOptions head_run(const std::vector<Token>& prompt, float temperature, std::int32_t width) {
  RunOptions options;
  options.prompt = prompt;
  options.seed = 7;
  options.max_tokens = 24;
  options.width = width;
  options.sampling.temperature = temperature;
  options.shape.branches = 1;
  return options;
}

void expect_plain_text(HeadPair& pair, const DraftShape& wide,
                       const std::function<void(const RunOptions&, const Completion&)>& also) {
  const std::vector<std::int32_t> some = {2, 4, 8};
  const std::vector<std::vector<Token>> prompts = seeded_prompts(pair.vocabulary(), 3, 4, 20);
  SeenWidths seen;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      const RunOptions single = head_run(prompts[i], temperature, 1);
      const Completion plain = pair.run(single, false);
      if (also) also(single, plain);
      const bool all = temperature == 0.0f && i % 2 == 0;
      for (const std::int32_t width : all ? every_width() : some) {
        RunOptions options = head_run(prompts[i], temperature, width);
        if (width > 4) options.shape = wide;
        const Completion got = pair.run(options, true);
        EXPECT_EQ(got.tokens, plain.tokens) << temperature << ' ' << width;
        EXPECT_TRUE(width == 1 || plain.tokens.size() < 3 || got.speculation.drafted > 0)
            << got.speculation.reason;
        if (all) seen.add(width, got.speculation);
      }
    }
  }
  // Of recurrent layers llama.cpp takes few tokens back, and steps are no wider than that.
  const std::int32_t most = pair.target.model->capabilities().max_width;
  EXPECT_EQ(seen.missing(std::min(kWidestCompared, most)), "");
}

HeadCounts head_counts(HeadPair& pair, std::size_t least, std::int32_t width) {
  HeadCounts counts;
  for (const std::vector<Token>& prompt : seeded_prompts(pair.vocabulary(), 3, 5, 20)) {
    if (prompt.size() < least) continue;
    const Completion got = pair.run(head_run(prompt, 1.0f, width), true);
    EXPECT_EQ(got.speculation.reason, "");
    EXPECT_EQ(got.error.message(), "");
    counts.drafted += got.speculation.drafted;
    counts.accepted += got.speculation.accepted;
    counts.deepest = std::max(counts.deepest, got.speculation.by_depth.size());
  }
  EXPECT_GT(counts.drafted, 40);
  return counts;
}

namespace {

// One token after the other as the target reads them; behind each from `first` on the drafter
// guesses greedily.
std::vector<std::vector<Token>> our_guesses(HeadPair& pair, const std::vector<Token>& text,
                                            std::size_t first, std::int32_t n) {
  LanguageModel& target = *pair.target.model;
  FakeSampler greedy(0.0f);
  std::vector<std::vector<Token>> guesses;
  EXPECT_TRUE(pair.drafter->begin(0, 0).ok());
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    if (at >= first) {
      TokenTree tree(text[at]);
      DraftRequest request{.seq = 0,
                           .text = std::span(text).first(at + 1),
                           .sampler = &greedy,
                           .max_nodes = n,
                           .shape = {.branches = 1},
                           .mask = 1,
                           .tree = &tree};
      const Status drafted = draft_one(*pair.drafter, request);
      EXPECT_TRUE(drafted.ok()) << drafted.message();
      std::vector<Token>& said = guesses.emplace_back();
      for (NodeId id = 1; id < tree.size(); ++id) said.push_back(tree.token(id));
    }
    const TokenTree root(text[at]);
    const EvalItem item{.seq = 0, .tree = &root};
    EXPECT_TRUE(target.evaluate({&item, 1}).ok());
    pair.drafter->see_hidden(0, at, text[at], target.hidden(0, 0));
    const NodeId path[] = {kRoot};
    EXPECT_TRUE(target.commit(0, path).ok());
  }
  return guesses;
}

Request branching_request(const HeadPair& pair, const RunOptions& options, std::int32_t branches) {
  Request request = request_of(options, pair.vocabulary());
  request.draft.branches = request.draft.model_branches = branches;
  return request;
}

void step_to_the_end(const HeadPair& pair, Engine& engine) {
  while (engine.busy()) {
    engine.step();
    ASSERT_EQ(pair.check(), "");
  }
}

}  // namespace

void expect_llama_cpps_guesses(HeadPair& pair, LlamaHeadsOptions how, std::size_t most,
                               bool noisy) {
  std::vector<Token> text = seeded_prompts(pair.vocabulary(), 5, 1, 1).front();
  RunOptions options = head_run(text, 1.0f, 1);
  options.max_tokens = 60;
  const Completion said = pair.run(options, false);
  ASSERT_GT(said.tokens.size(), 30U) << said.error.message();
  text.insert(text.end(), said.tokens.begin(), said.tokens.end());
  ASSERT_TRUE(pair.target.model->truncate(0, 0).ok());

  how.target_path = pair.options.path;
  Result<LlamaHeads> theirs = LlamaHeads::load(how);
  ASSERT_TRUE(theirs.ok()) << theirs.status().message();
  Result<std::vector<std::vector<Token>>> wanted = theirs->guesses(text, 1);
  ASSERT_TRUE(wanted.ok()) << wanted.status().message();
  std::vector<std::vector<Token>> got = our_guesses(pair, text, 1, how.n_draft);
  const std::size_t n = std::min(got.size(), wanted->size());
  ASSERT_GT(n, 30U);
  std::size_t right = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<Token>& theirs_now = (*wanted)[i];
    ASSERT_FALSE(theirs_now.empty());
    theirs_now.resize(std::min(theirs_now.size(), most));
    got[i].resize(std::min(got[i].size(), most));
    EXPECT_EQ(got[i], theirs_now) << "behind token " << i + 1;
    right += !got[i].empty() && i + 2 < text.size() && got[i][0] == text[i + 2] ? 1 : 0;
  }
  EXPECT_TRUE(!noisy || right < n) << "nothing was compared but right guesses";
}

void expect_slots_as_alone(HeadPair& pair, const std::vector<std::int32_t>& widths) {
  const std::vector<std::vector<Token>> prompts =
      seeded_prompts(pair.vocabulary(), 9, widths.size(), 20);
  std::vector<std::vector<Token>> alone;
  for (const std::vector<Token>& prompt : prompts) {
    alone.push_back(pair.run(head_run(prompt, 1.0f, 1), false).tokens);
  }
  for (std::size_t i = 0; i < widths.size(); ++i) {
    ASSERT_TRUE(pair.target.model->truncate(static_cast<SeqId>(i), 0).ok());
  }
  Engine engine(*pair.target.model, pair.vocabulary(), {pair.drafter.get()},
                {.prompt_chunk = 4, .reuse_prefix = true});
  for (int round = 0; round < 2; ++round) {  // the second begins with what the first has read
    std::vector<RequestId> ids;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const RunOptions options = head_run(prompts[i], 1.0f, widths[i]);
      ids.push_back(*engine.add(branching_request(pair, options, i == 0 ? 1 : 3)));
    }
    step_to_the_end(pair, engine);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Completion got = *engine.take(ids[i]);
      EXPECT_EQ(got.tokens, alone[i]) << i;
      EXPECT_GT(got.speculation.accepted, 0) << i;
    }
  }
}

void expect_any_end_and_beginning(HeadPair& pair, std::size_t most, bool to_the_end) {
  const std::vector<Token> prompt = seeded_prompts(pair.vocabulary(), 11, 1, 12).front();
  RunOptions all = head_run(prompt, 1.0f, 1);
  if (to_the_end) all.max_tokens = -1;
  const std::vector<Token> said = pair.run(all, false).tokens;
  std::vector<std::size_t> lengths;
  for (std::size_t n = 1; n <= std::min(most, said.size()); ++n) lengths.push_back(n);
  if (to_the_end) lengths.push_back(said.size());
  for (const std::size_t n : lengths) {
    ASSERT_TRUE(pair.target.model->truncate(0, 0).ok());
    Engine engine(*pair.target.model, pair.vocabulary(), {pair.drafter.get()},
                  {.reuse_prefix = true});
    const auto complete = [&](const std::vector<Token>& text, std::int32_t limit) {
      RunOptions options = head_run(text, 1.0f, 5);
      options.max_tokens = limit;
      const RequestId id = *engine.add(branching_request(pair, options, 2));
      step_to_the_end(pair, engine);
      return *engine.take(id);
    };
    const std::vector<Token> begun(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(n));
    const bool at_end = to_the_end && n == said.size();
    EXPECT_EQ(complete(prompt, at_end ? -1 : static_cast<std::int32_t>(n)).tokens, begun);
    if (at_end) continue;
    std::vector<Token> next = prompt;
    next.insert(next.end(), begun.begin(), begun.end());
    const Completion again = complete(next, 8);
    EXPECT_TRUE(n < 2 || again.cached_tokens > 0);
    // The noise is of positions, so the text goes on as it would have.
    for (std::size_t i = 0; i < again.tokens.size() && n + i < said.size(); ++i) {
      EXPECT_EQ(again.tokens[i], said[n + i]) << n;
    }
  }
}

}  // namespace outrider::testing
