#include "testing/tiny_gguf.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "testing/gguf_file.h"
#include "testing/tiny_gguf_tensors.h"
#include "testing/tiny_metadata.h"
#include "testing/tiny_weights.h"

namespace outrider::testing {
namespace {

constexpr double kBiasEmbedding = 4.0;  // what every token's embedding holds in the bias dimension
// What the bias dimension is after the last norm, measured over the default shape (2.0 +- 0.3); a
// bias of b nats is b / kBiasAfterNorm in the output's weights.
constexpr double kBiasAfterNorm = 2.0;
constexpr double kScoreSize = 2.0;  // size of query and key entries: attention scores of size 4
constexpr double kAttentionGain = 1.5;
constexpr double kFeedForwardGain = 1.5;
// Each token's output weights lean away from its own embedding; otherwise runs of one token are
// fixed points. Measured over 288 greedy texts of 64 tokens: without it 10 % of the tokens repeat
// the one before and the dullest text has 5 different ones; with 0.7, 0.2 % and 14.
constexpr double kRepulsion = 0.7;

// One tensor to write: its description and its values.
struct TinyTensor {
  TensorInfo info;
  std::vector<float> values;  // [rows, row_length]
};

class TinyModelBuilder {
 public:
  TinyModelBuilder(const TinyModelOptions& options, const TinyVocabulary& vocabulary)
      : options_(options), vocabulary_(vocabulary) {}

  std::vector<TinyTensor> build() {
    add_embedding();
    if (options_.rope_factors) add_rope_factors("rope_freqs.weight", 8.0F);
    if (options_.short_context > 0) {
      add_rope_factors("rope_factors_short.weight", 1.0F);
      add_rope_factors("rope_factors_long.weight", 8.0F);
    }
    for (int layer = 0; layer < options_.n_layer; ++layer) add_layer(layer);
    const bool lfm2 = options_.architecture == TinyArchitecture::kShortConv;
    add_norm(lfm2 ? "token_embd_norm.weight" : "output_norm.weight");
    if (!options_.tied_output) add_output();
    return std::move(tensors_);
  }

 private:
  // A matrix of `rows` rows with independent entries of size `deviation`, before noise.
  TinyTensor gaussian_matrix(const std::string& name, int columns, int rows, double deviation) {
    TinyTensor tensor{{name, stored_type(options_.weight_type), {columns, rows}}, {}};
    const std::uint64_t key = tensor_key(options_.seed, name);
    const std::size_t n = static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows);
    tensor.values.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      tensor.values.push_back(static_cast<float>(tiny_gaussian(key, i) * deviation));
    }
    return tensor;
  }

