#include "testing/tiny_runner.h"

#include <algorithm>
#include <cassert>

namespace outrider::testing {

void silence_llama_log() {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
}

Token argmax(const float* values, int n) {
  return static_cast<Token>(std::max_element(values, values + n) - values);
}

double greedy_agreement(const std::vector<std::vector<float>>& a,
                        const std::vector<std::vector<float>>& b) {
  const std::size_t n = std::min(a.size(), b.size());
  assert(n > 0);
  std::size_t same = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Token of_a = argmax(a[i].data(), static_cast<int>(a[i].size()));
    const Token of_b = argmax(b[i].data(), static_cast<int>(b[i].size()));
    if (of_a == of_b) ++same;
  }
  return static_cast<double>(same) / static_cast<double>(n);
}

Result<llama_model_ptr> load_model(const std::string& path, bool mtp) {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = 0;
  params.load_mtp = mtp;
  llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
  if (model == nullptr) return internal_error("llama.cpp cannot load '" + path + "'");
  return model;
}

llama_context_params context_params(int n_ctx, int n_threads, ggml_type kv_type) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(n_ctx);
  params.n_batch = params.n_ctx;
  params.n_ubatch = params.n_ctx;
  params.n_threads = n_threads;
  params.n_threads_batch = n_threads;
  params.type_k = kv_type;
  params.type_v = kv_type;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.no_perf = true;
  return params;
}

Result<TinyRunner> TinyRunner::load(const std::string& path, const Options& options) {
  silence_llama_log();
  TinyRunner runner;
  runner.path_ = path;
  OUTRIDER_ASSIGN_OR_RETURN(runner.model_, load_model(path));
  llama_context_params params = context_params(options.n_ctx, options.n_threads, options.kv_type);
  if (!options.flash_attention) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  runner.context_.reset(llama_init_from_model(runner.model_.get(), params));
  if (runner.context_ == nullptr) {
    return internal_error("llama.cpp cannot make a context for '" + path + "'");
  }
  return runner;
}

std::vector<Token> TinyRunner::tokenize(std::string_view text, bool add_special,
                                        bool parse_special) const {
  // At most a token a byte, and the specials around them.
  std::vector<Token> tokens(text.size() + 4);
  const int n =
      llama_tokenize(vocab(), text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                     static_cast<std::int32_t>(tokens.size()), add_special, parse_special);
  tokens.resize(static_cast<std::size_t>(std::max(n, 0)));
  return tokens;
}

std::string TinyRunner::detokenize(const std::vector<Token>& tokens) const {
  std::string text;
  for (const Token token : tokens) {
    char piece[256];
    const int n = llama_token_to_piece(vocab(), token, piece, sizeof piece, 0, /*special=*/false);
    if (n > 0) text.append(piece, static_cast<std::size_t>(n));
  }
  return text;
}

void TinyRunner::clear() { llama_memory_clear(llama_get_memory(context_.get()), true); }

Result<const float*> TinyRunner::step(Token token) {
  const int code = llama_decode(context_.get(), llama_batch_get_one(&token, 1));
  if (code != 0) {
    return internal_error("llama.cpp failed to evaluate a token of '" + path_ + "' (code " +
                          std::to_string(code) + ")");
  }
  return static_cast<const float*>(llama_get_logits_ith(context_.get(), -1));
}

Result<std::vector<std::vector<float>>> TinyRunner::logits(const std::vector<Token>& tokens) {
  clear();
  std::vector<std::vector<float>> rows;
  for (const Token token : tokens) {
    const Result<const float*> row = step(token);
    if (!row.ok()) return row.status();
    rows.emplace_back(*row, *row + n_vocab());
  }
  return rows;
}

Result<std::vector<Token>> TinyRunner::greedy(const std::vector<Token>& prompt, int n) {
  clear();
  const float* row = nullptr;
  for (const Token token : prompt) {
    const Result<const float*> result = step(token);
    if (!result.ok()) return result.status();
    row = *result;
  }
  std::vector<Token> tokens;
  while (row != nullptr && static_cast<int>(tokens.size()) < n) {
    tokens.push_back(argmax(row, n_vocab()));
    const Result<const float*> result = step(tokens.back());
    if (!result.ok()) return result.status();
    row = *result;
  }
  return tokens;
}

}  // namespace outrider::testing
