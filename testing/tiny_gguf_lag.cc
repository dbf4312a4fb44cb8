#include "testing/tiny_gguf_lag.h"

#include <cmath>

#include "testing/tiny_gguf_parts.h"
#include "testing/tiny_metadata.h"

namespace outrider::testing {
namespace {

constexpr int kHeads = 2;
constexpr double kOpenGate = 30.0;  // its sigmoid is 1
// Of the recurrent layers: one head of kPartsHead.
constexpr int kConvolution = 4;
constexpr double kConvolutionWeight = 2.0;

double silu(double x) { return x / (1.0 + std::exp(-x)); }

class LagBuilder {
 public:
  LagBuilder(const TinyLagOptions& options, const TinyVocabulary& vocabulary)
      : options_(options),
        vocabulary_(vocabulary),
        qwen_(options.architecture == TinyLagArchitecture::kQwen35),
        tensors_(options.weight_type, options.seed) {}

  const TinyTensors& build() {
    add_parts_embedding(tensors_, "token_embd.weight", options_, vocabulary_);
    for (int layer = 0; layer < options_.n_layer; ++layer) add_layer(layer);
    tensors_.plain("output_norm.weight", kPartsEmbd, 0, 1.0);
    add_parts_output(tensors_, "output.weight", options_, vocabulary_, all_ids(vocabulary_));
    for (std::size_t i = 0; i < options_.mtp.size(); ++i) {
      add_mtp(options_.n_layer + static_cast<int>(i), options_.mtp[i]);
    }
    return tensors_;
  }

 private:
  std::string block(int layer) const { return "blk." + std::to_string(layer) + "."; }
  RopePairs pairs() const {
    return options_.architecture == TinyLagArchitecture::kLlama ? RopePairs::kNeighbours
                                                                : RopePairs::kHalves;
  }
  bool has_head_norms() const { return options_.architecture != TinyLagArchitecture::kLlama; }
  double entry() const { return has_head_norms() ? 1.0 : kPartsScore; }

  void add_layer(int layer) {
    const std::string name = block(layer);
    const bool recurrent = qwen_ && layer % 2 == 0;
    // What the stream holds when the layer reads it: see the header.
    const int n_parts = layer == 0 ? 1 : qwen_ && layer == 1 ? 2 : 3;
    tensors_.plain(name + "attn_norm.weight", kPartsEmbd, 0, parts_norm(n_parts));
    if (recurrent) {
      add_recurrent(name, layer == 0);
    } else {
      const bool writes = layer == (qwen_ ? 1 : 0);
      add_attention(name, writes);
    }
    tensors_.plain(name + (qwen_ ? "post_attention_norm.weight" : "ffn_norm.weight"), kPartsEmbd, 0,
                   1.0);
    add_feed_forward(tensors_, name, TinyHead::kEqual);
  }

  // Queries of kHeads heads that look `distances` back, and the keys; values are the part that
  // begins at `value_column`.
  void add_lookup(const std::string& name, const std::array<int, kHeads>& distances,
                  int value_column) {
    const int per_head = qwen_ ? 2 * kPartsHead : kPartsHead;
    TinyMatrix& query = tensors_.zeros(name + "attn_q.weight", kPartsEmbd, kHeads * per_head);
    for (int head = 0; head < kHeads; ++head) {
      set_parts_query(query, head * per_head, 0, distances[static_cast<std::size_t>(head)], pairs(),
                      entry());
      if (qwen_) set_parts_key(query, head * per_head + kPartsHead, 0, kOpenGate);
    }
    set_parts_key(tensors_.zeros(name + "attn_k.weight", kPartsEmbd, kPartsHead), 0, 0, entry());
    copy_part(tensors_.zeros(name + "attn_v.weight", kPartsEmbd, kPartsHead), 0, value_column,
              1.0F);
    if (!has_head_norms()) return;
    tensors_.plain(name + "attn_q_norm.weight", kPartsHead, 0, kPartsScore);
    tensors_.plain(name + "attn_k_norm.weight", kPartsHead, 0, kPartsScore);
  }

  void add_attention(const std::string& name, bool writes) {
    add_lookup(name, options_.lags, part_dimension(0, 0));
    TinyMatrix& out = tensors_.zeros(name + "attn_output.weight", kHeads * kPartsHead, kPartsEmbd);
    if (!writes) return;
    // kQwen35's second part is the recurrent layer's.
    if (!qwen_) copy_part(out, part_dimension(1, 0), 0, 1.0F);
    copy_part(out, part_dimension(2, 0), kPartsHead, 1.0F);
  }

