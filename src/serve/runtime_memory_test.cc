// Finished texts that are remembered: for whom, which of them, and what is told of it.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "testing/drafter_fixture.h"
#include "testing/step_gate.h"

namespace outrider {
namespace {

using testing::kVocab;
using testing::model;

class RuntimeMemory : public testing::DrafterTest {
 protected:
  static RuntimeOptions remembering(std::int64_t tokens = 8192) {
    RuntimeOptions options;
    options.remember_tokens = tokens;
    return options;
  }
  CompletionRequest of(const std::string& name_space, std::uint64_t seed, std::int32_t n) {
    CompletionRequest r = asking("suffix", {1, 2}, seed, n);
    if (!name_space.empty()) r.name_space = name_space;
    return r;
  }
  static MemoryStatus memory_of(const Runtime& runtime) {
    const std::optional<MemoryStatus> memory = status_of(runtime, "suffix").memory;
    EXPECT_TRUE(memory.has_value());
    return memory.value_or(MemoryStatus{});
  }
};

TEST_F(RuntimeMemory, WhatWasSaidDraftsForTheSameNamespaceAndForNobodyElse) {
  const std::unique_ptr<Runtime> runtime = make(remembering(), "target", 400);
  const std::vector<Token> plain = alone({1, 2}, 3, 300);
  const auto accepted = [&](const std::string& name_space) {
    const std::shared_ptr<const CompletionResult> result = *runtime->run(of(name_space, 3, 300));
    EXPECT_EQ(result->completion.tokens, plain) << name_space;
    EXPECT_EQ(result->remembered.has_value(), !name_space.empty());
    if (result->remembered) {
      EXPECT_EQ(result->remembered->name_space, name_space);
      EXPECT_EQ(result->remembered->tokens, 300);
      EXPECT_EQ(result->remembered->reason, "");
    }
    return result->completion.speculation.accepted;
  };
  const std::int64_t alone_accepted = accepted("");
  EXPECT_EQ(accepted(""), alone_accepted) << "nothing is remembered without a namespace";
  EXPECT_EQ(memory_of(*runtime).tokens, 0U);
  EXPECT_EQ(accepted("a"), alone_accepted) << "it is the first of its namespace";
  EXPECT_EQ(accepted("b"), alone_accepted) << "another's text is not seen";
  EXPECT_EQ(accepted(""), alone_accepted) << "nor by requests without one";
  EXPECT_GT(accepted("a"), alone_accepted + 100);
  EXPECT_GT(accepted("b"), alone_accepted + 100);
  const MemoryStatus memory = memory_of(*runtime);
  EXPECT_EQ(memory.max_tokens, 8192U);
  EXPECT_EQ(memory.namespaces, 2U);
  EXPECT_EQ(memory.tokens, 4U * 301);
  EXPECT_GT(memory.memory_bytes, 4U * 301);
  EXPECT_GE(status_of(*runtime, "suffix").memory_bytes, memory.memory_bytes);
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeMemory, RequestsOfManyNamespacesAtOnceSayThePlainText) {
  const std::unique_ptr<Runtime> runtime = make(remembering(1024), "target", 200);
  for (int round = 0; round < 3; ++round) {
    std::vector<CompletionId> ids;
    for (std::uint64_t i = 0; i < 12; ++i) {
      CompletionRequest r = of("user-" + std::to_string(i % 3), i % 4, 100);
      r.width = 6;
      r.draft.branches = 4;
      ids.push_back(runtime->start(std::move(r))->id);
    }
    for (std::uint64_t i = 0; i < 12; ++i) {
      std::shared_ptr<const CompletionResult> result;
      while (result == nullptr) result = runtime->poll(ids[i], 1000)->result;
      EXPECT_EQ(result->completion.tokens, alone({1, 2}, i % 4, 100));
      EXPECT_EQ(result->remembered->tokens, 100);
    }
  }
  EXPECT_LE(memory_of(*runtime).tokens, 1024U);
}

TEST_F(RuntimeMemory, ARequestIsToldWhenNothingIsRemembered) {
  const std::unique_ptr<Runtime> runtime = make();
  const std::shared_ptr<const CompletionResult> result = *runtime->run(of("a", 3, 30));
  EXPECT_EQ(result->completion.finish, FinishReason::kLength);
  EXPECT_EQ(result->completion.speculation.reason, "") << "that is no fault of the drafter";
  ASSERT_TRUE(result->remembered);
  EXPECT_EQ(result->remembered->tokens, 0);
  EXPECT_NE(result->remembered->reason.find("remember_tokens"), std::string::npos);
  EXPECT_FALSE(status_of(*runtime, "suffix").memory);
}

TEST_F(RuntimeMemory, ATextThatAStopStringEndedIsRememberedToItsLastToken) {
  const std::unique_ptr<Runtime> runtime = make(remembering(), "target", 200);
  const std::vector<Token> plain = alone({1, 2}, 3, 60);
  const testing::FakeVocabulary vocabulary(kVocab, kNoToken);
  std::string stop;
  for (std::size_t i = 20; i < 24; ++i) stop += vocabulary.piece(plain[i]);
  const auto run = [&] {
    CompletionRequest stopped = of("a", 3, 60);
    stopped.stop = {stop};
    return *runtime->run(std::move(stopped));
  };
  std::shared_ptr<const CompletionResult> result = run();
  ASSERT_EQ(result->completion.finish, FinishReason::kStop);
  ASSERT_LE(result->completion.tokens.size(), 24U);
  EXPECT_EQ(result->remembered->tokens,
            static_cast<std::int64_t>(result->completion.tokens.size()));
  const std::int64_t first = result->completion.speculation.accepted;
  result = run();
  EXPECT_EQ(result->completion.finish, FinishReason::kStop);
  EXPECT_GT(result->completion.speculation.accepted, first);

  result = *runtime->run(of("tiny", 3, 2));
  EXPECT_EQ(result->remembered->tokens, 0);
  EXPECT_EQ(result->remembered->reason, "the text is too short to guess from");
}

TEST_F(RuntimeMemory, ACancelledTextIsRememberedAndAFailedOneIsNot) {
  const std::unique_ptr<Runtime> runtime = make(remembering(), "target", 1000);
  testing::StepGate gate(*runtime);
  const CompletionId id = runtime->start(of("a", 3, 900))->id;
  std::size_t n_said = 0;
  std::shared_ptr<const CompletionResult> result;
  while (n_said <= 10) {
    gate.let(1);
    n_said += runtime->poll(id, 1000)->tokens.size();
  }
  EXPECT_TRUE(runtime->cancel(id).ok());
  gate.open();
  while (result == nullptr) {
    const Result<PolledCompletion> polled = runtime->poll(id, 1000);
    n_said += polled->tokens.size();
    result = polled->result;
  }
  EXPECT_EQ(result->completion.finish, FinishReason::kCancelled);
  EXPECT_EQ(result->remembered->tokens, static_cast<std::int64_t>(n_said));
  EXPECT_EQ(memory_of(*runtime).namespaces, 1U);

  const std::shared_ptr<const Target> target = runtime->target();
  const_cast<testing::FakeTarget&>(dynamic_cast<const testing::FakeTarget&>(*target))
      .die_in_next_step(internal_error("its process died"));
  result = *runtime->run(of("b", 3, 40));
  EXPECT_EQ(result->completion.finish, FinishReason::kError);
  EXPECT_EQ(result->remembered->tokens, 0);
  EXPECT_EQ(result->remembered->reason, "the text was not finished");
}

TEST_F(RuntimeMemory, WhatIsRememberedGoesWithItsTarget) {
  const std::unique_ptr<Runtime> runtime = make(remembering(), "target", 400);
  (void)runtime->run(of("a", 3, 100));
  EXPECT_EQ(memory_of(*runtime).namespaces, 1U);
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("other", 400)).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(memory_of(*runtime).namespaces, 0U);
  ASSERT_TRUE(runtime->unload(ModelRole::kTarget, false).ok());
  EXPECT_FALSE(status_of(*runtime, "suffix").memory);
}

TEST_F(RuntimeMemory, WhatIsOutOfRangeIsRefused) {
  const std::unique_ptr<Runtime> runtime = make(remembering());
  for (const std::string& name : {std::string(), std::string(65, 'x'), std::string("a\nb"),
                                  std::string("a\0b", 3), std::string("\x7F")}) {
    CompletionRequest r = of("a", 3, 5);
    r.name_space = name;
    const Status status = runtime->start(r).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message().rfind("namespace has ", 0), 0U) << status.message();
  }
  EXPECT_TRUE(runtime->start(of(std::string(64, 'x'), 3, 5)).ok());
  EXPECT_TRUE(runtime->start(of("J\xC3\xBCrgen", 3, 5)).ok());
  for (const std::int64_t tokens : {-1, 1, 1023, 2'097'153}) {
    const Status status = Runtime::create(remembering(tokens), loader_).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << tokens;
    EXPECT_EQ(status.message().rfind("remember_tokens is ", 0), 0U) << status.message();
  }
}

