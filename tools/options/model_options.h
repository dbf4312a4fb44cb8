// The options that say which models run and how.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "draft/base/drafter_kind.h"
#include "model/model_options.h"

namespace outrider::tools {

struct ModelArguments {
  std::optional<std::string> model;
  std::optional<std::string> draft_model;
  // In the hub, "USER/REPO[:QUANT]", in place of the files; tools/fetch_models.h sets those.
  std::optional<std::string> hf_repo;
  std::optional<std::string> hf_repo_draft;
  ModelOptions target;
  // What the draft is called as a drafter: by its file's header, once name_draft() has read it.
  std::string_view draft_name = kDraftModelName;
  // Below 0 its context and threads are the target's.
  ModelOptions draft{.n_ctx = -1, .n_threads = -1};
};

// Adds -m, -d, -hf, -hfd and what belongs to them under "Model". `arguments` must outlive the
// parsing.
void add_model_options(CLI::App& app, ModelArguments& arguments);

// The same without the draft model's file and without workers, for a command that makes a draft for
// a target on this machine.
void add_lone_target_options(CLI::App& app, ModelArguments& arguments);

// The same for a command that opens no context: the models as arguments (also -m, -d), and what
// decides their memory and settings.
void add_inspected_models(CLI::App& app, ModelArguments& arguments);

// --exact, wherever the command's help has it.
void add_exact_option(CLI::App& app, const std::string& heading, ModelArguments& arguments);

// Whether a target (a draft model) is given, as a file or in the hub.
bool has_target(const ModelArguments& arguments);
bool has_draft(const ModelArguments& arguments);

// Adds the file at `path`, and where it is the first of a split model all of its files.
void add_model_files(std::vector<std::string>& files, const std::string& path);

// Those of the target and the draft that are given as files.
std::vector<std::string> model_files(const ModelArguments& arguments);

// A draft model '' becomes none. Throws UsageError when there is no target, and for names that
// cannot be one.
void require_model(ModelArguments& arguments);

// REQUIRES: there is a --model (a --draft-model); fetch_models() has passed
ModelOptions target_options(const ModelArguments& arguments);
ModelOptions draft_options(const ModelArguments& arguments);

}  // namespace outrider::tools
