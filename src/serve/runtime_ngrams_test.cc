// The n-gram files of ngram-cache in the runtime: tiers, and files that come, go and fail.
#include <gtest/gtest.h>

#include "testing/drafter_fixture.h"
#include "testing/step_gate.h"

namespace outrider {
namespace {

using testing::kVocab;
using testing::model;
using RuntimeNgrams = testing::DrafterTest;

TEST_F(RuntimeNgrams, WithoutAFileItGuessesFromTheTextAlone) {
  const std::unique_ptr<Runtime> runtime = make({}, "target", 400);
  const DrafterStatus before = status_of(*runtime, "ngram-cache");
  EXPECT_TRUE(before.attached);
  EXPECT_TRUE(before.files.empty());
  const Completion c = (*runtime->run(asking("ngram-cache", {1, 2}, 3, 300)))->completion;
  EXPECT_EQ(c.tokens, alone({1, 2}, 3, 300));
  EXPECT_TRUE(c.speculation.enabled);
  EXPECT_EQ(c.speculation.reason, "");
  EXPECT_GT(c.speculation.drafted, 0);
}

TEST_F(RuntimeNgrams, AFileOfEachTierGuessesAndGivesThePlainText) {
  const std::vector<Token> text = whole_text({1, 2}, 3, 60);
  for (const char* tier : {"", "static", "dynamic"}) {
    const std::unique_ptr<Runtime> runtime = make();
    const Completion without = (*runtime->run(asking("ngram-cache", {1, 2}, 3, 40)))->completion;
    const std::string path = ngrams("right", kVocab, text);
    ASSERT_TRUE(runtime->attach({"ngram-cache", path, tier}).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
    const DrafterFileStatus file = file_of(*runtime, "ngram-cache");
    EXPECT_EQ(file.state, ModelState::kReady) << file.error.message();
    EXPECT_TRUE(file.serving);
    EXPECT_EQ(file.file.tier, *tier == '\0' ? "static" : tier);
    EXPECT_GT(file.file_bytes, 1000U);
    EXPECT_GT(file.memory_bytes, 1000U);
    EXPECT_GE(status_of(*runtime, "ngram-cache").memory_bytes, file.memory_bytes);
    const Completion c = (*runtime->run(asking("ngram-cache", {1, 2}, 3, 40)))->completion;
    EXPECT_EQ(c.tokens, without.tokens) << tier;
    EXPECT_EQ(c.tokens, alone({1, 2}, 3, 40)) << tier;
    EXPECT_GT(c.speculation.accepted, without.speculation.accepted) << tier;
  }
}

TEST_F(RuntimeNgrams, AFileIsTakenAwayWhileARequestRuns) {
  const std::unique_ptr<Runtime> runtime = make({}, "target", 1000);
  testing::StepGate gate(*runtime);
  const std::string path = ngrams("right", kVocab, whole_text({1, 2}, 3, 900));
  ASSERT_TRUE(runtime->attach({"ngram-cache", path, "dynamic"}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  const CompletionId id = runtime->start(asking("ngram-cache", {1, 2}, 3, 900))->id;
  std::size_t by_ngrams = 0;
  std::shared_ptr<const CompletionResult> result;
  const auto poll = [&] {
    Result<PolledCompletion> polled = runtime->poll(id, 1000);
    ASSERT_TRUE(polled.ok());
    for (const SaidToken& token : polled->tokens) by_ngrams += token.by == "ngram-cache" ? 1 : 0;
    result = polled->result;
  };
  while (by_ngrams < 3) {
    gate.let(1);
    poll();
    ASSERT_EQ(result, nullptr) << "ended with " << by_ngrams << " guessed";
  }
  ASSERT_TRUE(runtime->detach({"ngram-cache", path}).ok());
  EXPECT_TRUE(status_of(*runtime, "ngram-cache").files.empty());
  gate.open();
  while (result == nullptr) poll();
  EXPECT_EQ(result->completion.tokens, alone({1, 2}, 3, 900));
  EXPECT_EQ(result->completion.speculation.reason,
            "the file '" + path + "' of the drafter 'ngram-cache' was taken away");
  EXPECT_TRUE(result->completion.speculation.enabled) << "its own text is still looked up";
  EXPECT_EQ((*runtime->run(asking("ngram-cache", {1, 2}, 3, 5)))->completion.speculation.reason, "")
      << "the next one never had it";
}

TEST_F(RuntimeNgrams, ATierHoldsOneFileAndEachIsTakenAwayByItself) {
  const std::unique_ptr<Runtime> runtime = make();
  const std::string one = ngrams("one", kVocab, whole_text({1, 2}, 3, 60));
  const std::string two = ngrams("two", kVocab, whole_text({1, 2}, 4, 60));
  ASSERT_TRUE(runtime->attach({"ngram-cache", one, "static"}).ok());
  ASSERT_TRUE(runtime->attach({"ngram-cache", one, "static"}).ok()) << "anew";
  const Status second = runtime->attach({"ngram-cache", two});
  EXPECT_EQ(second.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(second.message().find(one), std::string::npos) << second.message();
  ASSERT_TRUE(runtime->attach({"ngram-cache", two, "dynamic"}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(status_of(*runtime, "ngram-cache").files.size(), 2U);
  EXPECT_EQ(runtime->detach({"ngram-cache", one, "dynamic"}).code(), StatusCode::kNotFound);
  ASSERT_TRUE(runtime->detach({"ngram-cache", "", "static"}).ok());
  EXPECT_EQ(file_of(*runtime, "ngram-cache").file.path, two);
  ASSERT_TRUE(runtime->attach({"ngram-cache", two, "static"}).ok()) << "the same file in both";
  ASSERT_TRUE(runtime->wait_loaded(-1));
  ASSERT_TRUE(runtime->detach({"ngram-cache", ""}).ok());
  EXPECT_TRUE(status_of(*runtime, "ngram-cache").files.empty());
  const Status gone = runtime->detach({"ngram-cache", "", "static"});
  EXPECT_EQ(gone.code(), StatusCode::kNotFound);
  EXPECT_EQ(gone.message(), "the drafter 'ngram-cache' has no static files");
}

TEST_F(RuntimeNgrams, FilesThatCannotBeUsedSayWhyAndTheOneAtWorkGoesOn) {
  const std::unique_ptr<Runtime> runtime = make();
  const std::string right = ngrams("right", kVocab, whole_text({1, 2}, 3, 60));
  const std::string whole = testing::read_bytes(right);
  testing::write_bytes(dir_.file("cut"), whole.substr(0, whole.size() / 2));
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  testing::write_bytes(dir_.file("flipped"), flipped);
  testing::write_bytes(dir_.file("empty"), "");
  const std::string small = ngrams("small", 5, {1, 2, 3, 4});
  const std::string suffix = store("store", kVocab, {{1, 2, 3}});
  ASSERT_TRUE(runtime->attach({"ngram-cache", right, "dynamic"}).ok());
  for (const std::string& path : {dir_.file("missing"), dir_.file("cut"), dir_.file("flipped"),
                                  dir_.file("empty"), small, suffix}) {
    ASSERT_TRUE(runtime->attach({"ngram-cache", path}).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
    const std::vector<DrafterFileStatus> files = status_of(*runtime, "ngram-cache").files;
    ASSERT_EQ(files.size(), 2U);
    EXPECT_TRUE(files[0].serving);
    EXPECT_EQ(files[1].state, ModelState::kFailed) << path;
    EXPECT_FALSE(files[1].serving);
    EXPECT_EQ(files[1].memory_bytes, 0U);
    EXPECT_NE(files[1].error.message().find(path), std::string::npos) << files[1].error.message();
  }  // each makes room for the next
  ASSERT_TRUE(runtime->detach({"ngram-cache", "", "static"}).ok());
  EXPECT_GT((*runtime->run(asking("ngram-cache", {1, 2}, 3, 40)))->completion.speculation.accepted,
            0);
  testing::write_bytes(right, flipped);
  ASSERT_TRUE(runtime->attach({"ngram-cache", right, "dynamic"}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(file_of(*runtime, "ngram-cache").state, ModelState::kFailed);
  EXPECT_TRUE(file_of(*runtime, "ngram-cache").serving) << "a failed load changes nothing";
  EXPECT_EQ(runtime->attach({"suffix", right, "static"}).message(),
            "tier goes with the drafter ngram-cache; suffix has none");
  EXPECT_EQ(runtime->attach({"ngram-cache", right, "context"}).message(),
            "tier is 'context', but must be static or dynamic");
}

TEST_F(RuntimeNgrams, AFileFollowsToTheNextTargetAndLeavesWithTheLast) {
  const std::unique_ptr<Runtime> runtime = make({}, "");
  ASSERT_TRUE(
      runtime->attach({"ngram-cache", ngrams("right", kVocab, whole_text({1, 2}, 3, 60))}).ok());
  for (const char* target : {"target", "other"}) {
    ASSERT_TRUE(runtime->load(ModelRole::kTarget, model(target)).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
    EXPECT_EQ(file_of(*runtime, "ngram-cache").state, ModelState::kReady) << target;
  }
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("small")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(file_of(*runtime, "ngram-cache").state, ModelState::kFailed) << "another tokenizer";
  ASSERT_TRUE(runtime->unload(ModelRole::kTarget, false).ok());
  EXPECT_TRUE(status_of(*runtime, "ngram-cache").files.empty());
  EXPECT_EQ(runtime->check_integrity(), "");
}

}  // namespace
}  // namespace outrider
