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
#include "llama/files/gguf_windows.h"
#include "llama/files/opened_gguf.h"
#include "llama/files/rope_factors.h"
#include "llama/gguf/gguf_start.h"
#include "llama/gguf/integers.h"

namespace outrider::llama {
namespace {

using gguf::in_quotes;

constexpr std::string_view kFirstOf = "-00001-of-";  // in the name of a split model's first file

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

// Of models that mix recurrent layers with others, and do not tell them by their heads: every so
// many layers one has attention (llama.cpp's models/qwen35.cpp and its like); 0: not so.
std::int32_t attention_interval(const Metadata& meta, const std::string& prefix,
                                const std::string& architecture) {
  constexpr std::array<std::string_view, 3> kEveryFourth{"qwen35", "qwen35moe", "qwen3next"};
  const std::string key = prefix + "full_attention_interval";
  if (meta.has(key)) return meta.number(key);
  if (architecture == "minimax-01") return 8;
  const auto* const end = kEveryFourth.end();
  return std::find(kEveryFourth.begin(), end, architecture) == end ? 0 : 4;
}

// Recurrent layers have no cells. The last `n_prediction` layers are none.
void drop_recurrent(const Metadata& meta, const std::string& prefix,
                    const std::string& architecture, std::vector<std::int32_t>& heads) {
  const std::vector<std::int32_t> recurrent = meta.numbers(prefix + "attention.recurrent_layers");
  const std::int32_t interval = attention_interval(meta, prefix, architecture);
  const std::int32_t n_prediction = meta.number(prefix + "nextn_predict_layers");
  const std::int32_t n = static_cast<std::int32_t>(heads.size()) - n_prediction;
  for (std::int32_t i = 0; i < n; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    const bool is = recurrent.empty() ? interval > 0 && (i + 1) % interval != 0
                                      : at < recurrent.size() && recurrent[at] != 0;
    if (is) heads[at] = 0;
  }
}

void read_attention(const Metadata& meta, const gguf_context* gguf, const std::string& prefix,
                    GgufHeader* header) {
  header->n_head = meta.number(prefix + "attention.head_count");
  header->n_swa = meta.number(prefix + "attention.sliding_window");
  header->causal = meta.flag(prefix + "attention.causal", true);
  header->attention_changes_scores = changes_scores(meta, *header);

  std::vector<std::int32_t> heads = meta.numbers(prefix + "attention.head_count_kv");
  if (heads.empty()) heads = meta.numbers(prefix + "attention.head_count");
  const std::size_t n_layer = static_cast<std::size_t>(std::min(header->n_layer, 4096));
  if (!heads.empty()) heads.resize(n_layer, heads.back());
  drop_recurrent(meta, prefix, header->architecture, heads);
  const std::int32_t with_cells =
      count_layers_with_cells(gguf, header->architecture, static_cast<std::int32_t>(heads.size()));
  std::fill(heads.begin() + with_cells, heads.end(), 0);
  header->n_head_kv = std::move(heads);
  header->windowed = windowed_layers(gguf, header->architecture);
  header->keys_hold_values = meta.number(prefix + "attention.key_length_mla") > 0 &&
                             meta.number(prefix + "attention.value_length_mla") > 0;

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

// GgufHeader::short_context. The factors may lie in another file of a split model, which then says
// what it has.
std::int32_t read_short_context(const Metadata& meta, const gguf_context* gguf,
                                const std::string& prefix) {
  const bool two_sets = gguf_find_tensor(gguf, "rope_factors_long.weight") >= 0 ||
                        meta.text(prefix + "rope.scaling.type") == "longrope";
  if (!two_sets) return 0;
  const std::string key = prefix + std::string(kOriginalContext);
  return meta.number(meta.has(key) ? key : prefix + "context_length");
}

// `sizes`: of heads; of layers with a window the last one is, of others the first.
std::uint64_t elements(const GgufHeader& header, const std::vector<std::int32_t>& sizes) {
  if (sizes.empty()) return 0;
  const std::int32_t largest = *std::max_element(sizes.begin(), sizes.end());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.n_head_kv.size(); ++i) {
    std::int32_t size = largest;
    if (i < header.windowed.size()) size = header.windowed[i] ? sizes.back() : sizes.front();
    sum += static_cast<std::uint64_t>(header.n_head_kv[i]) * static_cast<std::uint64_t>(size);
  }
  return sum;
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

// One file of a model, complete as it is; the sizes of `header` are set to its own.
Result<GgufHandle> open_file(const std::string& path, GgufHeader* header) {
  OUTRIDER_ASSIGN_OR_RETURN(header->file_bytes, gguf::size_of_gguf(path));
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
      check_complete(path, gguf.get(), header->file_bytes, &header->tensor_bytes));
  return gguf;
}

// Of the model's last layers, which a split model has in its last files.
struct PredictionLayers {
  std::int32_t first;
  std::int32_t declared;
  std::int32_t tied = 0;  // that have what ties them to the layer before
  std::uint64_t bytes = 0;

