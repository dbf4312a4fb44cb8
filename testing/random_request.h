// Requests and options for the tests of the runtime on tiny files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/model_options.h"
#include "request/completion_request.h"

namespace outrider::testing {

// The file at `path` on one thread, for steps of up to eight tokens.
inline ModelOptions small_options(const std::string& path) {
  ModelOptions o;
  o.path = path;
  o.n_ctx = 256;
  o.n_batch = 64;
  o.n_threads = 1;
  o.widest = 8;
  return o;
}

// The i-th request of a seed, for plain decoding: `beginnings` are shared, options vary. Of its key
// the numbers from 7 on are not used.
inline CompletionRequest random_request(std::uint64_t seed, std::uint32_t i,
                                        const std::vector<std::string>& beginnings) {
  const NoiseKey key = noise_key(seed, i);
  CompletionRequest r;
  r.prompt.emplace_back(beginnings[noise_bits(key, 0) % beginnings.size()] +
                        std::to_string(noise_bits(key, 1) % 5));
  r.seed = i;
  r.max_tokens = 1 + static_cast<std::int32_t>(noise_bits(key, 2) % 40);
  r.sampling.temperature = static_cast<float>(noise_bits(key, 3) % 3) * 0.6f;
  if (noise_bits(key, 4) % 3 == 0) r.sampling.repeat_penalty = 1.2f;
  if (noise_bits(key, 5) % 4 == 0) r.stop = {"e", "12"};
  if (noise_bits(key, 6) % 6 == 0) r.sampling.grammar = "root ::= [a-z ]+";
  r.speculative = false;
  return r;
}

}  // namespace outrider::testing
