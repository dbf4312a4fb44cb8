// Writes tiny models, of the llama architecture and three others, that llama.cpp v0.5.0 loads and
// runs.
//
// Idea. Tests of the real adapter need real files: small enough to write in each test, with the
// shapes that real models have (head size 64, so that Q8_0 KV with flash attention takes the same
// kernels), and with text that is neither constant nor noise. Weights are random, drawn from a
// counter-based generator with integer arithmetic and quantised here, so the same options give the
// same bytes on every machine (pinned by a test).
//
// How the text is kept varied. Attention scores have a spread of 4 (query and key entries of size
// 2), so each position looks at few earlier ones and the next token depends on the whole context;
// without that, greedy text falls into a loop of about ten tokens. Output rows lean away from their
// token's embedding, which keeps one token from repeating without end. One dimension of the
// residual stream is a constant that no layer writes to (kTinyBiasDimension); the output's weights
// in it work as a bias per token, which llama's architecture does not have otherwise. Control,
// unknown and padding tokens get a bias of about -30, end-of-generation tokens `eos_bias`, bytes
// that are not plain text `odd_byte_bias`. The biases are in nats at temperature 1 and hold within
// about a third, since the stream's norm varies.
//
// Measured, default options, 3 weight types x seeds 1 to 4, 200 greedy tokens: entropy 2.5 to 2.9
// nats, mean top probability 0.29 to 0.40, 63 to 78 different tokens, 137 to 166 different pairs, 3
// to 5 % of the probability on odd bytes, end of generation under 1e-5 (with eos_bias -5: 1e-4 to
// 1e-3, with -2: 1e-3 to 8e-3, with 0: 7e-3 to 3e-2). After prompts of two tokens 4 of 3,200 texts
// are a loop. Writing takes 4 to 22 ms and gives 0.22 MB (Q4_0), 0.41 MB (Q8_0), 1.5 MB (F32).
// tiny_gguf_test.cc asserts coarse bounds of all of these but the time.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "testing/tiny_vocabulary.h"

namespace outrider::testing {

enum class WeightType { kF32, kQ8_0, kQ4_0 };  // NOLINT(readability-identifier-naming): ggml's

// "F32", "Q8_0", "Q4_0".
const char* weight_type_name(WeightType type);

inline constexpr int kTinyBiasDimension = 0;

// What a model can take back differs with its architecture, which is what the others are for.
enum class TinyArchitecture {
  kLlama,
  kSlidingWindow,  // olmo2: every other layer sees the last `sliding_window` tokens only
  kShortConv,      // lfm2: every other layer is a recurrent convolution, with snapshots
  kMamba,          // mamba: recurrent layers only, without snapshots
};

// The name in the file, "llama", "olmo2", "lfm2", "mamba".
const char* tiny_architecture_name(TinyArchitecture architecture);

struct TinyModelOptions {
  TinyArchitecture architecture = TinyArchitecture::kLlama;
  int sliding_window = 32;  // of kSlidingWindow

  // Shape. Rows must divide by 32 (the block of Q8_0 and Q4_0): n_embd, n_ff, head_size.
  int n_layer = 2;
  int n_embd = 128;
  int n_head = 2;
  int n_head_kv = 1;  // divides n_head
  int head_size = 64;
  int n_ff = 256;
  int n_ctx_train = 4096;
  // With n_expert > 0 each layer's feed-forward part is a mixture of so many experts of n_ff, of
  // which each token takes n_expert_used (1 to n_expert). For llama, without linear_biases.
  int n_expert = 0;
  int n_expert_used = 2;

  WeightType weight_type = WeightType::kQ8_0;  // of matrices; norms and biases are F32 as always
  std::uint64_t seed = 1;
  std::string name = "tiny";  // general.name

  float logit_spread = 2.5F;    // standard deviation of the logits of plain tokens, in nats
  float eos_bias = -16.0F;      // -16: next to never; -2: every 200 tokens or so
  float odd_byte_bias = -4.0F;  // bytes that are neither printable ASCII nor newline

  bool tied_output = false;    // the output reuses token_embd; then there are no biases per token
  bool linear_biases = false;  // attn_q, attn_k, attn_v, attn_output and ffn_* biases
  // A factor of 1 for each matrix (for experts, each of them), as ".scale": NVFP4 files have such.
  // For llama. The text is that of the model without.
  bool weight_scales = false;
  bool rope_factors = false;  // a rope_freqs tensor, as Llama 3.1 has
  // Two of them, as Phi-3 has ("longrope"), for contexts of so many tokens and for longer ones; 0:
  // none. Not with rope_factors.
  int short_context = 0;

  // What is added to the matrices, relative to each one's root mean square; 0 adds nothing. Rows
  // and columns of the bias dimension, norms and biases stay exact.
  float noise = 0.0F;
  std::uint64_t noise_seed = 1;

  TinyVocabularyOptions vocabulary;
};

// Writes the model at `path`, whole or not at all (temporary name, then rename; not flushed to the
// disk). Under 50 ms and 1.6 MB with the default shape. kInvalidArgument, naming the option, for a
// shape that llama.cpp could not load.
Status write_tiny_gguf(const std::string& path, const TinyModelOptions& options);

}  // namespace outrider::testing
