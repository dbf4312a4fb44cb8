#include "llama/grammar/grammar_mask.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "base/clock.h"
#include "base/utf8.h"
#include "llama/base/backend.h"
#include "llama/grammar/gbnf.h"
#include "llama/vocabulary/token_prefixes.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {
namespace {

// A token is taken in microseconds. A grammar that can be read in more ways with each token doubles
// that every time, inside llama.cpp, where nothing can be limited or interrupted: this long, and
// the request ends before the next doubling.
constexpr double kMostMs = 2000.0;

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr const char* kRoot = "root";

bool holds(const std::vector<Token>& sorted, Token token) {
  return std::binary_search(sorted.begin(), sorted.end(), token);
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

Status check_time(const Stopwatch& watch) {
  const double ms = watch.elapsed_ms();
  if (ms <= kMostMs) return Status();
  return resource_exhausted(
      "the grammar is too ambiguous: one more token took " +
      std::to_string(static_cast<int>(ms / 1000.0)) +
      " s, since it can be read in ever more ways; give rules of which only one fits at a time");
}

// The ways to say `trigger` in tokens that are tried: as the tokens that it names or letter by
// letter, and with a letter before it, since SentencePiece puts a space before a text's first word.
std::vector<std::vector<Token>> ways_to_say(const std::string& trigger,
                                            const LlamaVocabulary& vocabulary) {
  std::vector<std::vector<Token>> ways;
  for (const char* before : {"", "\n", "a"}) {
    for (const bool parse_special : {true, false}) {
      const Result<std::vector<Token>> all =
          vocabulary.tokenize(before + trigger, /*add_special=*/false, parse_special);
      if (!all.ok()) continue;
      std::string text;
      std::size_t from = all->size();
      while (from > 0 && text.size() < trigger.size()) {
        text.insert(0, grammar_text(vocabulary, (*all)[--from]));
      }
      if (text != trigger) continue;
      ways.emplace_back(all->begin() + static_cast<std::ptrdiff_t>(from), all->end());
    }
  }
  return ways;
}

// Whether the grammar of `bound`, at its beginning, can begin with `way`.
Result<bool> can_begin_with(const std::vector<Token>& way, const LlamaVocabulary& vocabulary,
                            const llama_sampler* bound) {
  const SamplerHandle copy(llama_sampler_clone(bound));
  for (const Token token : way) {
    // llama.cpp aborts on an end token where the grammar does not end, and throws on others.
    if (vocabulary.is_end_of_generation(token)) return false;
    const Stopwatch watch;
    try {
      llama_sampler_accept(copy.get(), token);
    } catch (const std::exception&) {
      return false;
    }
    OUTRIDER_RETURN_IF_ERROR(check_time(watch));
  }
  return true;
}

// A trigger that the vocabulary cannot say at all (it has no capitals, say) passes: it harms
// nobody.
Status check_trigger(const std::string& trigger, const LlamaVocabulary& vocabulary,
                     const llama_sampler* bound) {
  if (first_invalid_utf8(trigger)) return invalid_argument("a trigger is not valid UTF-8");
  const std::vector<std::vector<Token>> ways = ways_to_say(trigger, vocabulary);
  for (const std::vector<Token>& way : ways) {
    const Result<bool> begins = can_begin_with(way, vocabulary, bound);
    if (!begins.ok()) return begins.status();
    if (*begins) return Status();
  }
  if (ways.empty()) return Status();
  return invalid_argument("the grammar cannot begin with the trigger '" + trigger +
                          "', but what is held to the grammar begins with the trigger itself; let "
                          "root begin with it, or give a trigger that root begins with");
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
  if (triggers.empty()) return mask;
  mask->waiting_ = true;
  mask->triggers_ = std::make_shared<const TriggerTokens>(triggers, vocabulary);
  const SamplerHandle bound(
      llama_sampler_init_grammar(vocabulary.handle(), grammar.c_str(), kRoot));
  if (!bound) return invalid_argument("llama.cpp refuses it" + log.because());
  for (const std::string& trigger : triggers) {
    OUTRIDER_RETURN_IF_ERROR(check_trigger(trigger, vocabulary, bound.get()));
  }
  const Stopwatch watch;
  mask->find_forbidden(watch);
  OUTRIDER_RETURN_IF_ERROR(check_time(watch));
  return mask;
}

std::unique_ptr<GrammarMask> GrammarMask::clone() const {
  std::unique_ptr<GrammarMask> copy(new GrammarMask());
  copy->sampler_.reset(llama_sampler_clone(sampler_.get()));
  copy->vocabulary_ = vocabulary_;
  copy->by_text_ = by_text_;
  copy->waiting_ = waiting_;
  copy->triggers_ = triggers_;
  copy->recent_ = recent_;
  copy->forbidden_ = forbidden_;
  copy->forbidden_alone_ = forbidden_alone_;
  copy->status_ = status_;
  return copy;
}

void GrammarMask::filter(std::vector<llama_token_data>& candidates) const {
  if (waiting_) {
    if (forbidden_->empty()) return;
    std::erase_if(candidates,
                  [this](const llama_token_data& c) { return holds(*forbidden_, c.id); });
    return;
  }
  if (candidates.empty()) return;
  llama_token_data_array array{
      .data = candidates.data(), .size = candidates.size(), .selected = -1, .sorted = false};
  llama_sampler_apply(sampler_.get(), &array);
  std::erase_if(candidates, [](const llama_token_data& c) { return c.logit == kNever; });
}

void GrammarMask::mask_row(std::span<float> row) const {
  if (waiting_) {
    for (const Token token : *forbidden_) {
      if (static_cast<std::size_t>(token) < row.size())
        row[static_cast<std::size_t>(token)] = kNever;
    }
    return;
  }
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
    // llama.cpp aborts on an end token that does not fit and throws on others.
    std::vector<llama_token_data> candidates = {{.id = token, .logit = 0.0f, .p = 0.0f}};
    filter(candidates);
    if (candidates.empty()) {
      status_ =
          internal_error("the text does not keep to the grammar: token " + std::to_string(token) +
                         " ('" + grammar_text(*vocabulary_, token) + "') is not allowed here");
      return;
    }
    if (waiting_) {
      await(token, watch);
    } else {
      llama_sampler_accept(sampler_.get(), token);
    }
  } catch (const std::exception& error) {
    status_ = internal_error(std::string("the text does not keep to the grammar: ") + error.what());
  }
  if (status_.ok()) status_ = check_time(watch);
}

void GrammarMask::await(Token token, const Stopwatch& watch) {
  recent_.push_back({token, grammar_text(*vocabulary_, token)});
  const std::string text = recent_text();
  if (triggers_->begin_in(text) != std::string::npos) {
    waiting_ = false;
    for (const Recent& recent : recent_) llama_sampler_accept(sampler_.get(), recent.token);
    recent_.clear();
    return;
  }
  // Tokens go whose bytes all lie before the last ones that a trigger could begin in.
  std::size_t size = text.size();
  std::size_t n_gone = 0;
  while (n_gone < recent_.size() &&
         size - recent_[n_gone].text.size() >= triggers_->longest() - 1) {
    size -= recent_[n_gone++].text.size();
  }
  recent_.erase(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(n_gone));
  find_forbidden(watch);
}

std::string GrammarMask::recent_text() const {
  std::string text;
  for (const Recent& recent : recent_) text += recent.text;
  return text;
}

// What a token that holds a whole trigger runs into does not depend on the text before, unless that
// ends with a trigger's beginning: those are found once.
void GrammarMask::find_forbidden(const Stopwatch& watch) {
  const std::string tail = recent_text();
  const std::vector<std::string_view> endings = triggers_->endings(tail);
  const bool first = forbidden_alone_ == nullptr;
  if (endings.empty() && !first) {
    forbidden_ = forbidden_alone_;
    return;
  }
  std::vector<Token> forbidden;
  for (const TriggerTokens::Piece& piece : triggers_->pieces()) {
    if (!check_time(watch).ok()) break;  // the caller sees it too
    const bool completes =
        std::any_of(endings.begin(), endings.end(),
                    [&](std::string_view ending) { return piece.text.starts_with(ending); });
    const bool wrong = completes || (first && piece.whole)
                           ? runs_wrongly_past(piece, tail)
                           : !first && holds(*forbidden_alone_, piece.token);
    if (wrong) forbidden.push_back(piece.token);
  }
  forbidden_ = std::make_shared<const std::vector<Token>>(std::move(forbidden));
  if (first) forbidden_alone_ = forbidden_;
}

// Whether `piece`, which completes a trigger behind `tail`, the text of recent_, must not follow.
bool GrammarMask::runs_wrongly_past(const TriggerTokens::Piece& piece,
                                    const std::string& tail) const {
  // llama.cpp does not look behind a NUL or into bytes that are not UTF-8.
  const std::string whole = tail + piece.text;
  const std::string_view text = std::string_view(whole).substr(triggers_->begin_in(whole));
  const std::string_view complete = text.substr(0, complete_utf8_prefix(text));
  if (text.find('\0') != std::string_view::npos || first_invalid_utf8(complete)) return true;
  try {
    const SamplerHandle copy(llama_sampler_clone(sampler_.get()));
    for (const Recent& recent : recent_) llama_sampler_accept(copy.get(), recent.token);
    llama_sampler_accept(copy.get(), piece.token);
    if (complete.size() == text.size()) return false;
    // Inside a character: the beginning alone is not looked at until a token goes on with it.
    std::vector<llama_token_data> next;
    for (const Token token : triggers_->continuing()) {
      next.push_back({.id = token, .logit = 0.0f, .p = 0.0f});
    }
    llama_token_data_array array{
        .data = next.data(), .size = next.size(), .selected = -1, .sorted = false};
    llama_sampler_apply(copy.get(), &array);
    return std::all_of(next.begin(), next.end(),
                       [](const llama_token_data& c) { return c.logit == kNever; });
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace outrider::llama
