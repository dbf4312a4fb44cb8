// What a probe of a context computes with, and when its verdict is kept.
#include "llama/probe_setup.h"

#include <gtest/gtest.h>

namespace outrider::llama {
namespace {

TEST(ProbeSetup, AProbeComputesOnAllThreadsThatItsVerdictIsFor) {
  for (const threads::Cores cores : {threads::Cores::kAsked, threads::Cores::kLeft}) {
    ModelOptions options;
    options.n_threads = 2;
    ContextSettings settings;
    settings.cores = cores;
    make_probe_context(/*widest=*/8, /*deepest=*/520, &options, &settings);
    EXPECT_EQ(settings.cores, threads::Cores::kAsked);
    EXPECT_EQ(options.n_threads, 2);
  }
}

TEST(ProbeSetup, AVerdictIsNotKeptWhereGraphsTookFewerThreadsMeanwhile) {
  EXPECT_TRUE(may_keep_verdict(0, 0));
  EXPECT_TRUE(may_keep_verdict(7, 7)) << "those were before";
  EXPECT_FALSE(may_keep_verdict(7, 8));
}

TEST(ProbeSetup, AContextHoldsTwoOfTheWidestBatchesBehindTheDeepestStart) {
  ModelOptions options;
  options.n_batch = 64;
  options.n_sequences = 8;
  options.n_ctx = 100000;
  ContextSettings settings;
  make_probe_context(/*widest=*/16, /*deepest=*/520, &options, &settings);
  EXPECT_GE(settings.n_cells, 520 + 2 * 16);
  EXPECT_LT(settings.n_cells, 1000);
  EXPECT_EQ(options.n_ctx, settings.n_cells);
  EXPECT_EQ(options.n_sequences, 3);
  EXPECT_EQ(options.n_batch, 64);
  EXPECT_EQ(settings.max_width, 16);
  EXPECT_TRUE(settings.for_probe);
}

TEST(ProbeSetup, WhatACacheNeverHoldsIsNotAskedAbout) {
  EXPECT_EQ(probe_starts(4096), (std::vector<std::int32_t>{24, 254, 520}));
  EXPECT_EQ(probe_starts(524), (std::vector<std::int32_t>{24, 254, 520}));
  EXPECT_EQ(probe_starts(523), (std::vector<std::int32_t>{24, 254}));
  EXPECT_EQ(probe_starts(16), (std::vector<std::int32_t>{24}));
}

}  // namespace
}  // namespace outrider::llama
