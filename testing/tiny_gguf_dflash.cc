#include "testing/tiny_gguf_dflash.h"

#include <cmath>

#include "testing/tiny_gguf_parts.h"
#include "testing/tiny_metadata.h"

namespace outrider::testing {
namespace {

constexpr int kHeads = 2;

Status check(const TinyLagOptions& target, const TinyDflashOptions& options) {
  const auto bad = [](const char* what) {
    return invalid_argument(std::string("tiny dflash head: ") + what);
  };
  if (target.architecture == TinyLagArchitecture::kHyV3) {
    return bad("llama.cpp has no taps for hy_v3");
  }
  if (options.block_size < 2 || options.block_size > 64) return bad("block_size must be 2 to 64");
  if (options.taps.empty()) return bad("taps must not be empty");
  for (const int tap : options.taps) {
    if (tap < 0 || tap >= target.n_layer) return bad("taps must be layers of the target");
  }
  if (options.head == TinyHead::kEqual) {
    if (target.reads_current)
      return bad("the target must not have reads_current for an equal head");
    if (options.block_size > target.lags[0] + 2 || options.block_size > target.lags[1] + 2) {
      return bad("block_size must be at most a lag + 2 for an equal head");
    }
  }
  if (!(options.noise >= 0.0F) || options.noise > 100.0F) return bad("noise must be 0 to 100");
  return Status();
}

void add_equal_head(TinyTensors& tensors, const TinyLagOptions& target, int n_taps) {
  TinyMatrix& fc = tensors.zeros("fc.weight", n_taps * kPartsEmbd, kPartsEmbd);
  fc.at(0, 0) = 1.0F;
  copy_part(fc, part_dimension(0, 0), (n_taps - 1) * kPartsEmbd + part_dimension(0, 0), 1.0F);
  tensors.plain("enc.output_norm.weight", kPartsEmbd, 0, parts_norm(1));
  tensors.plain("blk.0.attn_norm.weight", kPartsEmbd, 0, parts_norm(1));
  TinyMatrix& query = tensors.zeros("blk.0.attn_q.weight", kPartsEmbd, kHeads * kPartsHead);
  for (int head = 0; head < kHeads; ++head) {
    // At its own token's position, one behind that of which the target guesses it.
    set_parts_query(query, head * kPartsHead, 0, target.lags[static_cast<std::size_t>(head)] + 1,
                    RopePairs::kHalves, 1.0);
  }
  set_parts_key(tensors.zeros("blk.0.attn_k.weight", kPartsEmbd, kPartsHead), 0, 0, 1.0);
  copy_part(tensors.zeros("blk.0.attn_v.weight", kPartsEmbd, kPartsHead), 0, part_dimension(0, 0),
            1.0F);
  TinyMatrix& out = tensors.zeros("blk.0.attn_output.weight", kHeads * kPartsHead, kPartsEmbd);
  copy_part(out, part_dimension(1, 0), 0, 1.0F);
  copy_part(out, part_dimension(2, 0), kPartsHead, 1.0F);
  tensors.plain("blk.0.attn_q_norm.weight", kPartsHead, 0, kPartsScore);
  tensors.plain("blk.0.attn_k_norm.weight", kPartsHead, 0, kPartsScore);
}

void add_noise_head(TinyTensors& tensors, int n_taps) {
  const double size = 1.0 / std::sqrt(kPartsEmbd);
  tensors.gaussian("fc.weight", n_taps * kPartsEmbd, kPartsEmbd, size);
  tensors.plain("enc.output_norm.weight", kPartsEmbd, 0, 1.0);
  tensors.plain("blk.0.attn_norm.weight", kPartsEmbd, 0, 1.0);
  tensors.gaussian("blk.0.attn_q.weight", kPartsEmbd, kHeads * kPartsHead, size);
  tensors.gaussian("blk.0.attn_k.weight", kPartsEmbd, kPartsHead, size);
  tensors.gaussian("blk.0.attn_v.weight", kPartsEmbd, kPartsHead, size);
  tensors.gaussian("blk.0.attn_output.weight", kHeads * kPartsHead, kPartsEmbd, size);
  tensors.plain("blk.0.attn_q_norm.weight", kPartsHead, 0, 1.0);
  tensors.plain("blk.0.attn_k_norm.weight", kPartsHead, 0, 1.0);
}

}  // namespace

Status write_tiny_dflash(const std::string& path, const TinyLagOptions& target,
                         const TinyDflashOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check(target, options));
  const Result<TinyVocabulary> vocabulary = make_tiny_vocabulary(target.vocabulary);
  if (!vocabulary.ok()) return vocabulary.status();
  const int n_taps = static_cast<int>(options.taps.size());

  GgufHandle metadata(gguf_init_empty());
  set_parts_shape(metadata.get(), "dflash", target.name + " dflash", 1, kHeads, 1,
                  target.n_ctx_train);
  set_key(metadata.get(), "dflash", "vocab_size", vocabulary->size());
  set_key(metadata.get(), "dflash", "block_size", options.block_size);
  const std::vector<std::int32_t> taps(options.taps.begin(), options.taps.end());
  gguf_set_arr_data(metadata.get(), "dflash.target_layers", GGUF_TYPE_INT32, taps.data(),
                    taps.size());
  set_tiny_vocabulary(metadata.get(), *vocabulary);
  gguf_set_val_u32(metadata.get(), "tokenizer.ggml.mask_token_id", kTinyPad);

  TinyTensors tensors(options.weight_type, options.seed);
  if (options.head == TinyHead::kEqual) {
    add_equal_head(tensors, target, n_taps);
  } else {
    add_noise_head(tensors, n_taps);
  }
  tensors.plain("blk.0.ffn_norm.weight", kPartsEmbd, 0, 1.0);
  add_feed_forward(tensors, "blk.0.", options.head);
  tensors.plain("output_norm.weight", kPartsEmbd, 0, 1.0);
  tensors.add_noise("", options.noise, options.noise_seed);
  return tensors.write(path, metadata.get());
}

}  // namespace outrider::testing