  void add(const gguf_context* gguf) {
    for (std::int32_t i = first; i < first + declared; ++i) {
      const std::string prefix = "blk." + std::to_string(i) + ".";
      if (gguf_find_tensor(gguf, (prefix + "nextn.eh_proj.weight").c_str()) >= 0) ++tied;
      for (std::int64_t t = 0; t < gguf_get_n_tensors(gguf); ++t) {
        const std::string_view name = gguf_get_tensor_name(gguf, t);
        if (name.starts_with(prefix)) bytes += gguf_get_tensor_size(gguf, t);
      }
    }
  }
};

// `gguf`: the file at `path`, the model's first.
void read_prediction_layers(const std::string& path, const gguf_context* gguf,
                            std::int32_t declared, GgufHeader* header) {
  if (declared <= 0 || declared >= header->n_layer) return;
  PredictionLayers layers{.first = header->n_layer - declared, .declared = declared};
  layers.add(gguf);
  for (const std::string& file : split_files(path, header->n_splits)) {
    if (file == path) continue;
    GgufHeader sizes;
    const Result<GgufHandle> part = open_file(file, &sizes);
    if (!part.ok()) return;  // who reads the weights says why
    layers.add(part->get());
  }
  if (layers.tied != declared) return;
  header->n_prediction = declared;
  header->prediction_bytes = layers.bytes;
}

// Whether any file of the model, whose first is at `path`, holds a table of positions. MPT has one
// or lets attention fall with the distance.
bool has_position_table(const std::string& path, const gguf_context* gguf,
                        const GgufHeader& header) {
  constexpr std::array<std::string_view, 3> kMayHaveOne{"gpt2", "mpt", "starcoder"};
  constexpr const char* kTable = "position_embd.weight";
  const auto* const end = kMayHaveOne.end();
  if (std::find(kMayHaveOne.begin(), end, header.architecture) == end) return false;
  if (gguf_find_tensor(gguf, kTable) >= 0) return true;
  for (const std::string& file : split_files(path, header.n_splits)) {
    if (file == path) continue;
    GgufHeader sizes;
    const Result<GgufHandle> part = open_file(file, &sizes);
    if (part.ok() && gguf_find_tensor(part->get(), kTable) >= 0) return true;
  }
  return false;
}

// The other files of a split model, before llama.cpp sees them: of those it checks little.
Status check_splits(const std::string& path, const GgufHeader& header) {
  const std::string n_files = std::to_string(header.n_splits) + " files";
  const std::vector<std::string> files = split_files(path, header.n_splits);
  if (files.size() != static_cast<std::size_t>(header.n_splits)) {
    return invalid_argument(in_quotes(path) + " is the first of " + n_files +
                            " of a model, but is not named so; llama.cpp finds the others by a "
                            "name that ends in -00001-of-0000N.gguf, where N is their number");
  }
  for (std::size_t i = 1; i < files.size(); ++i) {
    const Result<GgufHeader> part = read_gguf_header(files[i]);
    if (!part.ok()) {
      return part.status().with_context(in_quotes(path) + " is split over " + n_files);
    }
    if (part->split == static_cast<std::int32_t>(i)) continue;
    return data_loss(in_quotes(files[i]) + " is not file " + std::to_string(i + 1) + " of the " +
                     n_files + " of its model, as its name says; fetch the file again");
  }
  return Status();
}

// Which of how many files this is.
void read_split(const Metadata& meta, const gguf_context* gguf, GgufHeader* header) {
  constexpr std::int32_t kMost = 65535;  // llama.cpp counts with 16 bits
  header->n_tensors = gguf_get_n_tensors(gguf);
  header->n_splits = std::clamp(meta.number("split.count"), 1, kMost);
  if (header->n_splits == 1) return;
  header->split = meta.number("split.no");
  header->n_tensors = std::max<std::int64_t>(header->n_tensors, meta.number("split.tensors.count"));
}

}  // namespace

std::uint64_t GgufHeader::k_elements() const { return elements(*this, head_sizes_k); }
std::uint64_t GgufHeader::v_elements() const {
  return keys_hold_values ? 0 : elements(*this, head_sizes_v);
}

Status check_is_model(const std::string& path, const GgufHeader& header) {
  const std::string file = in_quotes(path) + " ";
  if (header.kind == "adapter") {
    return invalid_argument(file + "is an adapter (LoRA), not a model; give the model's file");
  }
  if (header.kind == "mmproj") {
    return invalid_argument(file + std::string(kRefused[0].why));
  }
  if (header.split > 0) {
    return invalid_argument(file + "is file " + std::to_string(header.split + 1) + " of the " +
                            std::to_string(header.n_splits) +
                            " that its model is split over; give the first (...-00001-of-...)");
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
  return check_splits(path, header);
}

std::vector<std::string> split_files(const std::string& path, std::int32_t n_splits) {
  std::vector<std::string> files = {path};
  const auto ending = [n_splits](std::int32_t number) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "-%05d-of-%05d.gguf", number, n_splits);
    return std::string(text.data());
  };
  const std::string first = ending(1);
  if (n_splits < 2 || !path.ends_with(first)) return files;
  const std::string start = path.substr(0, path.size() - first.size());
  for (std::int32_t i = 2; i <= n_splits; ++i) files.push_back(start + ending(i));
  return files;
}

