#include "testing/tiny_gguf_parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "testing/tiny_weights.h"

namespace outrider::testing {
namespace {

constexpr double kRopeBase = 10000.0;
// Output rows lean away from their own token's code, or one token repeats without end.
constexpr double kRepulsion = 0.7;

// `id`'s code: kPartSize signs, as many +1 as -1, in an order drawn from the seed.
std::vector<float> code_of(std::uint64_t seed, Token id) {
  std::vector<float> code(kPartSize);
  for (std::size_t i = 0; i < code.size(); ++i) code[i] = i % 2 == 0 ? 1.0F : -1.0F;
  const std::uint64_t key = tensor_key(seed, "code " + std::to_string(id));
  std::vector<double> order;
  for (std::size_t i = 0; i < code.size(); ++i) order.push_back(tiny_gaussian(key, i));
  std::vector<std::size_t> by(code.size());
  std::iota(by.begin(), by.end(), std::size_t{0});
  std::sort(by.begin(), by.end(), [&](std::size_t a, std::size_t b) {
    return order[a] != order[b] ? order[a] < order[b] : a < b;
  });
  std::vector<float> shuffled(code.size());
  for (std::size_t i = 0; i < by.size(); ++i) shuffled[i] = code[by[i]];
  return shuffled;
}

}  // namespace

double parts_norm(int n_parts) {
  return std::sqrt((n_parts * kPartSize + 1.0) / kPartsEmbd + static_cast<double>(kPartsEpsilon));
}

void set_parts_query(TinyMatrix& matrix, int first_row, int column, int distance, RopePairs pairs,
                     double size) {
  for (int pair = 0; pair < kPartsHead / 2; ++pair) {
    const double angle = distance * std::pow(kRopeBase, -2.0 * pair / kPartsHead);
    const int low = pairs == RopePairs::kNeighbours ? 2 * pair : pair;
    const int high = pairs == RopePairs::kNeighbours ? 2 * pair + 1 : pair + kPartsHead / 2;
    // (1, 1) turned back by `angle`.
    matrix.at(first_row + low, column) =
        static_cast<float>(size * (std::cos(angle) + std::sin(angle)));
    matrix.at(first_row + high, column) =
        static_cast<float>(size * (std::cos(angle) - std::sin(angle)));
  }
}

void set_parts_key(TinyMatrix& matrix, int first_row, int column, double size) {
  for (int i = 0; i < kPartsHead; ++i) matrix.at(first_row + i, column) = static_cast<float>(size);
}

void copy_part(TinyMatrix& matrix, int first_row, int first_column, float factor) {
  for (int i = 0; i < kPartSize; ++i) matrix.at(first_row + i, first_column + i) += factor;
}

void add_parts_embedding(TinyTensors& tensors, const std::string& name,
                         const TinyLagOptions& options, const TinyVocabulary& vocabulary) {
  TinyMatrix& matrix = tensors.zeros(name, kPartsEmbd, vocabulary.size());
  for (int id = 0; id < vocabulary.size(); ++id) {
    matrix.at(id, 0) = 1.0F;
    const std::vector<float> code = code_of(options.seed, id);
    for (int i = 0; i < kPartSize; ++i) {
      matrix.at(id, part_dimension(0, i)) = code[static_cast<std::size_t>(i)];
    }
  }
}

void add_parts_output(TinyTensors& tensors, const std::string& name, const TinyLagOptions& options,
                      const TinyVocabulary& vocabulary, const std::vector<Token>& ids) {
  TinyMatrix& matrix = tensors.zeros(name, kPartsEmbd, static_cast<int>(ids.size()));
  // The last norm has weights of 1: it divides by parts_norm(3).
  const double undo = parts_norm(3);
  const int n_read = options.reads_current ? 3 : 2;
  const double size =
      static_cast<double>(options.logit_spread) / std::sqrt(n_read * kPartSize) * undo;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const Token id = ids[row];
    const double bias = tiny_token_bias(vocabulary.tokens[static_cast<std::size_t>(id)],
                                        options.eos_bias, options.odd_byte_bias);
    matrix.at(static_cast<int>(row), 0) = static_cast<float>(bias * undo);
    if (bias == kTinyNeverBias) continue;
    const std::uint64_t key = tensor_key(options.seed, "output " + std::to_string(id));
    const std::vector<float> code = code_of(options.seed, id);
    for (int part = options.reads_current ? 0 : 1; part < 3; ++part) {
      for (int i = 0; i < kPartSize; ++i) {
        double weight = tiny_gaussian(key, static_cast<std::uint64_t>(part * kPartSize + i));
        if (part == 0) {
          weight -= kRepulsion * static_cast<double>(code[static_cast<std::size_t>(i)]);
        }
        matrix.at(static_cast<int>(row), part_dimension(part, i)) =
            static_cast<float>(weight * size);
      }
    }
  }
}

std::vector<Token> all_ids(const TinyVocabulary& vocabulary) {
  std::vector<Token> ids(vocabulary.tokens.size());
  std::iota(ids.begin(), ids.end(), Token{0});
  return ids;
}

void set_key(gguf_context* metadata, const std::string& architecture, const char* key, int value) {
  gguf_set_val_u32(metadata, (architecture + "." + key).c_str(), static_cast<std::uint32_t>(value));
}

void set_parts_shape(gguf_context* metadata, const std::string& architecture,
                     const std::string& name, int n_layer, int n_head, int n_head_kv, int n_ctx) {
  gguf_set_val_str(metadata, "general.architecture", architecture.c_str());
  gguf_set_val_str(metadata, "general.type", "model");
  gguf_set_val_str(metadata, "general.name", name.c_str());
  gguf_set_val_u32(metadata, "general.quantization_version", GGML_QNT_VERSION);
  const auto set = [&](const char* key, int value) { set_key(metadata, architecture, key, value); };
  set("block_count", n_layer);
  set("context_length", n_ctx);
  set("embedding_length", kPartsEmbd);
  set("feed_forward_length", kPartsFeedForward);
  set("attention.head_count", n_head);
  set("attention.head_count_kv", n_head_kv);
  set("attention.key_length", kPartsHead);
  set("attention.value_length", kPartsHead);
  set("rope.dimension_count", kPartsHead);
  gguf_set_val_f32(metadata, (architecture + ".rope.freq_base").c_str(),
                   static_cast<float>(kRopeBase));
  gguf_set_val_f32(metadata, (architecture + ".attention.layer_norm_rms_epsilon").c_str(),
                   kPartsEpsilon);
}

void add_feed_forward(TinyTensors& tensors, const std::string& block, TinyHead kind) {
  const double size = 1.0 / std::sqrt(kPartsEmbd);
  tensors.gaussian(block + "ffn_gate.weight", kPartsEmbd, kPartsFeedForward, size);
  tensors.gaussian(block + "ffn_up.weight", kPartsEmbd, kPartsFeedForward, size);
  if (kind == TinyHead::kEqual) {
    tensors.zeros(block + "ffn_down.weight", kPartsFeedForward, kPartsEmbd);
  } else {
    tensors.gaussian(block + "ffn_down.weight", kPartsFeedForward, kPartsEmbd, 1.0);
  }
}

}  // namespace outrider::testing
