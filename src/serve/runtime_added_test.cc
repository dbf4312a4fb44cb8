// A drafter of whoever embeds the runtime, beside those of the table.
#include <gtest/gtest.h>

#include "testing/drafter_fixture.h"
#include "testing/fake_drafter.h"

namespace outrider {
namespace {

using testing::ask;
using testing::model;
using RuntimeAdded = testing::DrafterTest;

// Knows what will be said.
class Prophet : public LookupDrafter {
 public:
  explicit Prophet(std::vector<Token> text)
      : script_(testing::prophet(std::move(text), 3, 0, testing::kVocab)) {}

  std::string_view name() const override { return "prophet"; }
  Status begin(SeqId, std::size_t) override { return Status(); }
  Status draft(std::span<DraftRequest> requests) override {
    for (DraftRequest& request : requests) OUTRIDER_RETURN_IF_ERROR(script_(request));
    return Status();
  }
  void accept(SeqId, std::span<const Token>) override {}
  void end(SeqId) override {}
  void set_interrupt(const std::atomic<bool>*) override {}
  std::string limit_reason(SeqId) const override { return ""; }
  std::size_t memory_bytes() const override { return 1234; }

 private:
  testing::Script script_;
};

TEST_F(RuntimeAdded, ItGuessesForRequestsThatNameItOnEveryTarget) {
  std::vector<LookupSettings> made;
  const std::vector<Token> text = whole_text({1, 2}, 3, 40);
  RuntimeOptions options{.slots = 2};
  options.drafters.push_back({.name = "prophet", .make = [&](const LookupSettings& settings) {
                                made.push_back(settings);
                                return std::make_unique<Prophet>(text);
                              }});
  const std::unique_ptr<Runtime> runtime = make(options);
  CompletionRequest r = ask({1, 2}, 3, 40);
  r.drafters.chains = {{"prophet"}};
  for (const char* target : {"target", "twin"}) {
    ASSERT_TRUE(runtime->load(ModelRole::kTarget, model(target)).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
    const Completion c = (*runtime->run(r))->completion;
    EXPECT_EQ(c.tokens, alone({1, 2}, 3, 40));
    EXPECT_EQ(c.speculation.drafted, c.speculation.accepted);
    EXPECT_GT(c.speculation.accepted, 25);
    EXPECT_EQ(c.speculation.reason, "");
  }
  ASSERT_EQ(made.size(), 3U) << "one for each target that was loaded";
  EXPECT_EQ(made[0].n_vocab, testing::kVocab);
  EXPECT_EQ(made[0].n_sequences, 2);
  const DrafterStatus status = status_of(*runtime, "prophet");
  EXPECT_TRUE(status.attached);
  EXPECT_EQ(status.memory_bytes, 1234U);
  EXPECT_GT(status.totals.accepted, 50);
  EXPECT_EQ(runtime->status().drafters.back().name, "prophet") << "behind those of the table";

  const Completion unasked = (*runtime->run(ask({1, 2}, 3, 40)))->completion;
  EXPECT_EQ(stats_of(unasked, "prophet"), nullptr);
  EXPECT_FALSE(runtime->attach({"prophet", "file"}).ok()) << "it takes no files";
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeAdded, ItNeedsANameOfItsOwn) {
  for (const std::string_view name : {"", "suffix", "draft-model"}) {
    RuntimeOptions options;
    options.drafters.push_back({.name = name, .make = [](const LookupSettings&) {
                                  return std::make_unique<Prophet>(std::vector<Token>());
                                }});
    EXPECT_EQ(Runtime::create(options, loader_).status().code(), StatusCode::kInvalidArgument);
  }
  RuntimeOptions options;
  options.drafters.resize(RuntimeOptions::kMaxAddedDrafters + 1);
  EXPECT_EQ(Runtime::create(options, loader_).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrider
