#include "draft/draft_chain.h"

#include <gtest/gtest.h>

#include "draft/ngram/ngram_drafter.h"
#include "draft/recycle/recycle.h"
#include "testing/fake_drafter.h"

namespace outrider {
namespace {

using testing::ScriptedDrafter;
using Tokens = std::vector<Token>;

// Proposes `tokens` when there is room, and remembers what it was asked.
class Says : public ScriptedDrafter {
 public:
  explicit Says(Tokens tokens)
      : ScriptedDrafter([this](DraftRequest& request) {
          asked.assign(request.text.begin(), request.text.end());
          branches = request.shape.branches;
          testing::add_chain(request, says);
          return status;
        }),
        says(std::move(tokens)) {}

  Tokens says;
  Tokens asked;  // the text of the last request
  std::int32_t branches = 0;
  Status status;
};

Tokens draft(DraftChain& chain, const Tokens& text, std::int32_t max_tokens = 8) {
  const Result<std::span<const Token>> result = chain.draft(text, max_tokens);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? Tokens(result->begin(), result->end()) : Tokens();
}

// calls, drafts, accepted drafts, drafted, accepted
Tokens counts(const DraftMethodStats& s) {
  return {static_cast<Token>(s.calls), static_cast<Token>(s.drafts),
          static_cast<Token>(s.accepted_drafts), static_cast<Token>(s.drafted),
          static_cast<Token>(s.accepted)};
}

TEST(DraftChain, EachMethodThatIsTriedCountsACall) {
  Says nothing({});
  Says something({7, 8});
  DraftChain chain({&nothing, &something});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(draft(chain, {1, 2}), Tokens({7, 8}));
  EXPECT_EQ(counts(chain.statistics()[0]), Tokens({3, 0, 0, 0, 0}));
  EXPECT_EQ(counts(chain.statistics()[1]), Tokens({3, 3, 0, 6, 0}));
}

TEST(DraftChain, TheFirstThatHasSomethingWinsAndTheRestAreNotTried) {
  Says nothing({});
  Says first({7});
  Says second({8, 9});
  DraftChain chain({&nothing, &first, &second});
  EXPECT_EQ(draft(chain, {1}), Tokens({7}));
  EXPECT_EQ(chain.drafted_by(), "scripted");
  EXPECT_EQ(counts(chain.statistics()[1]), Tokens({1, 1, 0, 1, 0}));
  EXPECT_EQ(counts(chain.statistics()[2]), Tokens({0, 0, 0, 0, 0}));
  EXPECT_TRUE(second.asked.empty());
}

TEST(DraftChain, TheWinnerAloneGetsTheCredit) {
  Says nothing({});
  Says winner({7, 8, 9});
  Says other({7, 8, 9});
  DraftChain chain({&nothing, &winner, &other});
  (void)draft(chain, {1});
  ASSERT_TRUE(chain.accept(2).ok());
  EXPECT_EQ(counts(chain.statistics()[0]), Tokens({1, 0, 0, 0, 0}));
  EXPECT_EQ(counts(chain.statistics()[1]), Tokens({1, 1, 1, 3, 2}));
  EXPECT_EQ(counts(chain.statistics()[2]), Tokens({0, 0, 0, 0, 0}));
  // When another wins the next time, the credit is that one's.
  nothing.says = {5};
  (void)draft(chain, {1, 7, 8, 3});
  ASSERT_TRUE(chain.accept(1).ok());
  EXPECT_EQ(counts(chain.statistics()[0]), Tokens({2, 1, 1, 1, 1}));
  EXPECT_EQ(counts(chain.statistics()[1]), Tokens({1, 1, 1, 3, 2}));
}

TEST(DraftChain, AcceptingNothingReportsNothing) {
  Says method({7, 8});
  DraftChain chain({&method});
  EXPECT_TRUE(chain.accept(0).ok()) << "even without a draft";
  (void)draft(chain, {1});
  const Tokens before = counts(chain.statistics()[0]);
  ASSERT_TRUE(chain.accept(0).ok());
  EXPECT_EQ(counts(chain.statistics()[0]), before);
  EXPECT_TRUE(method.last_accepted.empty()) << "the method hears of the text with the next draft";
}

TEST(DraftChain, TheTargetsOwnTokenIsNeverCounted) {
  Says method({7, 8});
  DraftChain chain({&method});
  (void)draft(chain, {1});
  // Both held, and the target's own token makes three: that is a mistake of the caller's.
  const Status status = chain.accept(3);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("target's own token"), std::string::npos) << status.message();
  EXPECT_EQ(counts(chain.statistics()[0]), Tokens({1, 1, 0, 2, 0}));
  ASSERT_TRUE(chain.accept(2).ok());
  EXPECT_EQ(counts(chain.statistics()[0]), Tokens({1, 1, 1, 2, 2}));
}

TEST(DraftChain, ADraftIsAcceptedOnceAndOnlyWhileItIsTheLatest) {
  Says method({7, 8});
  DraftChain chain({&method});
  (void)draft(chain, {1});
  ASSERT_TRUE(chain.accept(1).ok());
  EXPECT_FALSE(chain.accept(1).ok());
  (void)draft(chain, {1, 7, 5});
  method.says = {};
  (void)draft(chain, {1, 7, 5, 6});
  EXPECT_FALSE(chain.accept(1).ok()) << "the latest draft is empty";
  EXPECT_EQ(chain.drafted_by(), "");
  EXPECT_FALSE(chain.accept(-1).ok());
  EXPECT_EQ(counts(chain.statistics()[0]), Tokens({3, 2, 1, 4, 1}));
}

TEST(DraftChain, MethodsThatWereNotTriedAreToldOfTheTextToo) {
  Says first({7});
  Says second({8});
  DraftChain chain({&first, &second});
  (void)draft(chain, {1});
  (void)draft(chain, {1, 7, 5});
  EXPECT_EQ(second.last_accepted, Tokens({1, 7, 5}));
  first.says = {};
  (void)draft(chain, {1, 7, 5, 6});
  EXPECT_EQ(second.asked, Tokens({1, 7, 5, 6}));
}

TEST(DraftChain, AnotherTextBeginsByItselfAndKeepsWhatItShares) {
  Says method({7});
  DraftChain chain({&method});
  chain.begin(Tokens({1, 2, 3}));
  EXPECT_EQ(method.last_kept, 0U);
  (void)draft(chain, {1, 2, 3, 4});
  EXPECT_EQ(method.last_accepted, Tokens({1, 2, 3, 4}));
  (void)draft(chain, {1, 2, 9});
  EXPECT_EQ(method.last_kept, 2U);
  EXPECT_FALSE(chain.accept(2).ok());
  (void)draft(chain, {1, 2});
  EXPECT_EQ(method.last_kept, 2U) << "a shorter text is another text";
}

TEST(DraftChain, ResetForgetsTheTextAndKeepsTheStatistics) {
  Says method({7});
  {
    DraftChain chain({&method});
    (void)draft(chain, {1, 2});
    chain.reset();
    EXPECT_EQ(method.ended, 1);
    EXPECT_FALSE(chain.accept(1).ok());
    EXPECT_EQ(chain.statistics()[0].calls, 1);
    (void)draft(chain, {1, 2, 3});
    EXPECT_EQ(method.last_kept, 0U);
    chain.clear_statistics();
    EXPECT_EQ(counts(chain.statistics()[0]), Tokens({0, 0, 0, 0, 0}));
    EXPECT_EQ(chain.statistics()[0].name, "scripted");
  }
  EXPECT_EQ(method.ended, 2) << "the end of the chain is the end of its text";
}

TEST(DraftChain, AMethodThatFailsCountsAsHavingNothingAndSaysWhy) {
  Says broken({});
  broken.status = internal_error("on purpose");
  Says never({7});
  never.begin_status = internal_error("cannot begin");
  Says good({8});
  DraftChain chain({&broken, &never, &good});
  EXPECT_EQ(draft(chain, {1}), Tokens({8}));
  EXPECT_EQ(chain.statistics()[0].failures, 1);
  EXPECT_EQ(chain.statistics()[0].last_failure, "on purpose");
  EXPECT_EQ(chain.statistics()[1].calls, 0) << "it is left out until the next text";
  EXPECT_EQ(chain.statistics()[1].last_failure, "cannot begin");
  EXPECT_NE(chain.statistics_text().find("cannot begin"), std::string::npos);
  never.begin_status = Status();
  EXPECT_EQ(draft(chain, {2}), Tokens({7}));
}

TEST(DraftChain, NoDraftIsLongerThanAskedForAndNoneIsAskedForBelowOne) {
  Says method({7, 8, 9});
  DraftChain chain({&method});
  EXPECT_EQ(draft(chain, {1}, 2), Tokens({7, 8}));
  EXPECT_EQ(chain.statistics()[0].drafted, 2) << "what was not handed out is not counted";
  EXPECT_EQ(draft(chain, {1}, 0), Tokens());
  EXPECT_EQ(draft(chain, {1}, -5), Tokens());
  EXPECT_EQ(chain.statistics()[0].calls, 1);
  const Result<const TokenTree*> tree = chain.draft_tree(Tokens({1}), 1);
  ASSERT_TRUE(tree.ok());
  EXPECT_EQ((*tree)->drafted(), 1);
}

TEST(DraftChain, ATreesLikeliestPathIsItsChain) {
  ScriptedDrafter branching([](DraftRequest& r) {
    r.tree->add(kRoot, 5, 0.2f, r.mask);
    const NodeId likely = r.tree->add(kRoot, 6, 0.7f, r.mask);
    r.tree->add(likely, 7, 0.3f, r.mask);
    return Status();
  });
  DraftChain chain({&branching});
  EXPECT_EQ(draft(chain, {1}), Tokens({6, 7}));
  const Result<const TokenTree*> tree = chain.draft_tree(Tokens({1}), 8);
  ASSERT_TRUE(tree.ok());
  EXPECT_EQ((*tree)->drafted(), 3);
  EXPECT_FALSE(chain.accept(3).ok()) << "no path has three";
  EXPECT_TRUE(chain.accept(2).ok());
  EXPECT_EQ(counts(chain.statistics()[0]), Tokens({2, 2, 1, 5, 2}));
}

TEST(DraftChain, TextsThatAreNoneAreRefusedAndChangeNothing) {
  Says method({7});
  DraftChain chain({&method});
  (void)draft(chain, {1});
  for (const Tokens& text : {Tokens(), Tokens({1, -1}), Tokens({-7})}) {
    EXPECT_EQ(chain.draft(text, 4).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(chain.accept(1).ok()) << "the draft before is still the latest";
}

// The whole loop, with a real drafter and a "target" that says a given text.
TEST(DraftChain, MethodsThatLearnFromTheTargetsLogitsAreShownThem) {
  Says first({});
  DraftChain without({&first});
  EXPECT_EQ(draft(without, {1, 2}), Tokens());
  EXPECT_FALSE(without.wants_rows());
  RecycleDrafter recycle(/*n_vocab=*/10, /*n_sequences=*/1);
  DraftChain chain({&first, &recycle});
  EXPECT_FALSE(chain.wants_rows()) << "no text has begun";
  EXPECT_EQ(draft(chain, {1, 2}), Tokens()) << "nothing was learned yet";
  EXPECT_TRUE(chain.wants_rows());
  std::vector<float> row(10, 0.0f);
  row[7] = 5.0f;
  chain.observe(2, row);
  const Tokens guess = draft(chain, {1, 2, 3, 2});
  ASSERT_FALSE(guess.empty());
  EXPECT_EQ(guess[0], 7);
  EXPECT_EQ(chain.drafted_by(), "recycle");
}

TEST(DraftChain, TheLoopOfTheExampleEndsWithTheTargetsOwnText) {
  const Tokens whole = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3, 5, 1, 2, 3, 5, 6};
  NgramDrafter ngrams;
  Says filler({});
  DraftChain chain({&ngrams, &filler});
  Tokens text = {whole[0]};
  std::int64_t steps = 0;
  std::int64_t accepted = 0;
  while (text.size() < whole.size()) {
    const Tokens guess = draft(chain, text, 4);
    std::size_t held = 0;
    const std::size_t left = whole.size() - text.size();
    while (held < std::min(guess.size(), left - 1) && guess[held] == whole[text.size() + held]) {
      ++held;
    }
    ASSERT_TRUE(chain.accept(static_cast<std::int32_t>(held)).ok());
    for (std::size_t i = 0; i <= held; ++i) text.push_back(whole[text.size()]);
    accepted += static_cast<std::int64_t>(held);
    ++steps;
  }
  EXPECT_EQ(text, whole);
  const DraftMethodStats& stats = chain.statistics()[0];
  EXPECT_EQ(stats.calls, steps);
  EXPECT_EQ(stats.accepted, accepted);
  EXPECT_EQ(static_cast<std::int64_t>(whole.size()) - 1, accepted + steps);
  EXPECT_GT(accepted, 4);
  EXPECT_EQ(chain.statistics()[1].calls, stats.calls - stats.drafts);
  EXPECT_EQ(ngrams.check_integrity(), "");
}

}  // namespace
}  // namespace outrider
