#include "llama/grammar_mask.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "base/clock.h"
#include "llama/backend.h"
#include "llama/gbnf.h"
#include "llama/token_prefixes.h"
#include "llama/vocabulary.h"

namespace outrider::llama {
namespace {

// A token is taken in microseconds. A grammar that can be read in more ways with each token doubles
// that every time, inside llama.cpp, where nothing can be limited or interrupted: this long, and
// the request ends before the next doubling.
constexpr double kMostMs = 2000.0;

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr const char* kRoot = "root";

// All bytes that llama.cpp's grammar sees, those of control tokens included.
std::string grammar_text(const LlamaVocabulary& vocabulary, Token token) {
  std::string text(64, '\0');
  std::int32_t n = 0;
  while ((n = llama_token_to_piece(vocabulary.handle(), token, text.data(),
                                   static_cast<std::int32_t>(text.size()), /*lstrip=*/0,
                                   /*special=*/true)) < 0) {
    text.resize(static_cast<std::size_t>(-n));
  }
  text.resize(static_cast<std::size_t>(n));
  return text;
}

std::string escaped_for_regex(const std::string& text) {
  constexpr std::string_view kSpecial = ".^$|()*+?[]{}\\";
  std::string escaped;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

Status check_token_names(const GbnfSummary& grammar, const LlamaVocabulary& vocabulary) {
  for (const std::uint32_t id : grammar.token_ids) {
    if (id < static_cast<std::uint32_t>(vocabulary.size())) continue;
    return invalid_argument("it names the token <[" + std::to_string(id) +
                            "]>, but the vocabulary has " + std::to_string(vocabulary.size()));
  }
  for (const std::string& name : grammar.token_names) {
    const Result<std::vector<Token>> tokens = vocabulary.tokenize(name, false, true);
    if (tokens.ok() && tokens->size() == 1) continue;
    return invalid_argument("it names the token " + name + ", but the vocabulary has none such");
  }
  return Status();
}

// Throws what llama.cpp throws; null when it refuses.
llama_sampler* init_sampler(const llama_vocab* vocab, const std::string& grammar,
                            const std::vector<std::string>& triggers) {
  if (triggers.empty()) return llama_sampler_init_grammar(vocab, grammar.c_str(), kRoot);
  std::vector<std::string> patterns;
  for (const std::string& trigger : triggers) patterns.push_back(escaped_for_regex(trigger));
  std::vector<const char*> pointers;
  for (const std::string& pattern : patterns) pointers.push_back(pattern.c_str());
  return llama_sampler_init_grammar_lazy_patterns(vocab, grammar.c_str(), kRoot, pointers.data(),
                                                  pointers.size(), nullptr, 0);
}

}  // namespace

Result<std::unique_ptr<GrammarMask>> GrammarMask::create(const std::string& grammar,
                                                         const std::vector<std::string>& triggers,
                                                         const LlamaVocabulary& vocabulary) {
  const Result<GbnfSummary> summary = check_gbnf(grammar);
  if (!summary.ok()) return summary.status();
  OUTRIDER_RETURN_IF_ERROR(check_token_names(*summary, vocabulary));
  const LogSink no_sink;
  const LogCapture log(no_sink);
  std::unique_ptr<GrammarMask> mask(new GrammarMask());
  try {
    mask->sampler_.reset(init_sampler(vocabulary.handle(), grammar, triggers));
  } catch (const std::exception& error) {
    return invalid_argument(std::string("llama.cpp refuses it: ") + error.what());
  }
  if (!mask->sampler_) return invalid_argument("llama.cpp refuses it" + log.because());
  mask->vocabulary_ = &vocabulary;
  mask->by_text_ = summary->token_ids.empty() && summary->token_names.empty();
  mask->triggers_ = std::make_shared<const std::vector<std::string>>(triggers);
  mask->waiting_ = !triggers.empty();
  for (const std::string& trigger : triggers) {
    mask->longest_trigger_ = std::max(mask->longest_trigger_, trigger.size());
  }
  return mask;
}

std::unique_ptr<GrammarMask> GrammarMask::clone() const {
  std::unique_ptr<GrammarMask> copy(new GrammarMask());
  copy->sampler_.reset(llama_sampler_clone(sampler_.get()));
  copy->vocabulary_ = vocabulary_;
  copy->by_text_ = by_text_;
  copy->triggers_ = triggers_;
  copy->longest_trigger_ = longest_trigger_;
  copy->waiting_ = waiting_;
  copy->recent_ = recent_;
  copy->status_ = status_;
  return copy;
}

void GrammarMask::filter(std::vector<llama_token_data>& candidates) const {
  if (waiting_ || candidates.empty()) return;
  llama_token_data_array array{
      .data = candidates.data(), .size = candidates.size(), .selected = -1, .sorted = false};
  llama_sampler_apply(sampler_.get(), &array);
  std::erase_if(candidates, [](const llama_token_data& c) { return c.logit == kNever; });
}

void GrammarMask::mask_row(std::span<float> row) const {
  if (waiting_) return;
  std::vector<bool> allowed(static_cast<std::size_t>(vocabulary_->size()), false);
  std::vector<llama_token_data> level;
  const auto ask = [&level](Token token) {
    level.push_back({.id = token, .logit = 0.0f, .p = 0.0f});
  };
  if (by_text_) {
    for (const Token token : vocabulary_->prefixes().roots()) ask(token);
  } else {
    for (std::size_t i = 0; i < row.size(); ++i) ask(static_cast<Token>(i));
  }
  while (!level.empty()) {
    filter(level);
    std::vector<llama_token_data> open;
    open.swap(level);
    for (const llama_token_data& c : open) {
      allowed[static_cast<std::size_t>(c.id)] = true;
      if (!by_text_) continue;
      for (const Token token : vocabulary_->prefixes().below(c.id)) ask(token);
    }
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!allowed[i]) row[i] = kNever;
  }
}

void GrammarMask::accept(Token token) {
  if (!status_.ok()) return;
  const Stopwatch watch;
  try {
    if (waiting_) {
      await(token);
      return;
    }
    // llama.cpp aborts on an end token that does not fit and throws on others.
    std::vector<llama_token_data> candidates = {{.id = token, .logit = 0.0f, .p = 0.0f}};
    filter(candidates);
    if (candidates.empty()) {
      status_ =
          internal_error("the text does not keep to the grammar: token " + std::to_string(token) +
                         " ('" + grammar_text(*vocabulary_, token) + "') is not allowed here");
      return;
    }
    llama_sampler_accept(sampler_.get(), token);
  } catch (const std::exception& error) {
    status_ = internal_error(std::string("the text does not keep to the grammar: ") + error.what());
  }
  if (watch.elapsed_ms() > kMostMs && status_.ok()) {
    status_ = resource_exhausted(
        "the grammar is too ambiguous: one more token took " +
        std::to_string(static_cast<int>(watch.elapsed_ms() / 1000.0)) +
        " s, since it can be read in ever more ways; give rules of which only one fits at a time");
  }
}

void GrammarMask::await(Token token) {
  std::string text;
  for (const Recent& recent : recent_) text += recent.text;
  const std::size_t old_size = text.size();
  recent_.push_back({token, grammar_text(*vocabulary_, token)});
  text += recent_.back().text;
  if (says_trigger(text, old_size)) {
    waiting_ = false;
    for (const Recent& recent : recent_) llama_sampler_accept(sampler_.get(), recent.token);
    recent_.clear();
    return;
  }
  // Tokens go whose bytes all lie before the last ones that a trigger could begin in.
  std::size_t size = text.size();
  std::size_t n_gone = 0;
  while (n_gone < recent_.size() && size - recent_[n_gone].text.size() >= longest_trigger_ - 1) {
    size -= recent_[n_gone++].text.size();
  }
  recent_.erase(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(n_gone));
}

bool GrammarMask::says_trigger(std::string_view text, std::size_t old_size) const {
  for (const std::string& trigger : *triggers_) {
    const std::size_t from = old_size >= trigger.size() ? old_size - trigger.size() + 1 : 0;
    if (text.find(trigger, from) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace outrider::llama