  void add_noise(TinyTensor& tensor) const {
    if (options_.noise == 0.0F) return;
    const double size = root_mean_square(tensor.values) * static_cast<double>(options_.noise);
    const std::uint64_t key = tensor_key(~options_.noise_seed, tensor.info.name);
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      tensor.values[i] += static_cast<float>(tiny_gaussian(key, i) * size);
    }
  }

  static void set_column(TinyTensor& tensor, int column, const std::function<double(int)>& value) {
    const std::size_t columns = static_cast<std::size_t>(tensor.info.row_length());
    for (int row = 0; row < static_cast<int>(tensor.info.n_rows()); ++row) {
      tensor.values[static_cast<std::size_t>(row) * columns + static_cast<std::size_t>(column)] =
          static_cast<float>(value(row));
    }
  }

  static void clear_row(TinyTensor& tensor, int row) {
    const std::ptrdiff_t columns = tensor.info.row_length();
    std::fill_n(tensor.values.begin() + row * columns, columns, 0.0F);
  }

  void add_embedding() {
    // With a tied output these rows are the output's too, and set the size of the logits.
    const double size = options_.tied_output ? static_cast<double>(options_.logit_spread) /
                                                   std::sqrt(options_.n_embd)
                                             : 1.0;
    TinyTensor tensor =
        gaussian_matrix("token_embd.weight", options_.n_embd, vocabulary_.size(), size);
    add_noise(tensor);
    set_column(tensor, kTinyBiasDimension, [&](int token) {
      return options_.tied_output && bias_of(token) < -8.0 ? -kBiasEmbedding * size
                                                           : kBiasEmbedding * size;
    });
    tensors_.push_back(std::move(tensor));
  }

  double bias_of(int id) const {
    return tiny_token_bias(vocabulary_.tokens[static_cast<std::size_t>(id)], options_.eos_bias,
                           options_.odd_byte_bias);
  }

  void add_output() {
    const double size = static_cast<double>(options_.logit_spread) / std::sqrt(options_.n_embd);
    TinyTensor tensor = gaussian_matrix("output.weight", options_.n_embd, vocabulary_.size(), size);
    const std::uint64_t embedding = tensor_key(options_.seed, "token_embd.weight");
    const double repulsion = kRepulsion / std::sqrt(options_.n_embd);
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      tensor.values[i] -= static_cast<float>(tiny_gaussian(embedding, i) * repulsion);
    }
    add_noise(tensor);
    for (int id = 0; id < vocabulary_.size(); ++id) {
      if (bias_of(id) == kTinyNeverBias) clear_row(tensor, id);
    }
    set_column(tensor, kTinyBiasDimension, [&](int id) { return bias_of(id) / kBiasAfterNorm; });
    tensors_.push_back(std::move(tensor));
  }

  // Near 1, not exactly, so that a norm that is scaled or left out shows.
  void add_norm(const std::string& name) { add_vector(name, options_.n_embd, 1.0, 0.1); }

  // F32 values around `mean`.
  void add_vector(const std::string& name, int size, double mean, double deviation) {
    add_plain(name, size, 0, mean, deviation);
  }

  // The same as a matrix, when rows > 0.
  void add_plain(const std::string& name, int columns, int rows, double mean, double deviation) {
    TinyTensor tensor{{name, GGML_TYPE_F32, {columns}}, {}};
    if (rows > 0) tensor.info.shape.push_back(rows);
    const std::uint64_t key = tensor_key(options_.seed, name);
    const int n = columns * std::max(1, rows);
    for (int i = 0; i < n; ++i) {
      const double offset = tiny_gaussian(key, static_cast<std::uint64_t>(i)) * deviation;
      tensor.values.push_back(static_cast<float>(mean) + static_cast<float>(offset));
    }
    tensors_.push_back(std::move(tensor));
  }

  // `slow`: by what the slower half of the angles is divided.
  void add_rope_factors(const std::string& name, float slow) {
    TinyTensor tensor{{name, GGML_TYPE_F32, {options_.head_size / 2}}, {}};
    for (int i = 0; i < options_.head_size / 2; ++i) {
      tensor.values.push_back(i < options_.head_size / 4 ? 1.0F : slow);
    }
    tensors_.push_back(std::move(tensor));
  }

  // `writes_stream`: the result is added to the residual stream, whose bias dimension stays as is.
  void add_matrix(const std::string& name, int columns, int rows, double gain, bool writes_stream) {
    TinyTensor tensor = gaussian_matrix(name + ".weight", columns, rows, gain / std::sqrt(columns));
    add_noise(tensor);
    if (writes_stream) clear_row(tensor, kTinyBiasDimension);
    tensors_.push_back(std::move(tensor));
    if (options_.weight_scales) add_scale(name, 1);
    if (!options_.linear_biases) return;
    TinyTensor bias{{name + ".bias", GGML_TYPE_F32, {rows}}, {}};
    const std::uint64_t key = tensor_key(options_.seed, bias.info.name);
    for (int i = 0; i < rows; ++i) {
      const double value = tiny_gaussian(key, static_cast<std::uint64_t>(i)) * 0.2;
      bias.values.push_back(writes_stream && i == kTinyBiasDimension ? 0.0F
                                                                     : static_cast<float>(value));
    }
    tensors_.push_back(std::move(bias));
  }

  void add_scale(const std::string& name, int n) {
    TinyTensor scale{{name + ".scale", GGML_TYPE_F32, {n}}, {}};
    scale.values.assign(static_cast<std::size_t>(n), 1.0F);
    tensors_.push_back(std::move(scale));
  }

  void add_layer(int layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    // olmo2 normalises what a layer adds to the stream, the others what it reads.
    const bool norm_after = options_.architecture == TinyArchitecture::kSlidingWindow;
    if (!norm_after) add_norm(block + "attn_norm.weight");
    if (options_.architecture == TinyArchitecture::kMamba) return add_mamba(block);
    if (tiny_layer_is_recurrent(options_, layer)) {
      add_convolution(block);
    } else {
      add_attention(block);
    }
    if (norm_after) add_norm(block + "post_attention_norm.weight");
    if (!norm_after) add_norm(block + "ffn_norm.weight");
    if (options_.n_expert > 0) return add_experts(block);
    add_matrix(block + "ffn_gate", options_.n_embd, options_.n_ff, 1.0, false);
    add_matrix(block + "ffn_up", options_.n_embd, options_.n_ff, 1.0, false);
    add_matrix(block + "ffn_down", options_.n_ff, options_.n_embd, kFeedForwardGain, true);
    if (norm_after) add_norm(block + "post_ffw_norm.weight");
  }

  void add_experts(const std::string& block) {
    add_plain(block + "ffn_gate_inp.weight", options_.n_embd, options_.n_expert, 0.0,
              1.0 / std::sqrt(options_.n_embd));
    add_expert_matrix(block + "ffn_gate_exps", options_.n_embd, options_.n_ff, 1.0, false);
    add_expert_matrix(block + "ffn_up_exps", options_.n_embd, options_.n_ff, 1.0, false);
    add_expert_matrix(block + "ffn_down_exps", options_.n_ff, options_.n_embd, kFeedForwardGain,
                      true);
  }

  // One of `rows` rows for each expert.
  void add_expert_matrix(const std::string& name, int columns, int rows, double gain,
                         bool writes_stream) {
    TinyTensor tensor = gaussian_matrix(name + ".weight", columns, rows * options_.n_expert,
                                        gain / std::sqrt(columns));
    add_noise(tensor);
    for (int i = 0; writes_stream && i < options_.n_expert; ++i) {
      clear_row(tensor, i * rows + kTinyBiasDimension);
    }
    tensor.info.shape = {columns, rows, options_.n_expert};
    tensors_.push_back(std::move(tensor));
    if (options_.weight_scales) add_scale(name, options_.n_expert);
  }

  void add_attention(const std::string& block) {
    const int n_embd = options_.n_embd;
    const int n_query = options_.n_head * options_.head_size;
    const int n_key = options_.n_head_kv * options_.head_size;
    add_matrix(block + "attn_q", n_embd, n_query, kScoreSize, false);
    add_matrix(block + "attn_k", n_embd, n_key, kScoreSize, false);
    add_matrix(block + "attn_v", n_embd, n_key, 1.0, false);
    add_matrix(block + "attn_output", n_query, n_embd, kAttentionGain, true);
    // olmo2 normalises all queries (keys) together, lfm2 each head's.
    const bool together = options_.architecture == TinyArchitecture::kSlidingWindow;
    if (options_.architecture == TinyArchitecture::kLlama) return;
    add_vector(block + "attn_q_norm.weight", together ? n_query : options_.head_size, kScoreSize,
               0.1);
    add_vector(block + "attn_k_norm.weight", together ? n_key : options_.head_size, kScoreSize,
               0.1);
  }

  void add_convolution(const std::string& block) {
    add_matrix(block + "shortconv.in_proj", options_.n_embd, 3 * options_.n_embd, 1.0, false);
    add_plain(block + "shortconv.conv.weight", kTinyConvolution, options_.n_embd, 0.0, 0.7);
    add_matrix(block + "shortconv.out_proj", options_.n_embd, options_.n_embd, kAttentionGain,
               true);
  }

  // Steps of about softplus(-1) = 0.3 and decays of exp(-0.3 * 1) per token: a memory of a few
  // tokens to a few dozen.
  void add_mamba(const std::string& block) {
    const int n_embd = options_.n_embd;
    const int n_inner = 2 * n_embd;
    add_matrix(block + "ssm_in", n_embd, 2 * n_inner, 1.0, false);
    add_plain(block + "ssm_conv1d.weight", kTinyConvolution, n_inner, 0.0, 0.7);
    add_vector(block + "ssm_conv1d.bias", n_inner, 0.0, 0.1);
    add_matrix(block + "ssm_x", n_inner, kTinyTimeRank + 2 * kTinyState, 1.0, false);
    add_matrix(block + "ssm_dt", kTinyTimeRank, n_inner, 1.0, false);
    add_vector(block + "ssm_dt.bias", n_inner, -1.0, 0.5);
    add_plain(block + "ssm_a", kTinyState, n_inner, -1.0, 0.25);
    add_vector(block + "ssm_d", n_inner, 1.0, 0.2);
    add_matrix(block + "ssm_out", n_inner, n_embd, kFeedForwardGain, true);
  }

  const TinyModelOptions& options_;
  const TinyVocabulary& vocabulary_;
  std::vector<TinyTensor> tensors_;
};

