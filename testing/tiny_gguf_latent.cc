#include "testing/tiny_gguf_latent.h"

#include <cmath>

#include "testing/tiny_gguf_tensors.h"
#include "testing/tiny_metadata.h"

namespace outrider::testing {
namespace {

constexpr const char* kLatentArchitecture = "deepseek2";
constexpr int kLatentEmbd = 128;
constexpr int kLatentHeads = 2;
constexpr int kLatentQueries = 64;    // numbers that the queries are made of
constexpr int kLatentSize = 64;       // numbers that keys and values are made of
constexpr int kLatentPositions = 32;  // of a key, with the position in them
constexpr int kLatentPlain = 32;      // of a key, without
constexpr int kLatentValues = 64;
constexpr int kLatentFeedForward = 128;

void set_latent_shape(gguf_context* metadata, const TinyLatentOptions& options, int n_vocab) {
  gguf_set_val_str(metadata, "general.architecture", kLatentArchitecture);
  gguf_set_val_str(metadata, "general.type", "model");
  gguf_set_val_str(metadata, "general.name", "tiny latent");
  gguf_set_val_u32(metadata, "general.quantization_version", GGML_QNT_VERSION);
  const std::string prefix = std::string(kLatentArchitecture) + ".";
  const auto set = [&](const char* key, int value) {
    gguf_set_val_u32(metadata, (prefix + key).c_str(), static_cast<std::uint32_t>(value));
  };
  set("block_count", options.n_layer);
  set("context_length", options.n_ctx_train);
  set("embedding_length", kLatentEmbd);
  set("feed_forward_length", kLatentFeedForward);
  set("vocab_size", n_vocab);
  set("attention.head_count", kLatentHeads);
  set("attention.head_count_kv", 1);  // of the cache
  set("attention.key_length", kLatentSize + kLatentPositions);
  set("attention.value_length", kLatentSize);
  set("attention.key_length_mla", kLatentPlain + kLatentPositions);
  set("attention.value_length_mla", kLatentValues);
  set("attention.q_lora_rank", kLatentQueries);
  set("attention.kv_lora_rank", kLatentSize);
  set("rope.dimension_count", kLatentPositions);
  set("leading_dense_block_count", options.n_layer);  // no layer has experts
  set("expert_feed_forward_length", kLatentFeedForward);
  set("expert_shared_count", 0);
  gguf_set_val_f32(metadata, (prefix + "rope.freq_base").c_str(), 10000.0F);
  gguf_set_val_f32(metadata, (prefix + "attention.layer_norm_rms_epsilon").c_str(), 1e-5F);
}

// Entries of a size that keeps that of what is multiplied with them.
TinyMatrix& add_latent_matrix(TinyTensors& tensors, const std::string& name, int columns,
                              int rows) {
  return tensors.gaussian(name + ".weight", columns, rows, 1.0 / std::sqrt(columns));
}

// One of `rows` rows for each head.
void add_matrix_of_heads(TinyTensors& tensors, const std::string& name, int columns, int rows) {
  add_latent_matrix(tensors, name, columns, rows * kLatentHeads).info.shape = {columns, rows,
                                                                               kLatentHeads};
}

void add_latent_norm(TinyTensors& tensors, const std::string& name, int size) {
  tensors.plain(name + ".weight", size, 0, 1.0);
}

void add_latent_layer(TinyTensors& tensors, const std::string& block) {
  add_latent_norm(tensors, block + "attn_norm", kLatentEmbd);
  add_latent_matrix(tensors, block + "attn_q_a", kLatentEmbd, kLatentQueries);
  add_latent_norm(tensors, block + "attn_q_a_norm", kLatentQueries);
  add_latent_matrix(tensors, block + "attn_q_b", kLatentQueries,
                    kLatentHeads * (kLatentPlain + kLatentPositions));
  add_latent_matrix(tensors, block + "attn_kv_a_mqa", kLatentEmbd, kLatentSize + kLatentPositions);
  add_latent_norm(tensors, block + "attn_kv_a_norm", kLatentSize);
  add_matrix_of_heads(tensors, block + "attn_k_b", kLatentPlain, kLatentSize);
  add_matrix_of_heads(tensors, block + "attn_v_b", kLatentSize, kLatentValues);
  add_latent_matrix(tensors, block + "attn_output", kLatentHeads * kLatentValues, kLatentEmbd);
  add_latent_norm(tensors, block + "ffn_norm", kLatentEmbd);
  add_latent_matrix(tensors, block + "ffn_gate", kLatentEmbd, kLatentFeedForward);
  add_latent_matrix(tensors, block + "ffn_up", kLatentEmbd, kLatentFeedForward);
  add_latent_matrix(tensors, block + "ffn_down", kLatentFeedForward, kLatentEmbd);
}

}  // namespace

Status write_tiny_latent(const std::string& path, const TinyLatentOptions& options) {
  if (options.n_layer < 1) return invalid_argument("tiny latent model: n_layer must be 1 or more");
  const Result<TinyVocabulary> vocabulary = make_tiny_vocabulary(options.vocabulary);
  if (!vocabulary.ok()) return vocabulary.status();
  const GgufHandle metadata(gguf_init_empty());
  set_latent_shape(metadata.get(), options, vocabulary->size());
  set_tiny_vocabulary(metadata.get(), *vocabulary);

  TinyTensors tensors(options.weight_type, options.seed);
  tensors.gaussian("token_embd.weight", kLatentEmbd, vocabulary->size(), 1.0);
  for (int layer = 0; layer < options.n_layer; ++layer) {
    add_latent_layer(tensors, "blk." + std::to_string(layer) + ".");
  }
  add_latent_norm(tensors, "output_norm", kLatentEmbd);
  tensors.gaussian("output.weight", kLatentEmbd, vocabulary->size(), 2.5 / std::sqrt(kLatentEmbd));
  return tensors.write(path, metadata.get());
}

}  // namespace outrider::testing