  // The state is overwritten at every position (beta 1, decay e^-50): what is read is the value,
  // the convolution's look `lags[0]` back. SiLU of +-w is mu +- w/2; a constant in the value's next
  // dimension takes mu away again.
  void add_recurrent(const std::string& name, bool writes) {
    const int n_keys = 2 * kPartsHead;
    TinyMatrix& in = tensors_.zeros(name + "attn_qkv.weight", kPartsEmbd, n_keys + kPartsHead);
    TinyMatrix& convolution =
        tensors_.plain(name + "ssm_conv1d.weight", kConvolution, n_keys + kPartsHead, 0.0);
    for (int row = 0; row < n_keys; ++row) {
      in.at(row, 0) = 1.0F;
      convolution.at(row, kConvolution - 1) = 1.0F;
    }
    copy_part(in, n_keys, part_dimension(0, 0), 1.0F);
    for (int i = 0; i < kPartSize; ++i) {
      convolution.at(n_keys + i, kConvolution - 1 - options_.lags[0]) =
          static_cast<float>(kConvolutionWeight);
    }
    in.at(n_keys + kPartSize, 0) = 1.0F;
    convolution.at(n_keys + kPartSize, kConvolution - 1) = 1.0F;

    set_parts_key(tensors_.zeros(name + "attn_gate.weight", kPartsEmbd, kPartsHead), 0, 0, 1.0);
    tensors_.plain(name + "ssm_dt.bias", 1, 0, 1.0);
    tensors_.plain(name + "ssm_a", 1, 0, -50.0 / std::log1p(std::exp(1.0)));
    tensors_.zeros(name + "ssm_beta.weight", kPartsEmbd, 1).at(0, 0) =
        static_cast<float>(kOpenGate);
    tensors_.zeros(name + "ssm_alpha.weight", kPartsEmbd, 1);

    const double high = silu(kConvolutionWeight);
    const double low = silu(-kConvolutionWeight);
    const double one = silu(1.0);
    const double scale = 1.0 / std::sqrt(kPartsHead);  // of the layer's queries
    const double mean_square =
        (kPartSize / 2.0 * (high * high + low * low) + one * one) / kPartsHead * scale * scale;
    const double norm = std::sqrt(mean_square + static_cast<double>(kPartsEpsilon)) / scale;
    tensors_.plain(name + "ssm_norm.weight", kPartsHead, 0, norm);
    TinyMatrix& out = tensors_.zeros(name + "ssm_out.weight", kPartsHead, kPartsEmbd);
    if (!writes) return;
    const double undo = 1.0 / (one * (high - low) / 2.0);  // of the gate and of SiLU's slope
    copy_part(out, part_dimension(1, 0), 0, static_cast<float>(undo));
    for (int i = 0; i < kPartSize; ++i) {
      out.at(part_dimension(1, i), kPartSize) =
          static_cast<float>(-undo * (high + low) / 2.0 / one);
    }
  }

  void add_mtp(int layer, TinyHead kind) {
    const std::string name = block(layer);
    // A row h is the stream after the last norm, whose mean square is 1 but for the epsilon.
    const double row_norm =
        parts_norm(3) *
        std::sqrt(1.0 - static_cast<double>(kPartsEpsilon) / (parts_norm(3) * parts_norm(3)) +
                  static_cast<double>(kPartsEpsilon));
    tensors_.plain(name + "nextn.enorm.weight", kPartsEmbd, 0, parts_norm(1));
    tensors_.plain(name + "nextn.hnorm.weight", kPartsEmbd, 0, row_norm);
    tensors_.plain(name + "attn_norm.weight", kPartsEmbd, 0, parts_norm(2));
    tensors_.plain(name + (qwen_ ? "post_attention_norm.weight" : "ffn_norm.weight"), kPartsEmbd, 0,
                   1.0);
    if (kind == TinyHead::kEqual) {
      add_equal_block(name);
    } else {
      add_noise_block(name);
    }
    add_feed_forward(tensors_, name, kind);
    if (kind == TinyHead::kEqual) tensors_.add_noise(name, options_.mtp_noise, options_.noise_seed);
  }

  // [code(x_p) | code of h_p-1's first part | the second part of the position before], which is the
  // only way in which the block's own cache counts.
  void add_equal_block(const std::string& name) {
    TinyMatrix& project = tensors_.zeros(name + "nextn.eh_proj.weight", 2 * kPartsEmbd, kPartsEmbd);
    project.at(0, 0) = 1.0F;
    copy_part(project, part_dimension(0, 0), part_dimension(0, 0), 1.0F);
    copy_part(project, part_dimension(1, 0), kPartsEmbd + part_dimension(0, 0), 1.0F);
    add_lookup(name, {1, 1}, part_dimension(1, 0));
    TinyMatrix& out = tensors_.zeros(name + "attn_output.weight", kHeads * kPartsHead, kPartsEmbd);
    copy_part(out, part_dimension(2, 0), 0, 1.0F);
  }

