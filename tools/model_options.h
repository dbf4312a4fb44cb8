// The options that say which models run and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "model/model_options.h"

namespace outrider::tools {

struct ModelArguments {
  std::optional<std::string> model;
  std::optional<std::string> draft_model;
  std::int32_t ctx = 4096;
  std::int32_t threads = 0;
  std::int32_t batch = 512;
  std::int32_t gpu_layers = -1;
  std::string cache_type_k;  // empty: by the exactness rule
  std::string cache_type_v;
  std::string flash_attn = "auto";
  std::optional<std::int32_t> draft_ctx;      // as ctx
  std::optional<std::int32_t> draft_threads;  // as threads
  std::int32_t draft_gpu_layers = -1;
  std::string draft_cache_type_k;
  std::string draft_cache_type_v;
  std::string exact = "auto";
  std::optional<std::string> workers;  // "host:port,..."
  std::string kernels = "auto";
  bool isolate = false;
};

// Adds -m, -d and what belongs to them under "Model". `arguments` must outlive the parsing.
void add_model_options(CLI::App& app, ModelArguments& arguments);

// The same for a command that opens no context: the models as arguments (also -m, -d), and what
// decides their memory and settings.
void add_inspected_models(CLI::App& app, ModelArguments& arguments);

// --exact, wherever the command's help has it.
void add_exact_option(CLI::App& app, const std::string& heading, ModelArguments& arguments);

// Throws UsageError when there is no --model.
void require_model(const ModelArguments& arguments);

// REQUIRES: there is a --model (a --draft-model)
ModelOptions target_options(const ModelArguments& arguments);
ModelOptions draft_options(const ModelArguments& arguments);

}  // namespace outrider::tools
