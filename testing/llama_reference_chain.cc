#include "testing/llama_reference_chain.h"

#include <algorithm>
#include <limits>

namespace outrider::testing {
namespace {

llama::SamplerHandle new_chain() {
  return llama::SamplerHandle(llama_sampler_chain_init(llama_sampler_chain_default_params()));
}

}  // namespace

LlamaReferenceChain::LlamaReferenceChain(const SamplingOptions& o, const llama_vocab* vocab,
                                         std::vector<Token> never)
    : before_(new_chain()),
      typical_(new_chain()),
      drops_impossible_(o.typical_p < 1.0f),
      xtc_(new_chain()),
      after_(new_chain()) {
  const std::int32_t n_vocab = llama_vocab_n_tokens(vocab);
  if (!o.grammar.empty() && o.grammar_triggers.empty()) {
    grammar_.reset(llama_sampler_init_grammar(vocab, o.grammar.c_str(), "root"));
  } else if (!o.grammar.empty()) {
    std::vector<const char*> triggers;  // none with a meaning as a regular expression
    for (const std::string& trigger : o.grammar_triggers) triggers.push_back(trigger.c_str());
    grammar_.reset(llama_sampler_init_grammar_lazy_patterns(
        vocab, o.grammar.c_str(), "root", triggers.data(), triggers.size(), nullptr, 0));
  }
  std::vector<llama_logit_bias> biases;
  for (const LogitBias& bias : o.logit_bias) biases.push_back({bias.token, bias.bias});
  for (const Token token : never) {
    biases.push_back({token, -std::numeric_limits<float>::infinity()});
  }
  std::vector<const char*> breakers;
  for (const std::string& breaker : o.dry_sequence_breakers) breakers.push_back(breaker.c_str());
  const auto add = [](llama::SamplerHandle& chain, llama_sampler* sampler) {
    llama_sampler_chain_add(chain.get(), sampler);
  };
  add(before_, llama_sampler_init_logit_bias(n_vocab, static_cast<std::int32_t>(biases.size()),
                                             biases.data()));
  add(before_, llama_sampler_init_penalties(n_vocab, o.repeat_last_n, o.repeat_penalty,
                                            o.frequency_penalty, o.presence_penalty));
  add(before_, llama_sampler_init_dry(vocab, o.dry_multiplier, o.dry_base, o.dry_allowed_length,
                                      o.dry_penalty_last_n, breakers.data(), breakers.size()));
  add(before_, llama_sampler_init_top_n_sigma(o.top_n_sigma));
  add(before_, llama_sampler_init_top_k(o.top_k));
  add(typical_, llama_sampler_init_typical(o.typical_p, 0));
  add(typical_, llama_sampler_init_top_p(o.top_p, 0));
  add(typical_, llama_sampler_init_min_p(o.min_p, 0));
  add(xtc_, llama_sampler_init_xtc(1.0f, o.xtc_threshold, 0, 1));
  add(after_, llama_sampler_init_temp_ext(o.temperature, o.dynatemp_range, o.dynatemp_exponent));
}

std::vector<llama_token_data> LlamaReferenceChain::apply(const std::vector<float>& row,
                                                         bool xtc_takes_part) {
  std::vector<llama_token_data> data;
  for (std::size_t i = 0; i < row.size(); ++i) {
    data.push_back({.id = static_cast<llama_token>(i), .logit = row[i], .p = 0.0f});
  }
  llama_token_data_array array{
      .data = data.data(), .size = data.size(), .selected = -1, .sorted = false};
  if (grammar_) llama_sampler_apply(grammar_.get(), &array);
  llama_sampler_apply(before_.get(), &array);
  for (std::size_t i = 0; drops_impossible_ && i < array.size;) {
    if (array.data[i].logit > -std::numeric_limits<float>::infinity()) {
      ++i;
    } else {
      std::copy(array.data + i + 1, array.data + array.size, array.data + i);
      --array.size;
    }
  }
  llama_sampler_apply(typical_.get(), &array);
  if (xtc_takes_part) llama_sampler_apply(xtc_.get(), &array);
  llama_sampler_apply(after_.get(), &array);
  return {array.data, array.data + array.size};
}

void LlamaReferenceChain::accept(Token token, bool said) {
  if (said && grammar_) llama_sampler_accept(grammar_.get(), token);
  llama_sampler_accept(before_.get(), token);
}

}  // namespace outrider::testing