TEST_F(RuntimeMemory, TextsAreKeptOverARestartWhereThatIsAskedFor) {
  RuntimeOptions options = remembering();
  const auto accepted = [&](const RuntimeOptions& with) {
    const std::unique_ptr<Runtime> runtime = make(with, "target", 400);
    const Completion c = (*runtime->run(of("a", 3, 300)))->completion;
    EXPECT_EQ(c.tokens, alone({1, 2}, 3, 300));
    return c.speculation.accepted;
  };
  const std::int64_t first = accepted(options);
  EXPECT_EQ(accepted(options), first) << "forgotten, unless a folder is given";
  options.remember_folder = dir_.file("texts");
  EXPECT_EQ(accepted(options), first) << "there is nothing in it yet";
  EXPECT_GT(accepted(options), first + 100);
  // Another model's are its own.
  {
    const std::unique_ptr<Runtime> other = make(options, "other", 400);
    EXPECT_EQ(memory_of(*other).tokens, 0U);
  }
  for (const auto& entry : std::filesystem::directory_iterator(options.remember_folder)) {
    testing::write_bytes(entry.path().string(), "damaged");
  }
  const std::unique_ptr<Runtime> runtime = make(options, "target", 400);
  EXPECT_EQ(memory_of(*runtime).tokens, 0U);
  const std::vector<std::string> notes = runtime->status().target.notes;
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].find("remember_folder: "), 0U) << notes[0];
}

