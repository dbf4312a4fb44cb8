#include "testing/tiny_metadata.h"

#include <cstdint>
#include <string>
#include <vector>

namespace outrider::testing {
namespace {

void set_u32(gguf_context* metadata, const char* key, int value) {
  gguf_set_val_u32(metadata, key, static_cast<std::uint32_t>(value));
}

void set_shape(gguf_context* metadata, const TinyModelOptions& options, int n_vocab) {
  const std::string name = tiny_architecture_name(options.architecture);
  const auto set = [&](const char* key, int value) {
    set_u32(metadata, (name + "." + key).c_str(), value);
  };
  const bool mamba = options.architecture == TinyArchitecture::kMamba;
  gguf_set_val_str(metadata, "general.architecture", name.c_str());
  gguf_set_val_str(metadata, "general.type", "model");
  gguf_set_val_str(metadata, "general.name", options.name.c_str());
  set_u32(metadata, "general.quantization_version", GGML_QNT_VERSION);
  set("block_count", options.n_layer);
  set("context_length", options.n_ctx_train);
  set("embedding_length", options.n_embd);
  set("feed_forward_length", mamba ? 0 : options.n_ff);
  set("attention.head_count", mamba ? 0 : options.n_head);
  if (options.architecture == TinyArchitecture::kShortConv) {
    std::vector<std::int32_t> heads;
    for (int layer = 0; layer < options.n_layer; ++layer) {
      heads.push_back(tiny_layer_is_recurrent(options, layer) ? 0 : options.n_head_kv);
    }
    gguf_set_arr_data(metadata, (name + ".attention.head_count_kv").c_str(), GGUF_TYPE_INT32,
                      heads.data(), heads.size());
    set("shortconv.l_cache", kTinyConvolution);
  } else if (!mamba) {
    set("attention.head_count_kv", options.n_head_kv);
  }
  if (!mamba) set("rope.dimension_count", options.head_size);
  set("vocab_size", n_vocab);
  gguf_set_val_f32(metadata, (name + ".attention.layer_norm_rms_epsilon").c_str(), 1e-5F);
  if (mamba) {
    set("ssm.conv_kernel", kTinyConvolution);
    set("ssm.inner_size", 2 * options.n_embd);
    set("ssm.state_size", kTinyState);
    set("ssm.time_step_rank", kTinyTimeRank);
    return;
  }
  if (options.n_expert > 0) {
    set("expert_count", options.n_expert);
    set("expert_used_count", options.n_expert_used);
  }
  if (options.architecture == TinyArchitecture::kSlidingWindow) {
    set("attention.sliding_window", options.sliding_window);
    set("attention.sliding_window_pattern", 2);
  }
  gguf_set_val_f32(metadata, (name + ".rope.freq_base").c_str(), 10000.0F);
  if (options.short_context > 0) {
    gguf_set_val_str(metadata, (name + ".rope.scaling.type").c_str(), "longrope");
    set("rope.scaling.original_context_length", options.short_context);
  }
  // Only where it is not the default, as in the files of real models.
  if (options.n_embd != options.n_head * options.head_size) {
    set("attention.key_length", options.head_size);
    set("attention.value_length", options.head_size);
  }
}

}  // namespace

bool tiny_layer_is_recurrent(const TinyModelOptions& options, int layer) {
  return options.architecture == TinyArchitecture::kMamba ||
         (options.architecture == TinyArchitecture::kShortConv && layer % 2 == 0);
}

const char* tiny_architecture_name(TinyArchitecture architecture) {
  switch (architecture) {
    case TinyArchitecture::kLlama:
      return "llama";
    case TinyArchitecture::kSlidingWindow:
      return "olmo2";
    case TinyArchitecture::kShortConv:
      return "lfm2";
    case TinyArchitecture::kMamba:
      return "mamba";
  }
  return "?";
}

void set_tiny_vocabulary(gguf_context* metadata, const TinyVocabulary& vocabulary) {
  const bool bpe = vocabulary.options.tokenizer == TinyTokenizer::kBpe;
  std::vector<const char*> texts;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  for (const TinyToken& token : vocabulary.tokens) {
    texts.push_back(token.text.c_str());
    scores.push_back(-static_cast<float>(scores.size()));  // earlier tokens are merged first
    types.push_back(static_cast<std::int32_t>(token.type));
  }
  gguf_set_val_str(metadata, "tokenizer.ggml.model", bpe ? "gpt2" : "llama");
  gguf_set_val_str(metadata, "tokenizer.ggml.pre",
                   bpe ? vocabulary.options.splits.c_str() : "default");
  gguf_set_arr_str(metadata, "tokenizer.ggml.tokens", texts.data(), texts.size());
  gguf_set_arr_data(metadata, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(),
                    scores.size());
  gguf_set_arr_data(metadata, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(),
                    types.size());
  if (bpe) {
    std::vector<const char*> merges;
    for (const std::string& merge : vocabulary.merges) merges.push_back(merge.c_str());
    gguf_set_arr_str(metadata, "tokenizer.ggml.merges", merges.data(), merges.size());
  }
  set_u32(metadata, "tokenizer.ggml.unknown_token_id", kTinyUnknown);
  set_u32(metadata, "tokenizer.ggml.bos_token_id", kTinyBos);
  set_u32(metadata, "tokenizer.ggml.eos_token_id", kTinyEos);
  set_u32(metadata, "tokenizer.ggml.eot_token_id", kTinyTurnEnd);
  set_u32(metadata, "tokenizer.ggml.padding_token_id", kTinyPad);
  gguf_set_val_bool(metadata, "tokenizer.ggml.add_bos_token", vocabulary.options.add_bos);
  gguf_set_val_bool(metadata, "tokenizer.ggml.add_eos_token", false);
  gguf_set_val_bool(metadata, "tokenizer.ggml.add_space_prefix", vocabulary.options.space_prefix);
  if (vocabulary.options.chat_template) {
    gguf_set_val_str(metadata, "tokenizer.chat_template",
                     (vocabulary.options.template_text.empty() ? std::string(tiny_chat_template())
                                                               : vocabulary.options.template_text)
                         .c_str());
  }
}

GgufHandle tiny_metadata(const TinyModelOptions& options, const TinyVocabulary& vocabulary) {
  GgufHandle metadata(gguf_init_empty());
  set_shape(metadata.get(), options, vocabulary.size());
  set_tiny_vocabulary(metadata.get(), vocabulary);
  return metadata;
}

}  // namespace outrider::testing
