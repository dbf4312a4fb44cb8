#include "llama/files/gguf_states.h"

#include <gguf.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "llama/gguf/integers.h"

namespace outrider::llama {
namespace {

enum class Recurrent {
  kAll,                // every layer has a state
  kWithoutHeads,       // those without heads of keys and values
  kWithoutHeadsOrFeed  // and without a feed-forward part
};

struct RecurrentArchitecture {
  std::string_view name;
  Recurrent layers;
  bool snapshots = false;
};

// As llm_arch_is_recurrent(), llm_arch_is_hybrid() and llm_arch_supports_rs_rollback() of llama.cpp
// and its models have it. DeepSeek V4 has a cache of its own.
constexpr RecurrentArchitecture kRecurrent[] = {
    {.name = "mamba", .layers = Recurrent::kAll},
    {.name = "mamba2", .layers = Recurrent::kAll},
    {.name = "rwkv6", .layers = Recurrent::kAll},
    {.name = "rwkv6qwen2", .layers = Recurrent::kAll},
    {.name = "rwkv7", .layers = Recurrent::kAll},
    {.name = "arwkv7", .layers = Recurrent::kAll},
    {.name = "falcon-h1", .layers = Recurrent::kAll},
    {.name = "jamba", .layers = Recurrent::kWithoutHeads},
    {.name = "plamo2", .layers = Recurrent::kWithoutHeads},
    {.name = "granitehybrid", .layers = Recurrent::kWithoutHeads},
    {.name = "qwen3next", .layers = Recurrent::kWithoutHeads},
    {.name = "kimi-linear", .layers = Recurrent::kWithoutHeads},
    {.name = "minimax-01", .layers = Recurrent::kWithoutHeads},
    {.name = "lfm2", .layers = Recurrent::kWithoutHeads, .snapshots = true},
    {.name = "lfm2moe", .layers = Recurrent::kWithoutHeads, .snapshots = true},
    {.name = "qwen35", .layers = Recurrent::kWithoutHeads, .snapshots = true},
    {.name = "qwen35moe", .layers = Recurrent::kWithoutHeads, .snapshots = true},
    {.name = "qwen4exp", .layers = Recurrent::kWithoutHeads, .snapshots = true},
    {.name = "kimi-k3", .layers = Recurrent::kWithoutHeads, .snapshots = true},
    {.name = "bailingmoe3", .layers = Recurrent::kWithoutHeads, .snapshots = true},
    {.name = "nemotron_h", .layers = Recurrent::kWithoutHeadsOrFeed, .snapshots = true},
    {.name = "nemotron_h_moe", .layers = Recurrent::kWithoutHeadsOrFeed, .snapshots = true}};

// The file's numbers. They are computed with as floating point, which no file can make overflow.
class Numbers {
 public:
  Numbers(const gguf_context* gguf, const std::string& architecture)
      : gguf_(gguf), prefix_(architecture + ".") {}

  std::vector<std::int64_t> list(const char* key) const {
    return gguf::integers(gguf_, prefix_ + key);
  }

  // Of a list the first; 0 where the file does not say it.
  double number(const char* key, double otherwise = 0.0) const {
    const std::vector<std::int64_t> all = list(key);
    return all.empty() ? otherwise : static_cast<double>(std::max<std::int64_t>(0, all.front()));
  }

 private:
  const gguf_context* gguf_;
  std::string prefix_;
};

// Elements of a layer's state.
double elements_of(const Numbers& file, std::string_view architecture) {
  const double n_embd = file.number("embedding_length");
  const double kernel = file.number("ssm.conv_kernel");
  const double before = std::max(0.0, kernel - 1.0);  // that a convolution keeps
  const double n_head = file.number("attention.head_count");
  if (const double head = file.number("wkv.head_size"); head > 0.0) {
    return n_embd * (file.number("token_shift_count", 2.0) + head);
  }
  if (const double seen = file.number("shortconv.l_cache"); seen > 0.0) {
    return n_embd * (seen - 1.0);
  }
  if (const double head = file.number("kda.head_dim"); head > 0.0) {
    return (3.0 * (kernel > 0.0 ? before : 3.0) + head) * n_head * head;
  }
  if (architecture == "minimax-01") {
    const double head = file.number("attention.key_length", n_head > 0.0 ? n_embd / n_head : 0.0);
    return head * head * n_head;
  }
  const double inner = file.number("ssm.inner_size");
  const double state = file.number("ssm.state_size");
  return before * (inner + 2.0 * file.number("ssm.group_count") * state) + state * inner;
}

std::size_t count_layers(const Numbers& file, Recurrent which,
                         const std::vector<std::int32_t>& n_head_kv) {
  if (which == Recurrent::kAll) {
    constexpr double kMost = 4096.0;  // more than llama.cpp takes
    return static_cast<std::size_t>(std::min(kMost, file.number("block_count")));
  }
  const std::size_t n_prediction =
      static_cast<std::size_t>(std::min(4096.0, file.number("nextn_predict_layers")));
  const std::vector<std::int64_t> feed = file.list("feed_forward_length");
  const auto has_feed = [&](std::size_t layer) {
    return !feed.empty() && feed[std::min(layer, feed.size() - 1)] > 0;
  };
  std::size_t n = 0;
  for (std::size_t i = 0; i + n_prediction < n_head_kv.size(); ++i) {
    const bool is = n_head_kv[i] == 0 && (which == Recurrent::kWithoutHeads || !has_feed(i));
    n += is ? 1 : 0;
  }
  return n;
}

}  // namespace

std::uint64_t RecurrentStates::bytes(std::int32_t n_sequences) const {
  const std::uint64_t copies = snapshots ? 1 + std::uint64_t{kSnapshots} : 1;
  return bytes_of_one * copies * static_cast<std::uint64_t>(n_sequences);
}

RecurrentStates recurrent_states(const gguf_context* gguf, const std::string& architecture,
                                 const std::vector<std::int32_t>& n_head_kv) {
  constexpr double kMostBytes = 1e15;
  const auto* const found =
      std::find_if(std::begin(kRecurrent), std::end(kRecurrent),
                   [&](const RecurrentArchitecture& one) { return one.name == architecture; });
  if (found == std::end(kRecurrent)) return {};
  const Numbers file(gguf, architecture);
  const double bytes = sizeof(float) * elements_of(file, architecture) *
                       static_cast<double>(count_layers(file, found->layers, n_head_kv));
  if (bytes > kMostBytes) return {};
  return {.bytes_of_one = static_cast<std::uint64_t>(bytes), .snapshots = found->snapshots};
}

}  // namespace outrider::llama
