// The runtime on real files under everything at once: a thousand requests from sixteen threads with
// cancels, deadlines and every drafter, while the draft model and a suffix store come and go. Each
// gets the tokens that plain decoding gives it alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "draft/drafter_table.h"

#include "backend/llama_loader.h"
#include "base/random.h"
#include "serve/runtime.h"
#include "testing/chi_square.h"
#include "testing/pace.h"
#include "testing/random_request.h"
#include "testing/sanitized.h"
#include "testing/suffix_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"
#include "testing/watchdog.h"

namespace outrider {
namespace {

using testing::small_options;

constexpr int kThreads = 16;
constexpr int kRequests = testing::kSanitized ? 160 : 1000;
constexpr int kRequestsAChange = 4;   // of the drafters
constexpr std::uint32_t kTexts = 32;  // different ones; each is asked for many times

// The i-th text of a seed: beginnings repeat themselves so that there is something to look up.
CompletionRequest text_request(std::uint64_t seed, std::uint32_t i) {
  return testing::random_request(
      seed, i, {"one two three one two three one two ", "Once ", std::string(90, 'x') + " "});
}

class LlamaStress : public ::testing::Test {
 protected:
  LlamaStress()
      : seed_(testing::test_seed(17)),
        loader_({.probe_budget_ms = 100, .cache_folder = std::filesystem::path()}) {}

  std::unique_ptr<Runtime> make(const RuntimeOptions& options) {
    Result<std::unique_ptr<Runtime>> made = Runtime::create(options, loader_);
    EXPECT_TRUE(made.ok());
    EXPECT_TRUE((*made)->load(ModelRole::kTarget, small_options(dir_.file("target.gguf"))).ok());
    EXPECT_TRUE((*made)->wait_loaded(-1));
    EXPECT_TRUE((*made)->status().target.serving);
    return *std::move(made);
  }

  // Plain, one after the other; and the first half of them as a store.
  void write_plain_texts(Runtime& alone) {
    const Vocabulary& vocabulary = alone.target()->vocabulary();
    std::vector<std::vector<Token>> texts;
    for (std::uint32_t i = 0; i < kTexts; ++i) {
      const CompletionRequest request = text_request(seed_, i);
      const Result<std::shared_ptr<const CompletionResult>> result = alone.run(request);
      ASSERT_TRUE(result.ok()) << result.status().message();
      plain_.push_back((*result)->completion);
      std::vector<Token> text =
          *vocabulary.tokenize(std::get<std::string>(request.prompt[0]), true, true);
      text.insert(text.end(), plain_.back().tokens.begin(), plain_.back().tokens.end());
      if (i < kTexts / 2) texts.push_back(std::move(text));
    }
    testing::write_suffix_store(dir_.file("store"), tokenizer_id(vocabulary), texts);
    testing::write_suffix_store(dir_.file("foreign"), {.hash = 1, .n_vocab = 40}, {{1, 2, 3}});
  }

  // One request of a client's; how it differs from plain decoding, or nothing.
  void ask(Runtime& runtime, NoiseKey key, std::uint32_t& count) {
    const auto draw = [&](std::uint32_t n) { return noise_bits(key, count++) % n; };
    static constexpr const char* kExpressions[] = {"draft-model",
                                                   "suffix",
                                                   "recycle",
                                                   "draft-model,suffix",
                                                   "suffix/draft-model",
                                                   "recycle,suffix/draft-model"};
    const std::uint32_t i = draw(kTexts);
    CompletionRequest r = text_request(seed_, i);
    r.speculative = draw(5) != 0;
    r.width = 2 + static_cast<std::int32_t>(draw(7));
    r.draft.branches = 1 + static_cast<std::int32_t>(draw(3));
    const std::string expression = kExpressions[draw(6)];
    if (draw(4) != 0) r.drafters = *parse_drafter_plan(expression, kDrafterNames);
    // What is to be ended early has no limit and no full context, so that it is, on any machine.
    const bool hurries = draw(8) == 0;
    const bool cancels = draw(8) == 0;
    const std::size_t enough = draw(20);  // tokens, before it is cancelled
    if (hurries) r.timeout_ms = 1 + draw(40);
    if (hurries || cancels) {
      r.max_tokens = -1;
      r.shift_keep = 0;
    }
    const Result<StartedCompletion> started = runtime.start(std::move(r));
    if (!started.ok()) return note(started.status().message());
    std::shared_ptr<const CompletionResult> result;
    std::vector<Token> streamed;
    while (!result) {
      if (cancels && streamed.size() >= enough) (void)runtime.cancel(started->id);
      const Result<PolledCompletion> polled = runtime.poll(started->id, 10);
      if (!polled.ok()) return note(polled.status().message());
      for (const SaidToken& said : polled->tokens) streamed.push_back(said.id);
      result = polled->result;
    }
    check(result->completion, plain_[i], hurries || cancels, streamed,
          expression + ", text " + std::to_string(i));
  }

  // Whether both say the same as far as both go, and `longer` may go further.
  static bool begins_alike(const Completion& longer, const Completion& plain) {
    const std::size_t both = std::min(longer.tokens.size(), plain.tokens.size());
    return std::equal(plain.tokens.begin(),
                      plain.tokens.begin() + static_cast<std::ptrdiff_t>(both),
                      longer.tokens.begin()) &&
           (longer.tokens.size() == both || plain.finish == FinishReason::kLength);
  }

