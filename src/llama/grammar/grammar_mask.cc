#include "llama/grammar/grammar_mask.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "base/clock.h"
#include "base/utf8.h"
#include "llama/base/backend.h"
#include "llama/grammar/gbnf.h"
#include "llama/grammar/grammar_limits.h"
#include "llama/vocabulary/token_prefixes.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {
namespace {

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
  if (triggers.empty()) return llama_sampler_init_grammar(vocab, grammar.c_str(), kGrammarRoot);
  std::vector<std::string> patterns;
  for (const std::string& trigger : triggers) patterns.push_back(escaped_for_regex(trigger));
  std::vector<const char*> pointers;
  for (const std::string& pattern : patterns) pointers.push_back(pattern.c_str());
  return llama_sampler_init_grammar_lazy_patterns(vocab, grammar.c_str(), kGrammarRoot,
                                                  pointers.data(), pointers.size(), nullptr, 0);
}

}  // namespace

Result<std::unique_ptr<GrammarMask>> GrammarMask::create(const std::string& grammar,
                                                         const std::vector<std::string>& triggers,
                                                         const LlamaVocabulary& vocabulary,
                                                         const GbnfLimits& limits) {
  ChatGrammar alone;
  alone.gbnf = grammar;
  alone.triggers = triggers;
  return create(alone, vocabulary, limits);
}

Result<std::unique_ptr<GrammarMask>> GrammarMask::create(const ChatGrammar& grammar,
                                                         const LlamaVocabulary& vocabulary,
                                                         const GbnfLimits& limits) {
  const Result<GbnfSummary> summary = check_gbnf(grammar.gbnf, limits);
  if (!summary.ok()) return summary.status();
  OUTRIDER_RETURN_IF_ERROR(check_token_names(*summary, vocabulary));
  const LogSink no_sink;
  const LogCapture log(no_sink);
  std::unique_ptr<GrammarMask> mask(new GrammarMask());
  try {
    mask->sampler_ = CopyableSampler(
        SamplerHandle(init_sampler(vocabulary.handle(), grammar.gbnf, grammar.triggers)));
  } catch (const std::exception& error) {
    return invalid_argument(std::string("llama.cpp refuses it: ") + error.what());
  }
  if (mask->sampler_.get() == nullptr)
    return invalid_argument("llama.cpp refuses it" + log.because());
  mask->vocabulary_ = &vocabulary;
  mask->by_text_ = summary->token_ids.empty() && summary->token_names.empty();
  const bool lazy = !grammar.triggers.empty() || !grammar.patterns.empty();
  OUTRIDER_RETURN_IF_ERROR(lazy ? mask->wait_for(grammar) : mask->say_beforehand(grammar.said));
  return mask;
}

// The prompt's end is the beginning of what the grammar describes.
Status GrammarMask::say_beforehand(const std::string& said) {
  if (said.empty()) return Status();
  const Result<std::vector<Token>> tokens =
      vocabulary_->tokenize(said, /*add_special=*/false, /*parse_special=*/true);
  if (!tokens.ok()) return tokens.status();
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    // A tokenizer may put a space in front.
    const std::string text = grammar_text(*vocabulary_, (*tokens)[i]);
    if (i == 0 && text == " " && said[0] != ' ') continue;
    accept((*tokens)[i]);
    if (!status_.ok()) return status_.with_context("the prompt's end");
  }
  return Status();
}

std::unique_ptr<GrammarMask> GrammarMask::clone() const {
  return std::unique_ptr<GrammarMask>(new GrammarMask(*this));
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
  std::erase_if(candidates, [](const llama_token_data& c) { return c.logit == kRuledOut; });
}

void GrammarMask::mask_row(std::span<float> row) const {
  if (waiting_) {
    for (const Token token : *forbidden_) {
      if (static_cast<std::size_t>(token) < row.size())
        row[static_cast<std::size_t>(token)] = kRuledOut;
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
    if (!allowed[i]) row[i] = kRuledOut;
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
  if (status_.ok()) status_ = check_grammar_time(watch);
}

}  // namespace outrider::llama
