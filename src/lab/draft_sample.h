// The texts on which drafts are chosen: what the target itself says.
//
// Each prompt is answered by plain decoding. Every other text says which tokens a draft needs; the
// ones between are for measuring, so that no draft is measured on what it was made from. Tested by
// draft_sample_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/draft_walk.h"
#include "model/sampler.h"
#include "run/harness.h"

namespace outrider::lab {

// Prompts for a model of which nothing else is known: stories, letters, code, tables, questions,
// half of them of one kind each.
std::vector<FilePrompt> usual_prompts();

// Beginnings of `texts`, spread over them, at most `n`: of each piece of about a kilobyte, cut at a
// space. For models to go on with.
std::vector<FilePrompt> prompts_of(const std::vector<std::string>& texts, std::size_t n);

struct SampleOptions {
  std::vector<std::string> files;  // read_corpus()'s; empty: usual_prompts()
  SamplingOptions sampling;
  std::int64_t seed = 1;
  std::int32_t max_tokens = 96;  // of each text, >= 2
};

struct DraftSample {
  std::vector<std::string> texts;    // that say which tokens are needed, valid UTF-8
  std::vector<SaidText> walked;      // for measuring; not empty
  std::vector<TokenPrompt> prompts;  // of `walked`
  std::int64_t walked_tokens = 0;    // that were said in them
};

// Lets the target write; the watcher hears how far. With its chat template where it has one and
// no files are given. Errors: read_corpus()'s; kInvalidArgument where the files are empty or the
// target says next to nothing; kCancelled; the runtime's.
Result<DraftSample> write_sample(const Harness& harness, const SampleOptions& options);

}  // namespace outrider::lab
