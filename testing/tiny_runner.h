// Runs a GGUF through llama.cpp directly, one sequence, without the project's own adapter: the
// independent reference of the tests of tiny models, widening and requantising.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "llama-cpp.h"

namespace outrider::testing {

struct TinyRunnerOptions {
  int n_ctx = 1024;  // cells; also the largest batch
  int n_threads = 1;
  ggml_type kv_type = GGML_TYPE_Q8_0;
  bool flash_attention = true;  // Q8_0 KV needs it
};

// Not thread-safe; one at a time is enough for a test. Logs of llama.cpp are dropped.
class TinyRunner {
 public:
  using Options = TinyRunnerOptions;

  // kInternal, naming the file, when llama.cpp will not load it or make a context for it.
  static Result<TinyRunner> load(const std::string& path, const Options& options = Options());

  int n_vocab() const { return llama_vocab_n_tokens(vocab()); }
  const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
  const llama_model* model() const { return model_.get(); }
  llama_context* context() { return context_.get(); }

  std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special) const;
  // The bytes of `tokens`, control tokens left out.
  std::string detokenize(const std::vector<Token>& tokens) const;

  // Clears the cache and evaluates `tokens` one by one. Result is [tokens.size(), n_vocab].
  Result<std::vector<std::vector<float>>> logits(const std::vector<Token>& tokens);

  // Clears the cache, evaluates `prompt` and continues with the most likely token (of equals the
  // lowest id), `n` tokens, past end-of-generation tokens too.
  Result<std::vector<Token>> greedy(const std::vector<Token>& prompt, int n);

 private:
  TinyRunner() = default;
  void clear();
  Result<const float*> step(Token token);  // [n_vocab], valid until the next step

  std::string path_;
  llama_model_ptr model_;
  llama_context_ptr context_;
};

// A file on the processor, `mtp`: with its prediction layers. kInternal, naming it, when llama.cpp
// will not load it.
Result<llama_model_ptr> load_model(const std::string& path, bool mtp = false);
// With flash attention, and all cells as one batch.
llama_context_params context_params(int n_ctx, int n_threads, ggml_type kv_type);

// Index of the largest value, of equals the first. REQUIRES: n > 0.
Token argmax(const float* values, int n);

// Share of the positions at which two results of logits() have the same most likely token, 0 to 1;
// over the positions that both have. REQUIRES: at least one.
double greedy_agreement(const std::vector<std::vector<float>>& a,
                        const std::vector<std::vector<float>>& b);

// Keeps llama.cpp and ggml from writing to stderr in this process, from now on.
void silence_llama_log();

}  // namespace outrider::testing
