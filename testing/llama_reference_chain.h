// The sampler chain as llama.cpp builds it (common_sampler_init), to compare with: every sampler in
// its place, all candidates of the row, nothing prepared and nothing left out. Slow and obvious.
//
// What draws random numbers inside apply is told what to draw: whether XTC takes part is the
// caller's to say, and mirostat is not here.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "llama/base/handles.h"
#include "model/sampler.h"

namespace outrider::testing {

class LlamaReferenceChain {
 public:
  // REQUIRES: valid options without a schema, without mirostat.
  LlamaReferenceChain(const SamplingOptions& options, const llama_vocab* vocab,
                      std::vector<Token> never);

  // What is left of `row`, in llama.cpp's order.
  std::vector<llama_token_data> apply(const std::vector<float>& row, bool xtc_takes_part);

  // `said`: not part of the prompt.
  void accept(Token token, bool said);

 private:
  llama::SamplerHandle grammar_;  // null: none
  llama::SamplerHandle before_;
  llama::SamplerHandle typical_;  // and what follows up to XTC
  bool drops_impossible_;         // before typical_, which does not bear p = 0 (docs/bugs.md)
  llama::SamplerHandle xtc_;
  llama::SamplerHandle after_;
};

}  // namespace outrider::testing
