// The options that say how tokens are chosen and when the text ends.
#pragma once

#include <cstdint>
#include <optional>
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
  std::int32_t logprobs = -1;  // -1: none

  // Filters and penalties, which mirostat takes the place of.
  std::vector<const CLI::Option*> filters;

  // As given; check_sampling and read_constraint put them into `options`.
  std::vector<std::string> logit_bias;  // "15043+1", "15043-inf"
  std::vector<std::string> dry_breakers;
  std::optional<std::string> grammar_file;
  std::optional<std::string> schema_file;
};

// Adds them under "Sampling". `arguments` must outlive the parsing. Not every command has stop
// strings and log-probabilities.
void add_sampling_options(CLI::App& app, SamplingArguments& arguments);
void add_stop_option(CLI::App& app, SamplingArguments& arguments);
void add_logprobs_option(CLI::App& app, SamplingArguments& arguments);

// Throws UsageError for what is out of range or cannot be combined.
void check_sampling(SamplingArguments& arguments);

// Reads the files of --grammar and --json-schema and checks what they hold. Returns kDone; or
// kFailed (a file cannot be read) or kWrongUsage (it is no grammar or schema that can be used),
// and has said why.
int read_constraint(SamplingArguments& arguments);

// The seed to use: the one given, or a random one below 2^32 (any JSON reader can hold that).
std::uint64_t chosen_seed(const SamplingArguments& arguments);

}  // namespace outrider::tools
