#include "lab/draft_pieces.h"

#include <algorithm>
#include <utility>

#include "draft/translated/vocabulary_map.h"
#include "lab/type_costs.h"
#include "llama/files/gguf_family.h"
#include "llama/files/gguf_header.h"
#include "llama/files/model_file.h"
#include "llama/gguf/gguf_file.h"
#include "llama/gguf/vocabulary_cut.h"

namespace outrider::lab {
namespace {

// The cheapest ones; the others lose more guesses than they gain.
constexpr std::size_t kMostTypes = 3;
// Where our kernels are not used, so that nothing can be measured.
constexpr const char* kUsualTypes[] = {"q4_0", "q8_0"};
// Of the vocabulary, halved so often.
constexpr std::int32_t kHalvings = 5;
// Of the layers, so many sixths at most.
constexpr std::int32_t kSixths = 4;

std::vector<std::string> cheap_types(const MakeDraftPlan& plan, const gguf::DraftSource& source,
                                     std::vector<std::string>& notes) {
  std::vector<std::string> types;
  const Result<TypeCosts> costs =
      measure_type_costs(plan.source, std::max(1, used_threads(plan.draft)));
  if (costs.ok()) {
    for (const TypeCost& cost : costs->types) types.push_back(cost.type);
  } else {
    notes.push_back("types of weights were not measured: " + costs.status().message());
  }
  if (types.empty()) types.assign(std::begin(kUsualTypes), std::end(kUsualTypes));
  std::erase(types, source.type);
  if (types.size() > kMostTypes) types.resize(kMostTypes);
  return types;
}

std::vector<std::int32_t> usual_sizes(const DraftTokens& tokens) {
  std::vector<std::int32_t> sizes;
  for (std::int32_t i = 1; i <= kHalvings; ++i) {
    const std::int32_t n = tokens.size() >> i;
    if (n > tokens.least() + tokens.least() / 4) sizes.push_back(n);
  }
  if (tokens.least() < tokens.size()) sizes.push_back(tokens.least());
  return sizes;
}

std::vector<std::int32_t> usual_layers(std::int32_t n_layers) {
  std::vector<std::int32_t> left_out;
  for (std::int32_t i = 1; i <= kSixths; ++i) {
    const std::int32_t n = n_layers * i / 6;
    if (n > 0 && (left_out.empty() || left_out.back() != n)) left_out.push_back(n);
  }
  return left_out;
}

}  // namespace

Result<gguf::DraftSource> read_source(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(gguf::DraftSource source, gguf::read_draft_source(path));
  OUTRIDER_ASSIGN_OR_RETURN(const llama::GgufHeader header, llama::read_gguf_header(path));
  OUTRIDER_RETURN_IF_ERROR(llama::check_can_draft(path, header.architecture));
  return source;
}

struct DraftTokens::Parts {
  explicit Parts(gguf::FileVocabulary file) : vocabulary(std::move(file)), needed(vocabulary) {}

  gguf::FileVocabulary vocabulary;
  gguf::TokenSelection needed;
};

DraftTokens::DraftTokens(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
DraftTokens::~DraftTokens() = default;

Result<std::unique_ptr<DraftTokens>> DraftTokens::create(const std::string& source,
                                                         const std::vector<std::string>& texts,
                                                         const Watcher& watcher) {
  watcher.update("cutting the sample into tokens", 0.0);
  const Result<std::shared_ptr<llama::ModelFile>> model =
      llama::ModelFile::load_vocabulary(source, {});
  if (!model.ok()) return model.status();
  const Vocabulary& own = (*model)->text_vocabulary();
  const Result<gguf::GgufReader> file = gguf::GgufReader::open(source);
  if (!file.ok()) return file.status();
  Result<gguf::FileVocabulary> listed = gguf::FileVocabulary::read(*file);
  if (!listed.ok()) return listed.status();
  std::unique_ptr<Parts> parts = std::make_unique<Parts>(*std::move(listed));
  for (Token token = 0; token < own.size(); ++token) {
    if (own.is_end_of_generation(token)) parts->needed.keep(token);
  }
  const auto keep = [&](std::string_view text, bool parse_special) -> Status {
    const Result<std::vector<Token>> tokens =
        own.tokenize(text, /*add_special=*/true, parse_special);
    if (!tokens.ok()) return tokens.status();
    for (const Token token : *tokens) parts->needed.keep(token);
    return Status();
  };
  // By which a pair of vocabularies is judged when it is loaded.
  OUTRIDER_RETURN_IF_ERROR(keep(vocabulary_sample(), false));
  for (const std::string& text : texts) OUTRIDER_RETURN_IF_ERROR(keep(text, false));
  return std::unique_ptr<DraftTokens>(new DraftTokens(std::move(parts)));
}

std::int32_t DraftTokens::size() const { return parts_->vocabulary.size(); }

std::int32_t DraftTokens::least() const { return static_cast<std::int32_t>(parts_->needed.size()); }

std::vector<Token> DraftTokens::chosen(std::int32_t n) const {
  gguf::TokenSelection selection = parts_->needed;
  selection.fill(static_cast<std::size_t>(n));
  return selection.kept();
}

Result<DraftSearch> search_space(const MakeDraftPlan& plan, const gguf::DraftSource& source,
                                 const DraftTokens* tokens, std::vector<std::string>& notes) {
  DraftSearch search{.n_layers = source.n_layers};
  search.types = plan.types ? *plan.types : cheap_types(plan, source, notes);
  if (plan.n_tokens) {
    search.n_tokens = *plan.n_tokens;
    if (tokens == nullptr && !search.n_tokens.empty()) return source.cuts_tokens;
    for (const std::int32_t n : search.n_tokens) {
      if (n >= tokens->least() && n < tokens->size()) continue;  // NOLINT: not null here
      return invalid_argument("--vocabulary has " + std::to_string(n) + ", but '" + plan.source +
                              "' can have " + std::to_string(tokens->least()) +
                              " (what the sample needs) to " + std::to_string(tokens->size() - 1) +
                              " of its " + std::to_string(tokens->size()) + " tokens");
    }
  } else if (tokens != nullptr) {
    search.n_tokens = usual_sizes(*tokens);
  } else {
    notes.push_back(source.cuts_tokens.message());
  }
  if (plan.n_left_out) {
    search.n_left_out = *plan.n_left_out;
    if (!search.n_left_out.empty() && !source.cuts_layers.ok()) return source.cuts_layers;
    for (const std::int32_t n : search.n_left_out) {
      if (n > 0 && n < source.n_layers) continue;
      return invalid_argument("--leave-out has " + std::to_string(n) + ", but '" + plan.source +
                              "' has " + std::to_string(source.n_layers) +
                              " layers, of which 1 to " + std::to_string(source.n_layers - 1) +
                              " can be left out");
    }
  } else if (source.cuts_layers.ok()) {
    search.n_left_out = usual_layers(source.n_layers);
  } else {
    notes.push_back(source.cuts_layers.message());
  }
  return search;
}

}  // namespace outrider::lab
