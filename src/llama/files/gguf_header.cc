#include "llama/files/gguf_header.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>

#include "llama/base/backend.h"
#include "llama/base/handles.h"
#include "llama/files/gguf_checks.h"
#include "llama/gguf/gguf_start.h"
#include "llama/gguf/integers.h"

namespace outrider::llama {
namespace {

using gguf::in_quotes;

// llama.cpp reads these, but they are no models that write text on their own.
struct RefusedArchitecture {
  std::string_view name;
  std::string_view why;
};
constexpr std::array<RefusedArchitecture, 2> kRefused{{
    {"clip", "is the image part of a multimodal model; give the language model's file"},
    {"gemma4-assistant",
     "is a draft head that needs its target's hidden states, which is not supported yet"},
}};

// Reads metadata of any integer type; whatever does not fit is treated as not said.
class Metadata {
 public:
  explicit Metadata(const gguf_context* gguf) : gguf_(gguf) {}

  std::string text(const std::string& key) const {
    const std::int64_t id = gguf_find_key(gguf_, key.c_str());
    if (id < 0 || gguf_get_kv_type(gguf_, id) != GGUF_TYPE_STRING) return "";
    return gguf_get_val_str(gguf_, id);
  }

  bool flag(const std::string& key, bool otherwise) const {
    const std::int64_t id = gguf_find_key(gguf_, key.c_str());
    if (id < 0 || gguf_get_kv_type(gguf_, id) != GGUF_TYPE_BOOL) return otherwise;
    return gguf_get_val_bool(gguf_, id);
  }

  // A single one as a list of one; what llama.cpp could not count with either is 0.
  std::vector<std::int32_t> numbers(const std::string& key) const {
    std::vector<std::int32_t> result;
    for (const std::int64_t value : gguf::integers(gguf_, key)) {
      result.push_back(
          std::in_range<std::int32_t>(value) && value > 0 ? static_cast<std::int32_t>(value) : 0);
    }
    return result;
  }

  std::int32_t number(const std::string& key) const {
    const std::vector<std::int32_t> all = numbers(key);
    return all.empty() ? 0 : *std::max_element(all.begin(), all.end());
  }

  bool has(const std::string& key) const { return gguf_find_key(gguf_, key.c_str()) >= 0; }

  std::size_t array_size(const std::string& key) const {
    const std::int64_t id = gguf_find_key(gguf_, key.c_str());
    if (id < 0 || gguf_get_kv_type(gguf_, id) != GGUF_TYPE_ARRAY) return 0;
    return gguf_get_arr_n(gguf_, id);
  }

 private:
  const gguf_context* gguf_;
};

// Some architectures do so without saying it in the file.
bool changes_scores(const Metadata& meta, const GgufHeader& header) {
  constexpr std::array<std::string_view, 6> kAlways{"baichuan", "bloom",        "gemma2",
                                                    "grok",     "jina-bert-v2", "refact"};
  return std::find(kAlways.begin(), kAlways.end(), header.architecture) != kAlways.end() ||
         meta.has(header.architecture + ".attn_logit_softcapping") ||
         meta.has(header.architecture + ".attention.max_alibi_bias");
}

void read_attention(const Metadata& meta, const std::string& prefix, GgufHeader* header) {
  header->n_head = meta.number(prefix + "attention.head_count");
  header->n_swa = meta.number(prefix + "attention.sliding_window");
  header->causal = meta.flag(prefix + "attention.causal", true);
  header->attention_changes_scores = changes_scores(meta, *header);

  std::vector<std::int32_t> heads = meta.numbers(prefix + "attention.head_count_kv");
  if (heads.empty()) heads = meta.numbers(prefix + "attention.head_count");
  const std::size_t n_layer = static_cast<std::size_t>(std::min(header->n_layer, 4096));
  if (!heads.empty()) heads.resize(n_layer, heads.back());
  header->n_head_kv = std::move(heads);

  if (header->n_head == 0) return;
  const auto sizes = [&](const char* key, const char* key_swa) {
    std::int32_t full = meta.number(prefix + key);
    if (full == 0) full = header->n_embd / header->n_head;
    std::vector<std::int32_t> result;
    if (full > 0) result.push_back(full);
    const std::int32_t sliding = meta.number(prefix + key_swa);
    if (sliding > 0 && sliding != full) result.push_back(sliding);
    return result;
  };
  header->head_sizes_k = sizes("attention.key_length", "attention.key_length_swa");
  header->head_sizes_v = sizes("attention.value_length", "attention.value_length_swa");
}

std::uint64_t elements(const std::vector<std::int32_t>& heads,
                       const std::vector<std::int32_t>& sizes) {
  if (sizes.empty()) return 0;
  std::uint64_t sum = 0;
  for (const std::int32_t n : heads) sum += static_cast<std::uint64_t>(n);
  return sum * static_cast<std::uint64_t>(*std::max_element(sizes.begin(), sizes.end()));
}

Status check_complete(const std::string& path, const gguf_context* gguf, std::uint64_t file_bytes,
                      std::uint64_t* tensor_bytes) {
  std::uint64_t end = gguf_get_data_offset(gguf);
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
    const std::uint64_t size = gguf_get_tensor_size(gguf, i);
    *tensor_bytes += size;
    end = std::max<std::uint64_t>(
        end, gguf_get_data_offset(gguf) + gguf_get_tensor_offset(gguf, i) + size);
  }
  if (end <= file_bytes) return Status();
  return data_loss(in_quotes(path) + " is cut off: it has " + std::to_string(file_bytes) +
                   " bytes, but its tensors end at byte " + std::to_string(end) +
                   "; fetch the file again");
}

// The last layers of the file, where each has what ties it to the layer before.
void read_prediction_layers(const gguf_context* gguf, std::int32_t declared, GgufHeader* header) {
  if (declared <= 0 || declared >= header->n_layer) return;
  std::uint64_t bytes = 0;
  for (std::int32_t i = header->n_layer - declared; i < header->n_layer; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    if (gguf_find_tensor(gguf, (prefix + "nextn.eh_proj.weight").c_str()) < 0) return;
    for (std::int64_t t = 0; t < gguf_get_n_tensors(gguf); ++t) {
      const std::string_view name = gguf_get_tensor_name(gguf, t);
      if (name.starts_with(prefix)) bytes += gguf_get_tensor_size(gguf, t);
    }
  }
  header->n_prediction = declared;
  header->prediction_bytes = bytes;
}

}  // namespace

