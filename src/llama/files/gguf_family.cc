#include "llama/files/gguf_family.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/fnv.h"
#include "llama/files/gguf_header.h"
#include "llama/files/opened_gguf.h"
#include "llama/gguf/integers.h"

namespace outrider::llama {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";

// As llama.cpp's llm_arch_is_recurrent() and llm_arch_is_hybrid() have them.
constexpr std::string_view kRecurrent[] = {
    "mamba",      "mamba2",         "rwkv6",       "rwkv6qwen2", "rwkv7",     "arwkv7",
    "jamba",      "falcon-h1",      "plamo2",      "lfm2",       "lfm2moe",   "granitehybrid",
    "nemotron_h", "nemotron_h_moe", "qwen3next",   "qwen35",     "qwen35moe", "qwen4exp",
    "kimi-k3",    "kimi-linear",    "bailingmoe3", "deepseek4",  "minimax-01"};

std::string text_of(const gguf_context* gguf, const char* key) {
  const std::int64_t id = gguf_find_key(gguf, key);
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return "";
  return gguf_get_val_str(gguf, id);
}

// With each token's length, so that no two lists run together.
std::uint64_t tokens_hash(const gguf_context* gguf) {
  const std::int64_t id = gguf_find_key(gguf, kTokens);
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(gguf, id) != GGUF_TYPE_STRING) {
    return 0;
  }
  Fnv1a hash;
  for (std::size_t i = 0; i < gguf_get_arr_n(gguf, id); ++i) {
    const std::string_view token = gguf_get_arr_str(gguf, id, i);
    hash.add(static_cast<std::uint32_t>(token.size()));
    hash.add(token);
  }
  return hash.value() == 0 ? 1 : hash.value();
}

// Of a mixture of experts a token takes some.
struct ExpertShare {
  std::uint64_t used = 1;
  std::uint64_t count = 1;
};

ExpertShare expert_share(const gguf_context* gguf, const std::string& architecture) {
  constexpr std::int64_t kMost = 1 << 16;
  const std::int64_t count = gguf::integer(gguf, architecture + ".expert_count").value_or(0);
  const std::int64_t used = gguf::integer(gguf, architecture + ".expert_used_count").value_or(0);
  if (used < 1 || used > count || count > kMost) return {};
  return {.used = static_cast<std::uint64_t>(used), .count = static_cast<std::uint64_t>(count)};
}

// That a token takes.
std::uint64_t parameters_of(const gguf_context* gguf, const ExpertShare& share) {
  std::uint64_t n = 0;
  std::uint64_t n_experts = 0;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
    const ggml_type type = gguf_get_tensor_type(gguf, i);
    const std::string_view name = gguf_get_tensor_name(gguf, i);
    (name.find("_exps") == std::string_view::npos ? n : n_experts) +=
        gguf_get_tensor_size(gguf, i) / ggml_type_size(type) *
        static_cast<std::uint64_t>(ggml_blck_size(type));
  }
  return n + n_experts / share.count * share.used;
}

}  // namespace

bool has_recurrent_layers(std::string_view architecture) {
  return std::find(std::begin(kRecurrent), std::end(kRecurrent), architecture) !=
         std::end(kRecurrent);
}

Status check_can_draft(const std::string& path, std::string_view architecture) {
  if (!has_recurrent_layers(architecture)) return Status();
  return unsupported("'" + path + "' cannot be a draft model: the " + std::string(architecture) +
                     " architecture has recurrent layers, whose state cannot drop tokens that "
                     "were guessed");
}

Result<GgufFamily> read_gguf_family(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(const OpenedGguf first, open_gguf(path));
  const GgufHeader& header = first.header;
  OUTRIDER_RETURN_IF_ERROR(check_is_model(path, header));
  const ExpertShare share = expert_share(first.gguf.get(), header.architecture);
  GgufFamily family{.architecture = header.architecture,
                    .basename = text_of(first.gguf.get(), "general.basename"),
                    .tokenizer = tokens_hash(first.gguf.get()),
                    .n_parameters = parameters_of(first.gguf.get(), share),
                    .file_bytes = header.file_bytes};
  for (const std::string& part : split_files(path, header.n_splits)) {
    if (part == path) continue;
    OUTRIDER_ASSIGN_OR_RETURN(const OpenedGguf other, open_gguf(part));
    family.n_parameters += parameters_of(other.gguf.get(), share);
    family.file_bytes += other.header.file_bytes;
  }
  return family;
}

bool could_draft(const GgufFamily& draft, const GgufFamily& target) {
  const bool is_family = draft.architecture == target.architecture ||
                         (!draft.basename.empty() && draft.basename == target.basename);
  return is_family && !has_recurrent_layers(draft.architecture) && target.tokenizer != 0 &&
         draft.tokenizer == target.tokenizer && draft.n_parameters > 0 &&
         draft.n_parameters <= target.n_parameters / 3;
}

}  // namespace outrider::llama
