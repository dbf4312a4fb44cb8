#include "llama/sampling/sampler_chain.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <exception>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/types.h"
#include "llama/base/handles.h"
#include "llama/grammar/gbnf.h"
#include "llama/grammar/grammar_mask.h"
#include "llama/sampling/candidates.h"
#include "llama/sampling/mirostat.h"
#include "llama/sampling/row_edits.h"
#include "llama/sampling/sampler_plan.h"
#include "llama/schema/json_schema.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {
namespace {

constexpr std::uint64_t kXtcStream = 0x787463;  // "xtc": apart from the draws of the rules
constexpr std::size_t kFirstBatch = 64;         // candidates that a grammar is asked about first

// The largest finite magnitude; 0: there is none.
float largest_logit(std::span<const llama_token_data> candidates) {
  float largest = 0.0f;
  for (const llama_token_data& c : candidates) {
    if (std::isfinite(c.logit)) largest = std::max(largest, std::fabs(c.logit));
  }
  return largest;
}

// In place of a division whose quotients would be infinite: times a power of two, to less than
// 2^121. Order and ties stay, to the bit, and all but the best have no chance either way.
void scale_up(std::span<llama_token_data> candidates, float largest) {
  if (largest == 0.0f) return;
  const int exponent = 120 - std::ilogb(largest);
  for (llama_token_data& c : candidates) c.logit = std::ldexp(c.logit, exponent);
}

class ChainSampler : public Sampler {
 public:
  ChainSampler(const SamplerPlan& plan, SamplerFilters filters, RowEdits edits,
               std::unique_ptr<GrammarMask> grammar, std::optional<Mirostat> mirostat)
      : plan_(plan),
        filters_(std::move(filters)),
        edits_(std::move(edits)),
        grammar_(std::move(grammar)),
        mirostat_(std::move(mirostat)) {}

  void begin(std::span<const Token> prompt, std::uint64_t seed) override {
    seed_ = seed;
    position_ = prompt.size();
    edits_.accept(prompt);
  }

  Distribution apply(std::span<const float> logits) override {
    if (!status().ok()) return {};
    try {
      return apply_all(logits);
    } catch (const std::exception& error) {
      status_ = internal_error(std::string("a sampler failed: ") + error.what());
      return {};
    }
  }

  void accept(Token token) override {
    ++position_;
    edits_.accept(token);
    if (grammar_) grammar_->accept(token);
    if (mirostat_) mirostat_->accept(token);
  }

  Status status() const override {
    return !status_.ok() || !grammar_ ? status_ : grammar_->status();
  }

  bool greedy() const override { return plan_.greedy; }
  bool has_state() const override {
    const bool xtc_draws = plan_.xtc_probability > 0.0f && plan_.xtc_probability < 1.0f;
    return edits_.has_history() || grammar_ != nullptr || mirostat_.has_value() || xtc_draws;
  }

  std::unique_ptr<Sampler> clone() const override {
    SamplerFilters filters{.before = clone_sampler(filters_.before),
                           .xtc = clone_sampler(filters_.xtc),
                           .after = clone_sampler(filters_.after)};
    std::unique_ptr<ChainSampler> copy =
        std::make_unique<ChainSampler>(plan_, std::move(filters), edits_.clone(),
                                       grammar_ ? grammar_->clone() : nullptr, mirostat_);
    copy->seed_ = seed_;
    copy->position_ = position_;
    copy->status_ = status_;
    return copy;
  }

 private:
  Distribution apply_all(std::span<const float> logits) {
    std::span<const float> row = edits_.apply(logits);
    const GrammarMask* grammar = grammar_ && grammar_->masks() ? grammar_.get() : nullptr;
    if (plan_.kind == ChainKind::kDense) return dense(grammar ? masked(row, *grammar) : row);
    if (plan_.kind == ChainKind::kGreedy && !grammar) return take_greedy(row);
    candidates_.clear();
    bool prepared = prepare(row, grammar);
    if (!prepared && grammar) {  // too few of the best are allowed: mask them all
      row = masked(row, *grammar);
      if (plan_.kind == ChainKind::kGreedy) return take_greedy(row);
      prepared = prepare(row, nullptr);
    }
    if (plan_.kind == ChainKind::kGreedy) return best_candidate();
    if (!prepared && !take_all(row)) return {};
    return filtered(prepared && plan_.first == ChainFirst::kTopK);
  }

  Distribution dense(std::span<const float> row) const {
    return {.logits = row, .tokens = {}, .scale = plan_.scale};
  }

  Distribution take_greedy(std::span<const float> row) {
    const std::ptrdiff_t best = argmax(row);
    if (best < 0) return {};
    return one(static_cast<Token>(best), row[static_cast<std::size_t>(best)]);
  }

  Distribution best_candidate() {
    const llama_token_data* best = &candidates_.front();  // in the order of their ids
    for (const llama_token_data& c : candidates_) best = c.logit > best->logit ? &c : best;
    return one(best->id, best->logit);
  }