Result<std::vector<std::string>> files_of_model(const std::string& path) {
  if (path.find(kFirstOf) == std::string::npos) return std::vector<std::string>{path};
  OUTRIDER_ASSIGN_OR_RETURN(const GgufHeader header, read_gguf_header(path));
  return split_files(path, header.n_splits);
}

Result<OpenedGguf> open_gguf(const std::string& path) {
  take_over_log();
  GgufHeader header;
  OUTRIDER_ASSIGN_OR_RETURN(GgufHandle gguf, open_file(path, &header));
  const Metadata meta(gguf.get());
  header.architecture = meta.text("general.architecture");
  OUTRIDER_RETURN_IF_ERROR(check_gguf_values(path, gguf.get(), header.architecture));
  header.kind = meta.text("general.type");
  header.name = meta.text("general.name");
  read_split(meta, gguf.get(), &header);
  header.n_vocab = static_cast<std::int32_t>(
      std::min<std::size_t>(meta.array_size("tokenizer.ggml.tokens"), 1u << 30));
  const std::string prefix = header.architecture + ".";
  header.n_ctx_train = meta.number(prefix + "context_length");
  header.n_layer = meta.number(prefix + "block_count");
  header.n_embd = meta.number(prefix + "embedding_length");
  read_prediction_layers(path, gguf.get(), meta.number(prefix + "nextn_predict_layers"), &header);
  header.short_context = read_short_context(meta, gguf.get(), prefix);
  header.position_table = has_position_table(path, gguf.get(), header);
  read_attention(meta, gguf.get(), prefix, &header);
  header.states = recurrent_states(gguf.get(), header.architecture, header.n_head_kv);
  return OpenedGguf{.header = std::move(header), .gguf = std::move(gguf)};
}

Result<GgufHeader> read_gguf_header(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(OpenedGguf opened, open_gguf(path));
  return std::move(opened.header);
}

}  // namespace outrider::llama
