// Random sampling options: every option of a chain, alone and together.
#pragma once

#include <random>

#include "model/sampler.h"

namespace outrider::testing {

// Valid options with any mixture of filters, penalties and biases; no mirostat, no constraint.
// Windows and lengths are short, so that they matter within a few tokens.
SamplingOptions random_filters(std::mt19937& random, std::int32_t n_vocab);

// The same, and with the chances that tests of whole requests need: greedy, mirostat, grammars and
// schemas that tiny vocabularies can say (testing/tiny_vocabulary.h), triggers.
SamplingOptions random_sampling(std::mt19937& random, std::int32_t n_vocab);

}  // namespace outrider::testing
