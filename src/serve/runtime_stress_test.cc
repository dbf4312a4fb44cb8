// A thousand requests from sixteen threads, with cancels, deadlines, drafts that come and go, other
// targets and full queues: no wrong token, no lost request, no stall.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "draft/drafter_table.h"

#include "base/random.h"
#include "draft/ngram/ngram_file.h"
#include "serve/runtime.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"
#include "testing/fake_loader.h"
#include "testing/suffix_file.h"
#include "testing/tiny_dir.h"
#include "testing/watchdog.h"

namespace outrider {
namespace {

constexpr int kThreads = 16;
constexpr int kRequestsEach = 63;

ModelOptions model(const std::string& path) {
  ModelOptions o;
  o.path = path;
  o.n_ctx = 64;
  o.n_batch = 24;
  return o;
}

class Client {
 public:
  Client(Runtime& runtime, std::uint64_t seed, int index, std::atomic<int>& progress)
      : runtime_(runtime),
        key_(noise_key(seed, static_cast<std::uint64_t>(index))),
        progress_(progress) {}

  void run() {
    for (int i = 0; i < kRequestsEach; ++i) {
      one();
      ++progress_;
      progress_.notify_all();
    }
  }

  std::int64_t complete = 0;  // requests that were not ended early
  std::int64_t early = 0;
  std::int64_t refused = 0;
  std::vector<std::string> wrong;

 private:
  std::uint32_t draw(std::uint32_t n) { return noise_bits(key_, count_++) % n; }

  void one() {
    std::vector<Token> prompt = {static_cast<Token>(draw(3)), 2};
    for (std::uint32_t n = draw(5) == 0 ? 30 + draw(20) : draw(4); n > 0; --n) {
      prompt.push_back(static_cast<Token>(draw(testing::kVocab)));
    }
    CompletionRequest r;
    for (const Token token : prompt) r.prompt.emplace_back(token);
    r.sampling.temperature = 1.0f;
    r.seed = static_cast<std::int64_t>(draw(1000));
    r.max_tokens = static_cast<std::int32_t>(draw(30));
    r.speculative = draw(4) != 0;
    static constexpr const char* kExpressions[] = {"draft-model", "suffix",
                                                   "recycle",     "draft-model,suffix",
                                                   "ngram-cache", "suffix/draft-model,recycle"};
    if (draw(3) != 0) r.drafters = *parse_drafter_plan(kExpressions[draw(6)], kDrafterNames);
    if (draw(2) != 0) r.name_space = "user-" + std::to_string(draw(3));
    r.width = draw(3) == 0 ? kAutoWidth : 1 + static_cast<std::int32_t>(draw(8));
    if (draw(6) == 0) r.timeout_ms = 1 + draw(3);
    const bool cancel = draw(4) == 0;
    const std::uint64_t seed = static_cast<std::uint64_t>(r.seed);
    const std::int32_t max_tokens = r.max_tokens;
    const Result<StartedCompletion> started = runtime_.start(std::move(r));
    if (!started.ok()) {
      ++refused;
      if (started.status().code() != StatusCode::kResourceExhausted) {
        wrong.push_back(started.status().message());
      }
      std::this_thread::yield();
      return;
    }
    finish(started->id, prompt, seed, max_tokens, cancel);
  }

  void finish(CompletionId id, const std::vector<Token>& prompt, std::uint64_t seed,
              std::int32_t max_tokens, bool cancel) {
    std::vector<Token> streamed;
    std::shared_ptr<const CompletionResult> result;
    for (std::uint32_t polls = 0; !result; ++polls) {
      if (cancel && polls == draw(3)) (void)runtime_.cancel(id);
      const Result<PolledCompletion> polled = runtime_.poll(id, draw(2) * 5);
      if (!polled.ok()) {
        wrong.push_back(polled.status().message());
        return;
      }
      for (const SaidToken& said : polled->tokens) streamed.push_back(said.id);
      result = polled->result;
    }
    const Completion& c = result->completion;
    (c.finish == FinishReason::kCancelled ? early : complete) += 1;
    const std::uint64_t rows_seed = result->model == "other" ? 2 : 1;
    const std::vector<Token> expected =
        testing::reference(testing::random_rows(testing::kVocab, rows_seed, 3.0f), prompt, 1.0f,
                           seed, c.tokens.size());
    if (c.tokens != expected || streamed != expected) wrong.push_back("another text");
    if (c.finish == FinishReason::kError) wrong.push_back(c.error.message());
    const std::size_t room = 64 - prompt.size();
    const std::size_t length = std::min(static_cast<std::size_t>(max_tokens), room);
    if (c.finish == FinishReason::kLength && c.tokens.size() != length) {
      wrong.push_back("ended at " + std::to_string(c.tokens.size()) + " of " +
                      std::to_string(length));
    }
  }

