// The texts on which drafts are chosen, of hand-written models.
#include "lab/draft_sample.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/utf8.h"
#include "testing/runtime_fixture.h"
#include "testing/tiny_dir.h"

namespace outrider::lab {
namespace {

class DraftSampleTest : public testing::RuntimeTest {
 protected:
  // Its vocabulary takes any text.
  DraftSampleTest() { loader_.add("any text", {.seed = 1, .chat = true}); }

  Result<DraftSample> write(const SampleOptions& options, const Watcher& watcher = {}) {
    const std::unique_ptr<Runtime> runtime =
        make({.slots = 1, .reuse_prefix = false}, "any text", /*n_ctx=*/4096);
    const std::shared_ptr<const Target> target = runtime->target();
    return write_sample({.runtime = *runtime, .target = *target, .watcher = watcher}, options);
  }
  testing::TempDir dir_;
};

TEST_F(DraftSampleTest, NoTextIsBothChosenByAndMeasuredOn) {
  SampleOptions options;
  options.max_tokens = 20;
  options.sampling.temperature = 1.0f;
  const Result<DraftSample> sample = write(options);
  ASSERT_TRUE(sample.ok()) << sample.status().message();
  EXPECT_EQ(sample->walked.size(), usual_prompts().size() / 2);
  EXPECT_EQ(sample->prompts.size(), sample->walked.size());
  EXPECT_EQ(sample->texts.size(), usual_prompts().size()) << "a prompt and an answer each";
  EXPECT_EQ(sample->walked_tokens, 20 * 4);
  for (std::size_t i = 0; i < sample->walked.size(); ++i) {
    const SaidText& said = sample->walked[i];
    EXPECT_EQ(said.prompt, sample->prompts[i].tokens);
    // What is walked is what the runtime says under this seed.
    EXPECT_EQ(said.said, alone(said.prompt, said.seed, 20));
  }
}

TEST_F(DraftSampleTest, FilesAreWhatItGoesOnWith) {
  std::string text;
  for (int i = 0; i < 900; ++i) text += i % 9 == 8 ? "caf\xc3\xa9\n" : "bead cab ";
  testing::write_bytes(dir_.file("text.txt"), text);
  SampleOptions options;
  options.files = {dir_.file("text.txt")};
  options.max_tokens = 12;
  const Result<DraftSample> sample = write(options);
  ASSERT_TRUE(sample.ok()) << sample.status().message();
  EXPECT_EQ(sample->texts.front(), text);
  EXPECT_EQ(sample->walked.size(), 4U);
}

TEST_F(DraftSampleTest, WhatIsTooLittleOrMissingIsSaid) {
  testing::write_bytes(dir_.file("empty.txt"), " \n ");
  SampleOptions options;
  options.files = {dir_.file("empty.txt")};
  EXPECT_EQ(write(options).status().message(), "--sample: the files have no text");
  options.files = {dir_.file("missing.txt")};
  EXPECT_EQ(write(options).status().code(), StatusCode::kNotFound);
  testing::write_bytes(dir_.file("short.txt"), "bead");
  options.files = {dir_.file("short.txt")};
  options.max_tokens = 3;
  EXPECT_NE(write(options).status().message().find("the target said 3 tokens to 1 prompts"),
            std::string::npos);
  std::atomic<bool> interrupt{true};
  options.files = {};
  EXPECT_EQ(write(options, {.interrupt = &interrupt}).status().code(), StatusCode::kCancelled);
}

TEST(PromptsOf, PiecesAreValidAndSpreadOverTheText) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "\xe6\x97\xa5 ";
  const std::vector<FilePrompt> prompts = prompts_of({text}, 8);
  EXPECT_EQ(prompts.size(), 8U);
  for (const FilePrompt& prompt : prompts) {
    EXPECT_FALSE(first_invalid_utf8(prompt.text)) << prompt.id;
    EXPECT_GE(prompt.text.size(), 300U);
    EXPECT_LE(prompt.text.size(), 600U);
  }
  EXPECT_EQ(prompts_of({"short"}, 8).size(), 1U);
  EXPECT_TRUE(prompts_of({}, 8).empty());
  EXPECT_EQ(prompts_of({std::string(5000, 'x')}, 8).size(), 1U) << "nowhere to cut";
}

}  // namespace
}  // namespace outrider::lab
