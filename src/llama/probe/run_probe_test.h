// A probe of a WrongModel, on the model's own clock.
#pragma once

#include <gtest/gtest.h>

#include "llama/probe/probe.h"
#include "testing/wrong_model.h"

namespace outrider::llama {

// Fails the test where the probe fails, or leaves anything in the model.
inline ProbeReport run_probe(testing::WrongModel& model, ProbeOptions options = {}) {
  if (!options.now_ms) options.now_ms = [&model] { return model.clock_ms(); };
  const Result<ProbeReport> report = probe_exactness(model, options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  for (SeqId seq = 0; seq < model.capabilities().n_sequences; ++seq) {
    EXPECT_EQ(model.length(seq), 0) << "the model is left empty";
  }
  return report.ok() ? *report : ProbeReport();
}

}  // namespace outrider::llama