  // `without_limit`: where plain decoding ended at its limit, this one went on.
  void check(const Completion& got, const Completion& expected, bool without_limit,
             const std::vector<Token>& streamed, const std::string& what) {
    if (streamed != got.tokens) note(what + ": streamed otherwise than told");
    if (got.finish == FinishReason::kError) note(what + ": " + got.error.message());
    if (got.finish == FinishReason::kCancelled) {
      ++ended_early_;
      if (!begins_alike(got, expected)) note(what + ": another text, ended early");
    } else if (without_limit && expected.finish == FinishReason::kLength) {
      const bool goes_on = got.tokens.size() >= expected.tokens.size();
      if (!goes_on || !begins_alike(got, expected)) note(what + ": another text, without limit");
    } else if (got.tokens != expected.tokens || got.text != expected.text ||
               got.finish != expected.finish) {
      note(what + ": another text");
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const DrafterStats& d : got.speculation.drafters) accepted_[d.name] += d.accepted;
  }

  void note(std::string wrong) {
    const std::lock_guard<std::mutex> lock(mutex_);
    wrong_.push_back(std::move(wrong));
  }

  // The operator: something behind every few requests, until there are no more.
  void come_and_go(Runtime& runtime, testing::Pace& pace) {
    for (std::uint32_t i = 0; pace.wait_for(kRequestsAChange * std::int64_t{i}); ++i) {
      switch (noise_bits(noise_key(seed_, 999), i) % 8) {
        case 0:
        case 1:
          EXPECT_TRUE(runtime.load(ModelRole::kDraft, small_options(dir_.file("draft.gguf"))).ok());
          break;
        case 2:
          (void)runtime.unload(ModelRole::kDraft, false);
          break;
        case 3:
        case 4:
          EXPECT_TRUE(runtime.attach({"suffix", dir_.file("store")}).ok());
          break;
        case 5:
          (void)runtime.detach({"suffix", dir_.file("store")});
          break;
        case 6:
          EXPECT_TRUE(runtime.attach({"suffix", dir_.file(i % 2 == 0 ? "foreign" : "none")}).ok());
          break;
        default:
          EXPECT_EQ(runtime.check_integrity(), "");
      }
      ++changes_;
    }
  }

  const std::uint64_t seed_;
  testing::TempDir dir_;
  LlamaLoader loader_;
  std::vector<Completion> plain_;  // [kTexts]
  std::atomic<int> ended_early_{0};
  std::atomic<int> changes_{0};

  std::mutex mutex_;  // guards what follows
  std::vector<std::string> wrong_;
  std::map<std::string, std::int64_t> accepted_;
};

TEST_F(LlamaStress, AThousandRequestsWithDraftersThatComeAndGoGiveThePlainTexts) {
  testing::TinyPairOptions pair;
  pair.target.weight_type = testing::WeightType::kQ8_0;
  pair.target.eos_bias = -4.0f;
  pair.noise = 0.05f;
  ASSERT_TRUE(
      testing::write_tiny_pair(dir_.file("target.gguf"), dir_.file("draft.gguf"), pair).ok());
  {
    const std::unique_ptr<Runtime> alone = make({.slots = 1, .reuse_prefix = false});
    write_plain_texts(*alone);
  }
  if (HasFatalFailure()) return;
  const std::unique_ptr<Runtime> runtime =
      make({.slots = 4, .max_queue = kThreads, .prompt_chunk = 32});
  EXPECT_EQ(runtime->status().exactness->reason.find("differ"), std::string::npos);
  std::atomic<int> progress{0};
  std::atomic<int> next{0};
  testing::Pace pace;
  const testing::Watchdog watchdog(progress,
                                   std::chrono::seconds(120));  // a request takes well under one
  std::thread operator_thread([&] { come_and_go(*runtime, pace); });
  std::vector<std::thread> clients;
  for (int i = 0; i < kThreads; ++i) {
    clients.emplace_back([&, i] {
      std::uint32_t count = 0;
      while (next++ < kRequests) {
        ask(*runtime, noise_key(seed_, 100 + static_cast<std::uint64_t>(i)), count);
        ++progress;
        pace.done();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  pace.end();
  operator_thread.join();
  // Which drafters were there when they were asked for depends on the machine: now all of them are.
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, small_options(dir_.file("draft.gguf"))).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  for (std::uint32_t i = 0, count = 0; i < 60; ++i) ask(*runtime, noise_key(seed_, 99), count);

  for (const std::string& wrong : wrong_) ADD_FAILURE() << wrong << ", seed " << seed_;
  EXPECT_EQ(progress.load(), kRequests);
  EXPECT_EQ(runtime->check_integrity(), "");
  const RuntimeStatus status = runtime->status();
  EXPECT_EQ(status.running + status.queued, 0);
  EXPECT_EQ(status.finished, status.started);
  EXPECT_GT(ended_early_.load(), kRequests / 50);
  EXPECT_GT(changes_.load(), 8);
  for (const char* name : {"draft-model", "suffix", "recycle"})
    EXPECT_GT(accepted_[name], 0) << name;
  printf(
      "%d requests from %d threads, seed %llu: %d ended early, %d changes of drafters; accepted: "
      "draft-model %lld, suffix %lld, recycle %lld\n",
      kRequests, kThreads, static_cast<unsigned long long>(seed_), ended_early_.load(),
      changes_.load(), static_cast<long long>(accepted_["draft-model"]),
      static_cast<long long>(accepted_["suffix"]), static_cast<long long>(accepted_["recycle"]));
}

}  // namespace
}  // namespace outrider
