// The options that say which models run and how.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "model/model_options.h"

namespace outrider::tools {

struct ModelArguments {
  std::optional<std::string> model;
  std::optional<std::string> draft_model;
  ModelOptions target;
  // Below 0 its context and threads are the target's.
  ModelOptions draft{.n_ctx = -1, .n_threads = -1};
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
