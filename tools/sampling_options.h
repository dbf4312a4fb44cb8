// The options that say how tokens are chosen and when the text ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "model/sampler.h"

namespace outrider::tools {

struct SamplingArguments {
  SamplingOptions options;       // llama.cpp's defaults
  std::int64_t seed = -1;        // -1: random
  std::int32_t max_tokens = -1;  // -1: until the model ends or the context is full
  std::vector<std::string> stop;
};

// Adds them under "Sampling". `arguments` must outlive the parsing. `stop` strings are optional.
void add_sampling_options(CLI::App& app, SamplingArguments& arguments);
void add_stop_option(CLI::App& app, SamplingArguments& arguments);

// Throws UsageError for what is out of range.
void check_sampling(const SamplingArguments& arguments);

// The seed to use: the one given, or a random one below 2^32 (any JSON reader can hold that).
std::uint64_t chosen_seed(const SamplingArguments& arguments);

}  // namespace outrider::tools