  void add_noise_block(const std::string& name) {
    const double size = 1.0 / std::sqrt(kPartsEmbd);
    const int n_query = kHeads * kPartsHead * (qwen_ ? 2 : 1);
    tensors_.gaussian(name + "nextn.eh_proj.weight", 2 * kPartsEmbd, kPartsEmbd, size);
    tensors_.gaussian(name + "attn_q.weight", kPartsEmbd, n_query, 2 * size);
    tensors_.gaussian(name + "attn_k.weight", kPartsEmbd, kPartsHead, 2 * size);
    tensors_.gaussian(name + "attn_v.weight", kPartsEmbd, kPartsHead, size);
    tensors_.gaussian(name + "attn_output.weight", kHeads * kPartsHead, kPartsEmbd, size);
    tensors_.plain(name + "attn_q_norm.weight", kPartsHead, 0, 1.0);
    tensors_.plain(name + "attn_k_norm.weight", kPartsHead, 0, 1.0);
  }

  const TinyLagOptions& options_;
  const TinyVocabulary& vocabulary_;
  const bool qwen_;
  TinyTensors tensors_;
};

GgufHandle lag_metadata(const TinyLagOptions& options, const TinyVocabulary& vocabulary) {
  GgufHandle metadata(gguf_init_empty());
  const std::string name = tiny_lag_architecture_name(options.architecture);
  const int n_mtp = static_cast<int>(options.mtp.size());
  set_parts_shape(metadata.get(), name, options.name, options.n_layer + n_mtp, kHeads, 1,
                  options.n_ctx_train);
  set_key(metadata.get(), name, "vocab_size", vocabulary.size());
  if (n_mtp > 0) set_key(metadata.get(), name, "nextn_predict_layers", n_mtp);
  if (options.architecture == TinyLagArchitecture::kHyV3) {
    // llama.cpp wants it though no layer has experts.
    set_key(metadata.get(), name, "expert_feed_forward_length", kPartsFeedForward);
  }
  if (options.architecture == TinyLagArchitecture::kQwen35) {
    set_key(metadata.get(), name, "full_attention_interval", 2);
    set_key(metadata.get(), name, "ssm.conv_kernel", kConvolution);
    set_key(metadata.get(), name, "ssm.inner_size", kPartsHead);
    set_key(metadata.get(), name, "ssm.state_size", kPartsHead);
    set_key(metadata.get(), name, "ssm.time_step_rank", 1);
    set_key(metadata.get(), name, "ssm.group_count", 1);
    const std::int32_t sections[] = {11, 11, 10, 0};
    gguf_set_arr_data(metadata.get(), (name + ".rope.dimension_sections").c_str(), GGUF_TYPE_INT32,
                      sections, 4);
  }
  set_tiny_vocabulary(metadata.get(), vocabulary);
  return metadata;
}

Status check(const TinyLagOptions& options) {
  const auto bad = [](const char* what) {
    return invalid_argument(std::string("tiny lag model: ") + what);
  };
  if (options.n_layer < 1 || options.n_layer > 32) return bad("n_layer must be 1 to 32");
  for (const int lag : options.lags) {
    if (lag < 1 || lag > 64) return bad("lags must be 1 to 64");
  }
  if (options.lags[0] == options.lags[1]) return bad("lags must differ");
  if (options.architecture == TinyLagArchitecture::kQwen35) {
    if (options.n_layer < 2) return bad("n_layer must be at least 2 for qwen35");
    if (options.lags[0] >= kConvolution) return bad("lags[0] must be below 4 for qwen35");
    if (options.mtp.size() > 1) return bad("mtp must have at most one block for qwen35");
  }
  if (!options.mtp.empty()) {
    if (options.architecture == TinyLagArchitecture::kLlama) {
      return bad("mtp is for hy_v3 and qwen35; llama has none");
    }
    if (options.lags != std::array<int, 2>{1, 2} || !options.reads_current) {
      return bad("mtp needs lags {1, 2} and reads_current");
    }
  }
  if (!(options.mtp_noise >= 0.0F) || options.mtp_noise > 100.0F) {
    return bad("mtp_noise must be 0 to 100");
  }
  return Status();
}

}  // namespace

const char* tiny_lag_architecture_name(TinyLagArchitecture architecture) {
  switch (architecture) {
    case TinyLagArchitecture::kLlama:
      return "llama";
    case TinyLagArchitecture::kHyV3:
      return "hy_v3";
    case TinyLagArchitecture::kQwen35:
      return "qwen35";
  }
  return "?";
}

Status write_tiny_lag(const std::string& path, const TinyLagOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check(options));
  const Result<TinyVocabulary> vocabulary = make_tiny_vocabulary(options.vocabulary);
  if (!vocabulary.ok()) return vocabulary.status();
  const GgufHandle metadata = lag_metadata(options, *vocabulary);
  return LagBuilder(options, *vocabulary).build().write(path, metadata.get());
}

}  // namespace outrider::testing