  Runtime& runtime_;
  NoiseKey key_;
  std::uint32_t count_ = 0;
  std::atomic<int>& progress_;
};

// What the texts are guessed from: "store" and "ngrams" in the folder.
Status write_drafter_files(const testing::TempDir& dir) {
  const testing::FakeVocabulary vocabulary(testing::kVocab, kNoToken);
  std::vector<std::vector<Token>> texts;
  for (std::uint64_t i = 0; i < 20; ++i) {
    texts.push_back(testing::reference(testing::random_rows(testing::kVocab, 1, 3.0f),
                                       {static_cast<Token>(i % 3), 2}, 1.0f, i, 40));
  }
  testing::write_suffix_store(dir.file("store"), tokenizer_id(vocabulary), texts);
  NgramCache ngrams;
  for (const std::vector<Token>& text : texts) ngrams.count(text, 0, 1, kMaxNgram);
  return save_ngrams(ngrams, tokenizer_id(vocabulary), dir.file("ngrams"));
}

// The operator, meanwhile: whenever some more requests have ended.
void operate(Runtime& runtime, std::uint64_t seed, const testing::TempDir& dir,
             const std::atomic<int>& progress) {
  int ended = 0;
  for (std::uint32_t i = 0; ended < kThreads * kRequestsEach; ++i) {
    switch (noise_bits(noise_key(seed, 999), i) % 8) {
      case 0:
      case 1:
        (void)runtime.load(ModelRole::kDraft, model("draft"));
        break;
      case 2:
        (void)runtime.unload(ModelRole::kDraft, false);
        break;
      case 3:
        (void)runtime.load(ModelRole::kTarget, model(i % 2 == 0 ? "other" : "target"));
        break;
      case 4:
        (void)runtime.load(i % 2 == 0 ? ModelRole::kTarget : ModelRole::kDraft, model("bad"));
        break;
      case 5:
        EXPECT_TRUE(runtime.attach({"suffix", dir.file(i % 4 == 0 ? "missing" : "store")}).ok());
        break;
      case 6:
        (void)runtime.attach({"ngram-cache", dir.file("ngrams"), i % 4 < 2 ? "static" : "dynamic"});
        (void)runtime.detach({"ngram-cache", "", i % 3 == 0 ? "static" : ""});
        (void)runtime.detach({"suffix", i % 2 == 0 ? "" : dir.file("store")});
        break;
      default:
        EXPECT_EQ(runtime.check_integrity(), "");
    }
    const int next = std::min(ended + 8, kThreads * kRequestsEach);
    for (ended = progress.load(); ended < next; ended = progress.load()) progress.wait(ended);
  }
}

TEST(RuntimeStress, AThousandRequestsFromSixteenThreadsAllGetTheirText) {
  const std::uint64_t seed = testing::test_seed(11);
  testing::FakeLoader loader;
  loader.add("target", {.seed = 1});
  loader.add("other", {.seed = 2});
  loader.add("draft", {.seed = 1, .noise = 0.5f});
  testing::TempDir dir;
  ASSERT_TRUE(write_drafter_files(dir).ok());
  loader.add("bad", {.failure = internal_error("on purpose")});
  Result<std::unique_ptr<Runtime>> made =
      Runtime::create({.slots = 5, .max_queue = 8, .remember_tokens = 1024}, loader);
  ASSERT_TRUE(made.ok());
  Runtime& runtime = **made;
  ASSERT_TRUE(runtime.load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime.wait_loaded(-1));
  std::atomic<int> progress{0};
  std::atomic<int> events{0};
  runtime.subscribe([&](const RuntimeEvent&) { ++events; });
  const testing::Watchdog watchdog(progress,
                                   std::chrono::seconds(60));  // requests take milliseconds

  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    clients.push_back(std::make_unique<Client>(runtime, seed, i, progress));
    threads.emplace_back([&client = *clients.back()] { client.run(); });
  }
  std::thread operator_thread([&] { operate(runtime, seed, dir, progress); });
  for (std::thread& thread : threads) thread.join();
  operator_thread.join();

  std::int64_t complete = 0, early = 0, refused = 0;
  for (const std::unique_ptr<Client>& client : clients) {
    complete += client->complete;
    early += client->early;
    refused += client->refused;
    for (const std::string& text : client->wrong) ADD_FAILURE() << text << ", seed " << seed;
  }
  EXPECT_EQ(complete + early + refused, kThreads * kRequestsEach);
  EXPECT_GT(complete, 200);
  EXPECT_GT(early, 20);
  EXPECT_EQ(runtime.check_integrity(), "");
  const RuntimeStatus status = runtime.status();
  EXPECT_EQ(status.running + status.queued, 0);
  EXPECT_EQ(status.finished, complete + early);
  EXPECT_GT(status.accepted_tokens, 0);
  EXPECT_GT(events.load(), 0);
}

}  // namespace
}  // namespace outrider
