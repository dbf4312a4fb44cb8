// Who guesses for a request, and what its result says of who does not.
#include "serve/drafter_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "request/draft_defaults.h"
#include "serve/parts_test.h"

namespace outrider {
namespace {

using testing::model;

class DrafterChoiceTest : public testing::RuntimePartsTest {
 protected:
  DraftersThere there(bool is_current = true) const {
    return {.station = *station_,
            .is_current = is_current,
            .draft = parts_.models.task(ModelRole::kDraft),
            .files = parts_.files};
  }
  DrafterChoice choice(const DrafterPlan& named, AcceptanceRule rule, bool is_current,
                       bool speculative = true) const {
    Job job;
    job.speculative = speculative;
    job.request.drafters = named;
    job.request.rule = rule;
    return choose_drafters(job, there(is_current));
  }
  // What is missing for a request that names none.
  std::string missing(AcceptanceRule rule = AcceptanceRule::kCoupled,
                      bool is_current = true) const {
    return choice({}, rule, is_current).missing;
  }
  // For one that names this drafter.
  std::string missing_of(const std::string& name, bool is_current = true) const {
    return choice({{{name}}}, AcceptanceRule::kCoupled, is_current).missing;
  }
  std::string drafters(const DrafterPlan& named) const {
    return to_string(choice(named, AcceptanceRule::kCoupled, true).drafters);
  }
};

TEST_F(DrafterChoiceTest, WhatARequestNamesIsTakenAsItIsAndElseThoseThatGuessUnasked) {
  EXPECT_EQ(drafters({{{"recycle", "suffix"}}}), "recycle/suffix");
  const DrafterPlan unasked = automatic_drafters(AcceptanceRule::kCoupled, {});
  EXPECT_EQ(drafters({}), to_string(unasked));
  EXPECT_TRUE(unasked.mentions("suffix"));
  EXPECT_FALSE(unasked.mentions("recycle"));
}

TEST_F(DrafterChoiceTest, WhoAsksForNoSpeculationMissesNothing) {
  fail_draft("no file");
  for (const DrafterPlan& named : {DrafterPlan(), DrafterPlan{{{"mtp"}}}}) {
    const DrafterChoice plain = choice(named, AcceptanceRule::kCoupled, true, false);
    EXPECT_EQ(plain.missing, "");
  }
}

TEST_F(DrafterChoiceTest, ADraftModelThatNobodyWantedIsMissedOnlyWhereNothingElseCanGuess) {
  EXPECT_EQ(missing(), "");
  EXPECT_EQ(missing(AcceptanceRule::kRejection), "no draft model is loaded");
  EXPECT_EQ(missing_of("draft-model"), "no draft model is loaded");
}

TEST_F(DrafterChoiceTest, ADraftModelThatWasWantedIsMissedUntilItIsThere) {
  parts_.models.load(ModelRole::kDraft, model("draft"));
  const std::string loading = "the draft model was still loading when the request began";
  EXPECT_EQ(missing(), loading);
  EXPECT_EQ(missing_of("draft-model"), loading);
  open_draft();
  EXPECT_EQ(missing(), loading) << "it is on its way to the station";
  drop_changes();
  ASSERT_TRUE(station_->set_draft(new_draft(), "").ok());
  EXPECT_EQ(missing(), "");
  EXPECT_EQ(missing(AcceptanceRule::kRejection), "");
  EXPECT_EQ(missing_of("draft-model"), "");
  EXPECT_EQ(missing_of("eagle3"), "the draft 'draft' is the drafter draft-model, not eagle3");
}

TEST_F(DrafterChoiceTest, ADraftModelThatCouldNotBeLoadedIsMissedWithTheReason) {
  fail_draft("no file");
  EXPECT_EQ(missing(), "the draft model could not be loaded: no file");
  EXPECT_EQ(missing_of("draft-model"), "the draft model could not be loaded: no file");
  EXPECT_EQ(missing_of("suffix"), "") << "who names another one does not miss it";
}

TEST_F(DrafterChoiceTest, AFileThatCouldNotBeUsedIsNamedToWhoWouldHaveIt) {
  attach_file("a store", not_found("no file"));
  const std::string why = "the file 'a store' of 'suffix' could not be used: no file";
  EXPECT_EQ(missing(), why);
  EXPECT_EQ(missing_of("suffix"), why);
  EXPECT_EQ(missing_of("recycle"), "");
  EXPECT_EQ(missing(AcceptanceRule::kRejection), "no draft model is loaded")
      << "suffix does not guess there";
  fail_draft("none");
  EXPECT_EQ(missing(), "the draft model could not be loaded: none; " + why);
}

TEST_F(DrafterChoiceTest, OfAReplacedTargetNothingThatIsLoadedNowIsToldOf) {
  fail_draft("no file");
  attach_file("a store", not_found("no file"));
  const std::string replaced = "its target was replaced, and has no draft model";
  EXPECT_EQ(missing(AcceptanceRule::kCoupled, /*is_current=*/false), replaced);
  EXPECT_EQ(missing_of("draft-model", /*is_current=*/false), replaced);
  EXPECT_EQ(missing_of("suffix", /*is_current=*/false), "");
}

TEST_F(DrafterChoiceTest, EachNamedDrafterThatIsNotThereHasItsReason) {
  EXPECT_EQ(missing_of("mtp"), station_->target()->no_head_reason());
  EXPECT_EQ(missing_of("an app's own"), "'an app's own' is not attached");
  EXPECT_EQ(choice({{{"draft-model", "suffix"}, {"mtp"}}}, AcceptanceRule::kCoupled, true).missing,
            "no draft model is loaded; " + station_->target()->no_head_reason());
}

}  // namespace
}  // namespace outrider