  Distribution one(Token token, float logit) {
    tokens_.assign(1, token);
    logits_.assign(1, logit);
    return {.logits = logits_, .tokens = tokens_};
  }

  std::span<const float> masked(std::span<const float> row, const GrammarMask& grammar) {
    masked_.assign(row.begin(), row.end());
    grammar.mask_row(masked_);
    return masked_;
  }

  bool take_all(std::span<const float> row) {
    bool possible = false;
    candidates_.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      const float logit = std::isnan(row[i]) ? kRuledOut : row[i];
      candidates_.push_back({.id = static_cast<llama_token>(i), .logit = logit, .p = 0.0f});
      possible = possible || logit > kRuledOut;
    }
    return possible;
  }

  // Puts what the first of the chain leaves into candidates_, if a scan can tell.
  bool prepare(std::span<const float> row, const GrammarMask* grammar) {
    if (plan_.kind == ChainKind::kFilters && plan_.first == ChainFirst::kOther) return false;
    scan_.begin(row);
    if (plan_.kind == ChainKind::kGreedy) return take_best(1, grammar);
    if (plan_.first == ChainFirst::kMinP) return take_min_p(grammar);
    return take_best(plan_.top_k, grammar) && cut_to_top_k();
  }

  // All allowed values that reach a threshold which at least `n` of them reach, in the order of
  // their ids.
  bool take_best(std::size_t n, const GrammarMask* grammar) {
    for (std::size_t batch = grammar ? std::max(n, kFirstBatch) : n;; batch *= 8) {
      const float threshold = scan_.reached_by(batch);
      if (threshold == kRuledOut) return false;
      threshold_ = threshold;
      candidates_.clear();
      scan_.collect(threshold, candidates_);
      if (grammar) grammar->filter(candidates_);
      if (candidates_.size() >= n) return true;
    }
  }

  // The k best, sorted. False when they or their order are not determined by the values alone.
  bool cut_to_top_k() {
    std::sort(
        candidates_.begin(), candidates_.end(),
        [](const llama_token_data& a, const llama_token_data& b) { return a.logit > b.logit; });
    const std::size_t last = std::min(plan_.top_k, candidates_.size() - 1);
    for (std::size_t i = 0; i < last; ++i) {
      if (candidates_[i].logit == candidates_[i + 1].logit) return false;
    }
    candidates_.resize(plan_.top_k);
    return true;
  }

  // What min-p leaves of an unsorted row (llama_sampler_min_p_apply), which the sampler then finds
  // to be all.
  bool take_min_p(const GrammarMask* grammar) {
    if (!grammar) {
      const float best = scan_.best();
      if (best == kRuledOut) return false;
      scan_.collect(best + plan_.log_min_p, candidates_);
      return !candidates_.empty();
    }
    if (!take_best(1, grammar)) return false;
    float best = kRuledOut;
    for (const llama_token_data& c : candidates_) best = std::max(best, c.logit);
    const float least = best + plan_.log_min_p;
    if (least < threshold_) {
      candidates_.clear();
      scan_.collect(least, candidates_);
      grammar->filter(candidates_);
    } else {
      std::erase_if(candidates_, [least](const llama_token_data& c) { return c.logit < least; });
    }
    return !candidates_.empty();
  }

  Distribution filtered(bool sorted) {
    llama_token_data_array array{
        .data = candidates_.data(), .size = candidates_.size(), .selected = -1, .sorted = sorted};
    if (filters_.before) llama_sampler_apply(filters_.before.get(), &array);
    if (filters_.xtc && xtc_takes_part()) llama_sampler_apply(filters_.xtc.get(), &array);
    if (filters_.after) apply_temperature(array);
    if (mirostat_) {
      candidates_.resize(array.size);  // nothing before it moves the array's beginning
      mirostat_->truncate(candidates_);
      array = {
          .data = candidates_.data(), .size = candidates_.size(), .selected = -1, .sorted = true};
    }
    logits_.resize(array.size);
    tokens_.resize(array.size);
    for (std::size_t i = 0; i < array.size; ++i) {
      logits_[i] = array.data[i].logit;
      tokens_[i] = array.data[i].id;
    }
    return {.logits = logits_, .tokens = tokens_};
  }

  // llama.cpp's, unless it would make a logit infinite: of those the lowest id would be the best.
  void apply_temperature(llama_token_data_array& array) {
    const std::span<llama_token_data> candidates(array.data, array.size);
    if (candidates.empty()) return;
    const float largest = largest_logit(candidates);
    const bool divides = plan_.greedy || std::isfinite(largest / plan_.least_temperature);
    if (divides || plan_.dynamic) {
      if (!divides) undivided_.assign(candidates.begin(), candidates.end());
      llama_sampler_apply(filters_.after.get(), &array);
      // One that depends on the entropy sorts: the first is the best.
      if (divides || std::isfinite(array.data[0].logit)) return;
      std::copy(undivided_.begin(), undivided_.end(), array.data);
      array.sorted = false;
    }
    scale_up(candidates, largest);
  }

