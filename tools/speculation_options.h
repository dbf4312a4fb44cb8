// The options that say who guesses ahead, and how far.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/request.h"
#include "tools/model_options.h"
#include "tools/ngram_options.h"
#include "tools/options.h"
#include "tools/session.h"

namespace outrider::tools {

struct SpeculationArguments {
  std::string drafter = "auto";
  std::string rule = "coupled";
  NgramArguments ngrams;
  DraftShape shape;
  CLI::Option* branches = nullptr;  // --branches, to know whether it was given
  std::string width = "auto";
  std::vector<std::string> suffix_stores;  // files
};

// --drafter, --suffix-store, --ngram-static and --ngram-dynamic under "Speculation". `automatic`:
// what auto and none mean, for the help.
void add_drafter_options(CLI::App& app, SpeculationArguments& arguments,
                         const std::string& automatic);
// Throws UsageError for an expression that is none, and for what a drafter would need or has no use
// for. `automatic`: what "auto" stands for.
void check_drafters(const SpeculationArguments& arguments, const ModelArguments& model,
                    const DrafterPlan& automatic);

// Adds them and --exact under "Speculation". Both arguments must outlive the parsing.
void add_speculation_options(CLI::App& app, SpeculationArguments& arguments, ModelArguments& model);
// --width as a list, rising when parsed; the default is run's. REQUIRES: `widths` empty.
void add_widths_option(CLI::App& app, std::vector<std::int32_t>& widths);
// How the draft model's trees branch, and where drafting stops.
// Returns --branches.
CLI::Option* add_tree_options(CLI::App& app, DraftShape& shape);
// --suffix-store, for every command that takes it.
void add_suffix_store_option(OptionGroup& group, std::vector<std::string>& files);

// Throws UsageError for files that no drafter of the plan reads. `drafter`: the plan as it was
// given.
void check_suffix_stores(const std::vector<std::string>& files, const DrafterPlan& plan,
                         const std::string& drafter);
// Throws UsageError for what is out of range.
void check_shape(const DraftShape& shape);

// Throws UsageError for what is out of range, and what check_drafters does.
void check_speculation(const SpeculationArguments& arguments, const ModelArguments& model);

// What the options come to.
struct SpeculationPlan {
  bool use_draft_model = false;
  bool use_suffix = false;
  bool use_recycle = false;
  bool use_ngrams = false;
  DrafterPlan drafters;    // how they go together
  std::int32_t width = 1;  // tokens of a target step at most; 1: no speculation
  std::string off_reason;  // why there is none; empty when there is
};

// The drafters of `plan`, with their files, as what a session is opened with.
void choose_drafters(const SpeculationPlan& plan, const SpeculationArguments& arguments,
                     const ModelArguments& model, SessionOptions& session);

// Who is used for `drafters`. Only the drafters are set.
SpeculationPlan plan_drafters(DrafterPlan drafters);

// None for "none". REQUIRES: checked
DrafterPlan chosen_drafters(const SpeculationArguments& arguments);

// The shape of --branches and the like for this width; without --branches that of
// set_default_branches(). REQUIRES: checked
DraftShape chosen_shape(const SpeculationArguments& arguments, std::int32_t width);
// For the width of --width.
DraftShape chosen_shape(const SpeculationArguments& arguments);

// REQUIRES: checked
AcceptanceRule chosen_rule(const SpeculationArguments& arguments);

// REQUIRES: checked
SpeculationPlan plan_speculation(const SpeculationArguments& arguments,
                                 const ModelArguments& model);

// What a target is opened for when the planner chooses. Measured costs are kept for it.
inline constexpr std::int32_t kOpenedWidth = 16;

// The width of --width. REQUIRES: checked
std::int32_t chosen_width(const SpeculationArguments& arguments);

// The same, but with plain decoding (1) the default, and 16 with auto: a target is opened for this
// width, whether it is used or not, so that its settings do not depend on that.
std::int32_t opened_width(const SpeculationArguments& arguments);

}  // namespace outrider::tools
