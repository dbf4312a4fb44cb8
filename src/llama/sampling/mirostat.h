// Mirostat 1 and 2: a cut that keeps the text's surprise near a target.
//
// Idea. The surprise of a token is -log2 p. A bound mu on it cuts the distribution; after each
// token mu goes down by eta * (observed - tau), so that the mean surprise settles at tau bits.
// Version 2 keeps tokens whose surprise is at most mu. Version 1 first estimates the exponent s of
// a Zipf distribution from the best 100 tokens, and from s, mu and the vocabulary's size how many
// to keep.
//
// llama.cpp's samplers of that name draw a token inside apply and learn from it there. Here the
// draw is the acceptance rule's: truncate() only cuts, and accept() learns from the token's
// probability in the distribution that was cut last. The numbers are llama.cpp's
// (src/llama-sampler.cpp), with two differences in version 1, where llama.cpp's are not numbers:
// impossible candidates do not enter the estimate, and a count beyond the candidates keeps them
// all.
//
// Example, version 2, tau 5, so mu is 10 at first: of p = 0.5, 0.4998, 0.0002 the last has 12.3
// bits and goes. Token 0 is said: 1 bit (of 0.5002), so mu = 10 - 0.1 * (1 - 5) = 10.4.
//
// Cost. A sort of the row: 3 ms for 49,152 candidates, as in llama.cpp.
//
// Source: Basu, Ramachandran, Keskar, Varshney, "Mirostat: a neural text decoding algorithm that
// directly controls perplexity", arXiv 2007.14966. Tested by sampler_chain_test.cc and
// sampler_state_test.cc, against llama.cpp's over its own draws.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/types.h"
#include "llama.h"

namespace outrider::llama {

class Mirostat {
 public:
  // `version` 1 or 2; `n_vocab`: of the target's vocabulary.
  Mirostat(std::int32_t version, float tau, float eta, std::int32_t n_vocab)
      : version_(version), tau_(tau), eta_(eta), n_vocab_(n_vocab), mu_(2.0f * tau) {}

  // Cuts `candidates`, which are sorted by falling logit, and remembers what is left. At least one
  // stays if there was one.
  void truncate(std::vector<llama_token_data>& candidates);

  // Learns from `token`'s probability in what truncate() left last. Nothing, when it is not there.
  void accept(Token token);

  float mu() const { return mu_; }

 private:
  std::size_t count_by_zipf(const std::vector<llama_token_data>& candidates) const;
  std::size_t count_by_surprise(const std::vector<llama_token_data>& candidates) const;

  std::int32_t version_;
  float tau_;
  float eta_;
  std::int32_t n_vocab_;
  float mu_;
  std::vector<std::pair<Token, float>> last_;  // token and its probability
};

}  // namespace outrider::llama