  // llama.cpp draws from [0, 1) and lets XTC take part when that is at most the probability.
  bool xtc_takes_part() const {
    const double chance = noise_uniform(noise_key(seed_, position_, kXtcStream), 0);
    return chance <= static_cast<double>(plan_.xtc_probability);
  }

  SamplerPlan plan_;
  SamplerFilters filters_;
  RowEdits edits_;
  std::unique_ptr<GrammarMask> grammar_;  // null: none
  std::optional<Mirostat> mirostat_;
  std::uint64_t seed_ = 0;
  std::uint64_t position_ = 0;  // in the text, of the token to be chosen
  Status status_;

  CandidateScan scan_;
  std::vector<llama_token_data> candidates_;
  std::vector<llama_token_data> undivided_;  // candidates, where the temperature may be too low
  float threshold_ = 0.0f;                   // of the last take_best()
  std::vector<float> masked_;
  std::vector<float> logits_;  // the result
  std::vector<Token> tokens_;
};

// What is wrong with a grammar that we made, of which the client knows only the schemas.
Status refused_made(const Status& why, const char* field) {
  return why.with_context("the grammar that is made of the schemas").in_field(field);
}

Result<std::unique_ptr<GrammarMask>> make_grammar(const SamplingOptions& o,
                                                  const LlamaVocabulary* vocabulary) {
  if (!o.constrained()) return std::unique_ptr<GrammarMask>();
  const char* field = !o.chat_grammar.gbnf.empty() ? "tools"
                      : o.grammar.empty()          ? "json_schema"
                                                   : "grammar";
  if (vocabulary == nullptr) {
    return refused(field, "needs a vocabulary, and this sampler has none");
  }
  if (!o.chat_grammar.gbnf.empty()) {
    Result<std::unique_ptr<GrammarMask>> mask = GrammarMask::create(o.chat_grammar, *vocabulary);
    if (!mask.ok()) return refused_made(mask.status(), field);
    return mask;
  }
  if (!o.grammar.empty()) {
    Result<std::unique_ptr<GrammarMask>> mask =
        GrammarMask::create(o.grammar, o.grammar_triggers, *vocabulary);
    if (!mask.ok()) return mask.status().in_field(field);
    return mask;
  }
  const Result<std::string> made =
      grammar_from_json_schema(o.json_schema, keeping_of(o.json_schema_strict));
  if (!made.ok()) return made.status().in_field(field);
  Result<std::unique_ptr<GrammarMask>> mask =
      GrammarMask::create(*made, o.grammar_triggers, *vocabulary, kMadeGbnfLimits);
  if (!mask.ok()) return refused_made(mask.status(), field);
  return mask;
}

Result<std::unique_ptr<Sampler>> make(const SamplingOptions& options, std::int32_t n_vocab,
                                      std::span<const Token> suppressed,
                                      const LlamaVocabulary* vocabulary) {
  OUTRIDER_RETURN_IF_ERROR(validate(options));
  try {
    Result<RowEdits> edits = RowEdits::create(options, n_vocab, suppressed, vocabulary);
    if (!edits.ok()) return edits.status();
    Result<std::unique_ptr<GrammarMask>> grammar = make_grammar(options, vocabulary);
    if (!grammar.ok()) return grammar.status();
    SamplerPlan plan = make_sampler_plan(options);
    SamplerFilters filters;
    if (plan.kind == ChainKind::kFilters) filters = make_sampler_filters(options, plan);
    std::optional<Mirostat> mirostat;
    if (options.mirostat != 0 && plan.kind == ChainKind::kFilters) {
      mirostat.emplace(options.mirostat, options.mirostat_tau, options.mirostat_eta, n_vocab);
    }
    return std::unique_ptr<Sampler>(std::make_unique<ChainSampler>(
        plan, std::move(filters), std::move(*edits), std::move(*grammar), std::move(mirostat)));
  } catch (const std::bad_alloc&) {
    return resource_exhausted("not enough memory for a sampler");
  }
}

}  // namespace

Result<std::unique_ptr<Sampler>> make_sampler(const SamplingOptions& options,
                                              const LlamaVocabulary& vocabulary) {
  return make(options, vocabulary.size(), vocabulary.suppressed(), &vocabulary);
}

Result<std::unique_ptr<Sampler>> make_sampler(const SamplingOptions& options, std::int32_t n_vocab,
                                              std::span<const Token> suppressed) {
  assert(n_vocab >= 1 && std::all_of(suppressed.begin(), suppressed.end(),
                                     [&](Token t) { return t >= 0 && t < n_vocab; }));
  return make(options, n_vocab, suppressed, nullptr);
}

}  // namespace outrider::llama