TEST_F(RuntimeMemory, NothingIsLostOfATargetThatWasLoadedAnewWhileItStillServed) {
  RuntimeOptions options = remembering();
  options.remember_folder = dir_.file("texts");
  const auto run = [this](Runtime& runtime, const std::string& name) {
    EXPECT_EQ((*runtime.run(of(name, 3, 100)))->remembered->tokens, 100) << name;
  };
  {
    const std::unique_ptr<Runtime> runtime = make(options, "target", 400);
    run(*runtime, "before");
    testing::StepGate gate(*runtime);
    const CompletionId late = runtime->start(of("meanwhile", 3, 100))->id;
    gate.wait_until_held();
    ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target", 400)).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
    run(*runtime, "on the new one");
    EXPECT_EQ(memory_of(*runtime).namespaces, 1U);
    gate.open();
    std::shared_ptr<const CompletionResult> result;
    while (result == nullptr) result = runtime->poll(late, 1000)->result;
    EXPECT_EQ(result->remembered->tokens, 100);
  }
  const std::unique_ptr<Runtime> again = make(options, "target", 400);
  EXPECT_EQ(memory_of(*again).namespaces, 3U);
  EXPECT_EQ(memory_of(*again).tokens, 3U * 101);
}

TEST_F(RuntimeMemory, WhatAFolderDoesNotTakeIsInTheStatusOnceAndItsMakerIsTold) {
  std::ofstream(dir_.file("file")) << "no folder";
  std::atomic<int> n_told{0};
  RuntimeOptions options = remembering();
  options.remember_folder = dir_.file("file");
  options.not_kept = [&n_told](const Status&) { ++n_told; };
  const std::unique_ptr<Runtime> runtime = make(options);
  EXPECT_TRUE(runtime->status().not_kept.empty());
  for (int n = 1; n <= 2; ++n) {
    ASSERT_TRUE(runtime->unload(ModelRole::kTarget, false).ok());
    while (n_told.load() < n) std::this_thread::yield();  // it ends on a thread of its own
    ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
  }
  while (runtime->status().not_kept.empty()) std::this_thread::yield();
  const std::vector<std::string> not_kept = runtime->status().not_kept;
  ASSERT_EQ(not_kept.size(), 1U);
  EXPECT_EQ(not_kept[0].find("remember_folder: "), 0U) << not_kept[0];
}

TEST_F(RuntimeMemory, AFolderWithoutAnythingToRememberIsRefused) {
  RuntimeOptions options;
  options.remember_folder = "texts";
  EXPECT_EQ(Runtime::create(options, loader_).status().field(), "remember_folder");
}

TEST_F(RuntimeMemory,
       AFolderThatCannotBeWrittenToIsRefusedAndOneThatIsMissingIsMadeForTheUserAlone) {
  const std::string file = dir_.file("file");
  std::ofstream(file) << "no folder";
  for (const std::string& path : {file, file + "/below"}) {
    RuntimeOptions options;
    options.prompt_cache = path;
    const Status status = prepare_folders(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.field(), "prompt_cache");
    EXPECT_EQ(status.message(), "prompt_cache is '" + path +
                                    "', but must be a folder that can be written to: "
                                    "Not a directory");
    options.prompt_cache = "";
    options.remember_tokens = 4096;
    options.remember_folder = path;
    EXPECT_EQ(prepare_folders(options).field(), "remember_folder");
  }
  RuntimeOptions options;
  options.prompt_cache = dir_.file("new/below");
  ASSERT_TRUE(prepare_folders(options).ok());
  EXPECT_EQ(std::filesystem::status(options.prompt_cache).permissions(),
            std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace outrider