std::uint64_t GgufHeader::k_elements() const { return elements(n_head_kv, head_sizes_k); }
std::uint64_t GgufHeader::v_elements() const { return elements(n_head_kv, head_sizes_v); }

Status check_is_model(const std::string& path, const GgufHeader& header) {
  const std::string file = in_quotes(path) + " ";
  if (header.kind == "adapter") {
    return invalid_argument(file + "is an adapter (LoRA), not a model; give the model's file");
  }
  if (header.kind == "mmproj") {
    return invalid_argument(file + std::string(kRefused[0].why));
  }
  if (header.architecture.empty()) {
    return invalid_argument(file + "does not say its architecture (general.architecture), so it " +
                            "is not a model that llama.cpp can run");
  }
  if (header.n_tensors == 0) {
    return invalid_argument(file + "holds no weights (a vocabulary only?); give a whole model");
  }
  for (const TrainedHead& head : kTrainedHeads) {
    if (header.architecture != head.architecture) continue;
    return unsupported(file + "is a trained head (" + std::string(head.name) +
                       "), which writes no text on its own; give it as the draft of the target "
                       "that it was trained for");
  }
  for (const RefusedArchitecture& refused : kRefused) {
    if (header.architecture == refused.name) {
      return unsupported(file + std::string(refused.why));
    }
  }
  if (!header.causal) {
    return unsupported(file + "is an embedding model (" + header.architecture +
                       "), which does not write text");
  }
  return Status();
}

std::vector<std::string> split_files(const std::string& path, std::int32_t n_splits) {
  std::vector<std::string> files = {path};
  const std::size_t at = path.rfind("-00001-of-");
  if (at == std::string::npos) return files;
  for (std::int32_t i = 2; i <= n_splits; ++i) {
    std::array<char, 16> number{};
    std::snprintf(number.data(), number.size(), "-%05d-of-", i);
    files.push_back(path);
    files.back().replace(at, 10, number.data());
  }
  return files;
}

Result<GgufHeader> read_gguf_header(const std::string& path) {
  take_over_log();
  GgufHeader header;
  OUTRIDER_ASSIGN_OR_RETURN(header.file_bytes, gguf::size_of_gguf(path));

  const LogSink no_sink;
  const LogCapture log(no_sink);
  GgufHandle gguf;
  try {
    gguf.reset(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
  } catch (const std::exception& error) {
    return data_loss(in_quotes(path) + " is damaged: " + error.what());
  }
  if (!gguf) {
    if (log.reason().find("version") != std::string::npos) {
      return unsupported("cannot read " + in_quotes(path) + log.because());
    }
    return data_loss(in_quotes(path) + " is cut off or damaged" + log.because() +
                     "; fetch the file again");
  }
  OUTRIDER_RETURN_IF_ERROR(
      check_complete(path, gguf.get(), header.file_bytes, &header.tensor_bytes));

  const Metadata meta(gguf.get());
  header.architecture = meta.text("general.architecture");
  OUTRIDER_RETURN_IF_ERROR(check_gguf_values(path, gguf.get(), header.architecture));
  header.kind = meta.text("general.type");
  header.name = meta.text("general.name");
  header.n_tensors = gguf_get_n_tensors(gguf.get());
  header.n_splits = std::max(1, meta.number("split.count"));
  header.n_vocab = static_cast<std::int32_t>(
      std::min<std::size_t>(meta.array_size("tokenizer.ggml.tokens"), 1u << 30));
  const std::string prefix = header.architecture + ".";
  header.n_ctx_train = meta.number(prefix + "context_length");
  header.n_layer = meta.number(prefix + "block_count");
  header.n_embd = meta.number(prefix + "embedding_length");
  read_prediction_layers(gguf.get(), meta.number(prefix + "nextn_predict_layers"), &header);
  read_attention(meta, prefix, &header);
  return header;
}

}  // namespace outrider::llama
