#include "testing/tiny_gguf_eagle3.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "testing/tiny_gguf_parts.h"
#include "testing/tiny_metadata.h"

namespace outrider::testing {
namespace {

constexpr int kHeads = 3;

// Columns of what attention reads: the token's embedding, then g.
int of_token(int part) { return part_dimension(part, 0); }
int of_row(int part) { return kPartsEmbd + part_dimension(part, 0); }

// What both kinds of head are written with.
struct Shape {
  int n_embd_target = kPartsEmbd;
  int n_layer_target = 0;
  int n_ctx = 0;
  std::string target_name;
};

Status check(const Shape& shape, const TinyVocabulary& vocabulary,
             const TinyEagle3Options& options) {
  const auto bad = [](const char* what) {
    return invalid_argument(std::string("tiny eagle3 head: ") + what);
  };
  for (const int tap : options.taps) {
    if (tap < 0 || tap >= shape.n_layer_target) return bad("taps must be layers of the target");
  }
  if (options.head == TinyHead::kEqual && (options.taps[1] < 1 || options.taps[2] < 1)) {
    return bad("taps[1] and taps[2] must be at least 1 for an equal head");
  }
  for (const Token token : options.tokens) {
    if (token < 0 || token >= vocabulary.size()) return bad("tokens must be of the vocabulary");
  }
  if (std::set<Token>(options.tokens.begin(), options.tokens.end()).size() !=
      options.tokens.size()) {
    return bad("tokens must differ");
  }
  if (!options.own_output && !options.tokens.empty()) {
    return bad("tokens need an output of the head's own");
  }
  if (!(options.noise >= 0.0F) || options.noise > 100.0F) return bad("noise must be 0 to 100");
  return Status();
}

// Attention has three heads of 64 values: the first two look at their own position and shift the
// parts (new minus old), the third looks one back.
void add_shift(TinyTensors& tensors) {
  const int n_query = kHeads * kPartsHead;
  TinyMatrix& query = tensors.zeros("blk.0.attn_q.weight", 2 * kPartsEmbd, n_query);
  TinyMatrix& key = tensors.zeros("blk.0.attn_k.weight", 2 * kPartsEmbd, n_query);
  for (int head = 0; head < kHeads; ++head) {
    set_parts_query(query, head * kPartsHead, 0, head == 2 ? 1 : 0, RopePairs::kNeighbours,
                    kPartsScore);
    set_parts_key(key, head * kPartsHead, 0, kPartsScore);
  }
  TinyMatrix& value = tensors.zeros("blk.0.attn_v.weight", 2 * kPartsEmbd, n_query);
  TinyMatrix& out = tensors.zeros("blk.0.attn_output.weight", n_query, kPartsEmbd);
  // Values 0 to 119 of the first two heads: what each part becomes, less what it is.
  copy_part(value, 0, of_token(0), 1.0F);
  copy_part(value, 0, of_row(0), -1.0F);
  copy_part(value, kPartSize, of_row(0), 1.0F);
  copy_part(value, kPartSize, of_row(1), -1.0F);
  copy_part(value, 2 * kPartSize, of_row(2), -1.0F);
  for (int part = 0; part < 3; ++part) {
    copy_part(out, part_dimension(part, 0), part * kPartSize, 1.0F);
  }
  // The third head: the first part of g one position back.
  copy_part(value, 2 * kPartsHead, of_row(0), 1.0F);
  copy_part(out, part_dimension(2, 0), 2 * kPartsHead, 1.0F);
}

void add_equal_head(TinyTensors& tensors) {
  TinyMatrix& fc = tensors.zeros("fc.weight", 3 * kPartsEmbd, kPartsEmbd);
  for (int part = 0; part < 3; ++part) {
    copy_part(fc, part_dimension(part, 0), part * kPartsEmbd + part_dimension(part, 0), 1.0F);
  }
  fc.at(0, 2 * kPartsEmbd) = 1.0F;
  tensors.plain("blk.0.attn_norm.weight", kPartsEmbd, 0, parts_norm(1));
  tensors.plain("blk.0.attn_norm_2.weight", kPartsEmbd, 0, parts_norm(3));
  add_shift(tensors);
}

void add_noise_head(TinyTensors& tensors, const Shape& shape, int n_embd) {
  const double size = 1.0 / std::sqrt(n_embd);
  const int n_query = kHeads * kPartsHead;
  tensors.gaussian("fc.weight", 3 * shape.n_embd_target, n_embd, size);
  tensors.plain("blk.0.attn_norm.weight", n_embd, 0, 1.0);
  tensors.plain("blk.0.attn_norm_2.weight", n_embd, 0, 1.0);
  tensors.gaussian("blk.0.attn_q.weight", 2 * n_embd, n_query, 2 * size);
  tensors.gaussian("blk.0.attn_k.weight", 2 * n_embd, n_query, 2 * size);
  tensors.gaussian("blk.0.attn_v.weight", 2 * n_embd, n_query, size);
  tensors.gaussian("blk.0.attn_output.weight", n_query, n_embd, size);
}

GgufHandle eagle3_metadata(const Shape& shape, const TinyVocabulary& vocabulary,
                           const TinyEagle3Options& options) {
  GgufHandle metadata(gguf_init_empty());
  set_parts_shape(metadata.get(), "eagle3", shape.target_name + " eagle3", 1, kHeads, kHeads,
                  shape.n_ctx);
  set_key(metadata.get(), "eagle3", "embedding_length", shape.n_embd_target);
  set_key(metadata.get(), "eagle3", "vocab_size", vocabulary.size());
  set_key(metadata.get(), "eagle3", "target_hidden_size", shape.n_embd_target);
  const std::array<std::int32_t, 3> taps = {options.taps[0], options.taps[1], options.taps[2]};
  gguf_set_arr_data(metadata.get(), "eagle3.target_layers", GGUF_TYPE_INT32, taps.data(),
                    taps.size());
  set_tiny_vocabulary(metadata.get(), vocabulary);
  return metadata;
}

}  // namespace

Status write_tiny_eagle3(const std::string& path, const TinyLagOptions& target,
                         const TinyEagle3Options& options) {
  const Result<TinyVocabulary> vocabulary = make_tiny_vocabulary(target.vocabulary);
  if (!vocabulary.ok()) return vocabulary.status();
  const Shape shape = {kPartsEmbd, target.n_layer, target.n_ctx_train, target.name};
  OUTRIDER_RETURN_IF_ERROR(check(shape, *vocabulary, options));
  if (target.architecture == TinyLagArchitecture::kHyV3) {
    return invalid_argument("tiny eagle3 head: llama.cpp has no taps for hy_v3");
  }
  if (options.head == TinyHead::kEqual &&
      (target.lags != std::array<int, 2>{1, 2} || !target.reads_current)) {
    return invalid_argument(
        "tiny eagle3 head: lags must be {1, 2}, reads_current, for an equal one");
  }
  TinyTensors tensors(options.weight_type, options.seed);
  if (options.head == TinyHead::kEqual) {
    add_equal_head(tensors);
  } else {
    add_noise_head(tensors, shape, kPartsEmbd);
  }
  tensors.plain("blk.0.ffn_norm.weight", kPartsEmbd, 0, 1.0);
  add_feed_forward(tensors, "blk.0.", options.head);
  tensors.plain("output_norm.weight", kPartsEmbd, 0, 1.0);
  tensors.add_noise("", options.noise, options.noise_seed);
  if (options.own_embedding) {
    add_parts_embedding(tensors, "token_embd.weight", target, *vocabulary);
  }
  if (options.own_output) {
    add_parts_output(tensors, "output.weight", target, *vocabulary,
                     options.tokens.empty() ? all_ids(*vocabulary) : options.tokens);
  }
  if (!options.tokens.empty()) tensors.token_ids("d2t", options.tokens);
  return tensors.write(path, eagle3_metadata(shape, *vocabulary, options).get());
}

Status write_tiny_eagle3(const std::string& path, const TinyModelOptions& target,
                         const TinyEagle3Options& options) {
  const Result<TinyVocabulary> vocabulary = make_tiny_vocabulary(target.vocabulary);
  if (!vocabulary.ok()) return vocabulary.status();
  const Shape shape = {target.n_embd, target.n_layer, target.n_ctx_train, target.name};
  OUTRIDER_RETURN_IF_ERROR(check(shape, *vocabulary, options));
  if (target.architecture != TinyArchitecture::kLlama || options.head != TinyHead::kNoise) {
    return invalid_argument(
        "tiny eagle3 head: only noise, and only for llama, but for a lag model");
  }
  if (target.n_embd != kPartsEmbd) {
    return invalid_argument("tiny eagle3 head: the target's n_embd must be 128");
  }
  TinyTensors tensors(options.weight_type, options.seed);
  add_noise_head(tensors, shape, shape.n_embd_target);
  tensors.plain("blk.0.ffn_norm.weight", kPartsEmbd, 0, 1.0);
  add_feed_forward(tensors, "blk.0.", options.head);
  tensors.plain("output_norm.weight", kPartsEmbd, 0, 1.0);
  const double size = 2.5 / std::sqrt(kPartsEmbd);
  if (options.own_embedding) {
    tensors.gaussian("token_embd.weight", kPartsEmbd, vocabulary->size(), 1.0);
  }
  if (options.own_output) {
    tensors.gaussian(
        "output.weight", kPartsEmbd,
        options.tokens.empty() ? vocabulary->size() : static_cast<int>(options.tokens.size()),
        size);
  }
  if (!options.tokens.empty()) tensors.token_ids("d2t", options.tokens);
  return tensors.write(path, eagle3_metadata(shape, *vocabulary, options).get());
}

}  // namespace outrider::testing