Status check_options(const TinyModelOptions& options) {
  const auto bad = [](const char* what) {
    return invalid_argument(std::string("tiny model: ") + what);
  };
  if (options.n_layer < 1 || options.n_layer > 64) return bad("n_layer must be 1 to 64");
  if (options.n_head < 1) return bad("n_head must be at least 1");
  if (options.n_head_kv < 1 || options.n_head % options.n_head_kv != 0) {
    return bad("n_head_kv must be at least 1 and divide n_head");
  }
  if (options.n_embd < 32 || options.n_embd % 32 != 0) return bad("n_embd must divide by 32");
  if (options.n_ff < 32 || options.n_ff % 32 != 0) return bad("n_ff must divide by 32");
  if (options.head_size < 32 || options.head_size % 32 != 0) {
    return bad("head_size must divide by 32");
  }
  if (options.n_ctx_train < 1) return bad("n_ctx_train must be at least 1");
  if (options.short_context < 0 || (options.short_context > 0 && options.rope_factors)) {
    return bad("short_context must be 0 or more, and 0 with rope_factors");
  }
  if (options.architecture != TinyArchitecture::kLlama) {
    if (options.n_embd != options.n_head * options.head_size) {
      return bad("n_embd must be n_head * head_size but for llama");
    }
    if (options.linear_biases || options.weight_scales || options.rope_factors ||
        options.tied_output || options.short_context > 0) {
      return bad(
          "linear_biases, weight_scales, rope_factors, short_context and tied_output are for llama "
          "only");
    }
    if (options.sliding_window < 1) return bad("sliding_window must be at least 1");
  }
  if (options.n_expert < 0 || options.n_expert > 256) return bad("n_expert must be 0 to 256");
  if (options.n_expert > 0) {
    if (options.n_expert_used < 1 || options.n_expert_used > options.n_expert) {
      return bad("n_expert_used must be 1 to n_expert");
    }
    if (options.architecture != TinyArchitecture::kLlama || options.linear_biases) {
      return bad("n_expert is for llama without linear_biases");
    }
  }
  if (!(options.noise >= 0.0F) || options.noise > 100.0F) return bad("noise must be 0 to 100");
  return Status();
}

}  // namespace

const char* weight_type_name(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return "F32";
    case WeightType::kQ8_0:
      return "Q8_0";
    case WeightType::kQ4_0:
      return "Q4_0";
  }
  return "?";
}

Status write_tiny_gguf(const std::string& path, const TinyModelOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check_options(options));
  const Result<TinyVocabulary> vocabulary = make_tiny_vocabulary(options.vocabulary);
  if (!vocabulary.ok()) return vocabulary.status();

  const GgufHandle metadata = tiny_metadata(options, *vocabulary);

  const std::vector<TinyTensor> tensors = TinyModelBuilder(options, *vocabulary).build();
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const TinyTensor& tensor : tensors) infos.push_back(tensor.info);
  const TensorSource source = [&](std::size_t index, std::vector<std::uint8_t>& data) {
    const bool is_matrix = tensors[index].info.type != GGML_TYPE_F32;
    data =
        encode_weights(tensors[index].values, is_matrix ? options.weight_type : WeightType::kF32);
    return Status();
  };
  return write_gguf(path, metadata.get(), infos, source, /*durable=*/false);
}

}  // namespace outrider::testing
