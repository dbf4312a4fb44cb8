// What a model is and what it needs, as far as its file tells, and whether a draft model fits it.
//
// No weights are read: a file's header and vocabulary are enough. Of a draft model it is measured
// what a token takes in each type of weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "draft/translated/vocabulary_map.h"
#include "json/json.h"
#include "lab/type_costs.h"
#include "llama/exactness/exactness_rule.h"
#include "llama/files/model_file.h"
#include "llama/kernels/own_kernels.h"
#include "model/model_options.h"

namespace outrider::lab {

// One model, as far as it can be known without running it.
struct InspectedModel {
  std::shared_ptr<llama::ModelFile> file;
  ModelOptions options;  // n_ctx: never 0
  llama::LoadPlan plan;
  std::string hint;  // why it may not be exact
  KernelUse kernels;
  std::uint64_t twice_bytes = 0;  // llama::RuleFacts::twice_bytes

  // Prediction layers (MTP) in the file, bytes of their tensors, and why they would not guess;
  // empty: they would.
  std::int32_t n_prediction = 0;
  std::uint64_t prediction_bytes = 0;
  std::string prediction_problem;

  // Of keys and values, for options.n_ctx tokens, and of the states of recurrent layers.
  std::uint64_t cache_bytes() const;
  std::uint64_t total_bytes() const;  // with the weights
};

// How a draft's vocabulary stands to the target's, and whether the draft can be one at all.
struct VocabularyFit {
  const char* kind = "different";
  bool usable = false;
  std::string message;                        // what differs, or why it is refused
  std::optional<VocabularyMap::Share> share;  // when only a part is the same
};

struct InspectedDraft {
  InspectedModel model;
  VocabularyFit fit;
  // A trained head in a file of its own: what it is ("EAGLE-3"), the target's layers whose inputs
  // it reads, and how many of the target's tokens it guesses.
  struct Head {
    std::string kind;
    std::string drafter;
    std::vector<std::int32_t> layers;
    std::int32_t n_tokens = 0;
  };
  std::optional<Head> head;
  TypeCosts types;      // empty: not measured
  Status types_status;  // why they could not be measured
};

struct Inspection {
  InspectedModel target;
  std::optional<InspectedDraft> draft;
};

// The target alone. Errors name the file; kCancelled by the hooks.
Result<Inspection> inspect(const ModelOptions& target, const LoadHooks& hooks);

// Adds the draft, which takes about a second. Errors, about the draft: those of inspect();
// kUnsupported and kDataLoss for a head that does not fit the target.
Status inspect_draft(const ModelOptions& draft, const LoadHooks& hooks, Inspection& inspection);

json::Json inspection_json(const Inspection& inspection);
std::string inspection_table(const Inspection& inspection);

}  // namespace outrider::lab
