// Which drafts are tried, and which is the best, on made-up figures.
#include "lab/draft_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace outrider::lab {
namespace {

DraftCandidate with_speed(const DraftMake& make, double speedup) {
  DraftCandidate candidate{.make = make};
  candidate.prediction = {.guesses = 1, .tokens = 1.5, .ms = 1.0, .speedup = speedup};
  return candidate;
}

// Smaller is faster, until too little is left.
double speed_of(const DraftMake& make) {
  double speed = 1.0;
  if (make.type == "q4_0") speed += 0.2;
  if (make.type == "q2_K") speed -= 0.2;
  if (make.n_tokens == 8192) speed += 0.3;
  if (make.n_tokens == 1024) speed -= 0.5;
  if (make.n_left_out == 2 && make.first_left_out > 3) speed += 0.1;
  if (make.n_left_out == 5) speed -= 0.7;
  return speed;
}

const DraftSearch kSearch = {
    .types = {"q4_0", "q2_K"}, .n_tokens = {8192, 1024}, .n_left_out = {2, 5}, .n_layers = 12};

TEST(DraftSearch, EachPartIsChosenWithTheOthersAtTheirBest) {
  const auto found = search_drafts(kSearch, [](const DraftMake& make) {
    return Result<DraftCandidate>(with_speed(make, speed_of(make)));
  });
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(static_cast<std::int32_t>(found->size()), kSearch.size());
  EXPECT_EQ((*found)[0].make, DraftMake()) << "the source as it is, first of all";
  for (const DraftCandidate& candidate : *found) {
    if (candidate.make.n_tokens > 0) {
      EXPECT_EQ(candidate.make.type, "q4_0");
    }
    if (candidate.make.n_left_out > 0) {
      EXPECT_EQ(candidate.make.n_tokens, 8192);
    }
  }
  const DraftMake best = (*found)[best_drafts(*found).front()].make;
  EXPECT_EQ(best.type, "q4_0");
  EXPECT_EQ(best.n_tokens, 8192);
  EXPECT_EQ(best.n_left_out, 2);
  EXPECT_GT(best.first_left_out, 3);
}

TEST(DraftSearch, WhatCannotBeUsedIsPassedOver) {
  const auto found = search_drafts(kSearch, [](const DraftMake& make) {
    DraftCandidate candidate = with_speed(make, make.type == "q4_0" ? 9.0 : speed_of(make));
    if (make.type == "q4_0") candidate.status = unsupported("it does not load");
    return Result<DraftCandidate>(candidate);
  });
  ASSERT_TRUE(found.ok());
  for (const std::size_t i : best_drafts(*found)) EXPECT_NE((*found)[i].make.type, "q4_0");
  EXPECT_EQ((*found)[3].make.type, "") << "the next part goes on with what works";
}

TEST(DraftSearch, AnErrorEndsIt) {
  int tried = 0;
  const auto found = search_drafts(kSearch, [&tried](const DraftMake& make) {
    if (++tried == 4) return Result<DraftCandidate>(cancelled("interrupted"));
    return Result<DraftCandidate>(with_speed(make, 1.0));
  });
  EXPECT_EQ(found.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(tried, 4);
}

TEST(DraftSearch, OfEquallyFastOnesTheSmallerFileIsBetter) {
  std::vector<DraftCandidate> two = {with_speed({}, 1.5), with_speed({.n_tokens = 8}, 1.5)};
  two[0].bytes = 200;
  two[1].bytes = 100;
  EXPECT_EQ(best_drafts(two), (std::vector<std::size_t>{1, 0}));
}

// For every number of layers and of those left out: in range, different, and the ends are kept.
TEST(PlacesToLeaveOut, AreInRangeAndKeepTheEndsWhereTheyCan) {
  for (std::int32_t n_layers = 2; n_layers < 40; ++n_layers) {
    for (std::int32_t n = 1; n < n_layers; ++n) {
      const std::vector<std::int32_t> places = places_to_leave_out(n, n_layers, 3);
      ASSERT_FALSE(places.empty());
      EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
      EXPECT_EQ(std::adjacent_find(places.begin(), places.end()), places.end());
      for (const std::int32_t place : places) {
        EXPECT_GE(place, n + 2 <= n_layers ? 1 : 0);
        EXPECT_LE(place + n, n_layers - (n + 2 <= n_layers ? 1 : 0)) << n << " of " << n_layers;
      }
    }
  }
}

TEST(MakeText, SaysWhatWasDone) {
  EXPECT_EQ(make_text({}), "as it is");
  EXPECT_EQ(make_text({.type = "q4_0"}), "q4_0");
  EXPECT_EQ(make_text({.n_tokens = 8, .first_left_out = 3, .n_left_out = 1}),
            "8 tokens, without layer 3");
  EXPECT_EQ(make_text({.type = "q8_0", .first_left_out = 3, .n_left_out = 2}),
            "q8_0, without layers 3-4");
}

}  // namespace
}  // namespace outrider::lab
