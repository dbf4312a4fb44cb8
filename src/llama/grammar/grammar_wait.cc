// GrammarMask while it waits: for a trigger, for what a pattern finds, for the end of reasoning.
#include <algorithm>
#include <exception>

#include "base/utf8.h"
#include "llama/base/backend.h"
#include "llama/grammar/grammar_limits.h"
#include "llama/grammar/grammar_mask.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {
namespace {

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
    OUTRIDER_RETURN_IF_ERROR(check_grammar_time(watch));
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

}  // namespace

Status GrammarMask::wait_for(const ChatGrammar& grammar) {
  waiting_ = true;
  gate_ = ReasoningGate(grammar.reasoning);
  triggers_ = std::make_shared<const TriggerTokens>(grammar.triggers, *vocabulary_);
  const SamplerHandle bound(
      llama_sampler_init_grammar(vocabulary_->handle(), grammar.gbnf.c_str(), kGrammarRoot));
  if (!bound) return invalid_argument("llama.cpp refuses it");
  for (const std::string& trigger : grammar.triggers) {
    OUTRIDER_RETURN_IF_ERROR(check_trigger(trigger, *vocabulary_, bound.get()));
  }
  if (!grammar.patterns.empty()) {
    Result<std::shared_ptr<const TriggerPatterns>> patterns =
        TriggerPatterns::create(grammar.patterns);
    if (!patterns.ok()) return patterns.status();
    patterns_ = std::move(*patterns);
    gbnf_ = std::make_shared<const std::string>(grammar.gbnf);
  }
  const Stopwatch watch;
  find_forbidden(watch);
  return check_grammar_time(watch);
}

void GrammarMask::await(Token token, const Stopwatch& watch) {
  std::string said = grammar_text(*vocabulary_, token);
  const bool marked = gate_.say(said);
  if (marked) recent_.clear();
  if (patterns_ != nullptr) {
    await_patterns(token, said);
    if (!waiting_) return;
  }
  recent_.push_back({token, std::move(said)});
  if (gate_.inside() || marked) recent_.clear();
  const std::string text = recent_text();
  if (triggers_->begin_in(text) != std::string::npos) {
    for (const Recent& recent : recent_) llama_sampler_accept(sampler_.get(), recent.token);
    bind();
    return;
  }
  // Tokens go whose bytes all lie before the last ones that a trigger could begin in.
  std::size_t size = text.size();
  std::size_t n_gone = 0;
  while (n_gone < recent_.size() &&
         size - recent_[n_gone].text.size() >= std::max(triggers_->longest(), std::size_t{1}) - 1) {
    size -= recent_[n_gone++].text.size();
  }
  recent_.erase(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(n_gone));
  find_forbidden(watch);
}

void GrammarMask::bind() {
  waiting_ = false;
  recent_.clear();
  window_.clear();
}

// A finding binds when the grammar can go on from where it begins.
void GrammarMask::await_patterns(Token token, std::string said) {
  window_.push_back({token, std::move(said)});
  std::string text;
  for (const Recent& recent : window_) text += recent.text;
  const std::size_t fresh = text.size() - window_.back().text.size();
  // llama.cpp aborts on an end token where the grammar does not end.
  if (!gate_.inside() && !vocabulary_->is_end_of_generation(token)) {
    for (const std::size_t begin : patterns_->begins_in(text, fresh, window_is_all_)) {
      std::size_t first = 0;
      std::size_t at = 0;
      while (first + 1 < window_.size() && at + window_[first].text.size() <= begin)
        at += window_[first++].text.size();
      const std::string from = "^[\\s\\S]{" + std::to_string(begin - at) + "}([\\s\\S]+)$";
      const char* pattern = from.c_str();
      SamplerHandle sampler(llama_sampler_init_grammar_lazy_patterns(
          vocabulary_->handle(), gbnf_->c_str(), kGrammarRoot, &pattern, 1, nullptr, 0));
      try {
        for (std::size_t i = first; i < window_.size(); ++i) {
          llama_sampler_accept(sampler.get(), window_[i].token);
        }
      } catch (const std::exception&) {  // not what it looked like
        continue;
      }
      sampler_ = CopyableSampler(std::move(sampler));
      return bind();
    }
  }
  std::size_t n_gone = 0;
  for (std::size_t size = text.size(); size > TriggerPatterns::kWindow; ++n_gone) {
    size -= window_[n_gone].text.size();
  }
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(n_gone));
  window_is_all_ = window_is_all_ && n_gone == 0;
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
  if (gate_.inside()) {
    forbidden_ = std::make_shared<const std::vector<Token>>();
    return;
  }
  const std::vector<std::string_view> endings = triggers_->endings(tail);
  const bool first = forbidden_alone_ == nullptr;
  if (endings.empty() && !first) {
    forbidden_ = forbidden_alone_;
    return;
  }
  std::vector<Token> forbidden;
  for (const TriggerTokens::Piece& piece : triggers_->pieces()) {
    if (!check_grammar_time(watch).ok()) break;  // the caller sees it too
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
                       [](const llama_token_data& c) { return c.logit == kRuledOut; });
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace outrider::llama
