#include "llama/gguf/layer_cut.h"

#include <cctype>
#include <map>
#include <string_view>
#include <vector>

namespace outrider::gguf {
namespace {

constexpr std::string_view kBlock = "blk.";
constexpr const char* kPattern = ".attention.sliding_window_pattern";

// Of llama.cpp's architectures whose attention is over a window in all but each n-th layer, and
// which read that as a list, too.
struct Alternating {
  const char* architecture;
  std::int32_t period;
  // Where the scale of attention is told from the number of layers; 0: nowhere.
  std::int32_t fixed_layers;
  bool always;  // with a window of llama.cpp's where the file says none
};
constexpr Alternating kAlternating[] = {{"gemma2", 2, 46, true},
                                        {"gemma3", 6, 62, false},
                                        {"olmo2", 4, 0, false},
                                        {"cohere2", 4, 0, false}};

const Alternating* alternating(const std::string& architecture) {
  for (const Alternating& known : kAlternating) {
    if (architecture == known.architecture) return &known;
  }
  return nullptr;
}

bool has_window(const GgufReader& file, const std::string& architecture) {
  const Result<std::uint32_t> window = file.u32(architecture + ".attention.sliding_window");
  return window.ok() && *window > 0;
}

// What llama.cpp tells from a layer's place or from their number, and no key can say otherwise:
// without some of them the others would not compute what they did.
constexpr const char* kNoPositions = "some of them, told by their place, take no positions";
constexpr const char* kScaledByNumber = "llama.cpp takes the scale of each from their number";
constexpr const char* kWindowByPlace = "those with a sliding window are told by their place";

// Empty: nothing.
std::string told_by_place(const GgufReader& file, const LayerShape& shape) {
  const std::string& architecture = shape.architecture;
  if (architecture == "smollm3" || architecture == "llama4") return kNoPositions;
  if (architecture == "minicpm3") return kScaledByNumber;
  if (architecture == "minicpm" && !file.has("minicpm.residual_scale")) return kScaledByNumber;
  // Their windows need no key.
  if (architecture == "exaone-moe" || (architecture == "exaone4" && shape.n_layers == 64)) {
    return kWindowByPlace;
  }
  const bool is_window = has_window(file, architecture) && alternating(architecture) == nullptr;
  if (is_window) return kWindowByPlace;
  const Result<std::uint32_t> every = file.u32("rwkv6.rescale_every_n_layers");
  if (architecture != "rwkv6" || !every.ok() || *every == 0) return "";
  return "some of them, told by their place, halve what all have said";
}

// What a tensor is, its layer apart: name and shape.
std::map<std::string, std::vector<std::int64_t>> tensors_of(const GgufReader& file,
                                                            std::int32_t layer) {
  std::map<std::string, std::vector<std::int64_t>> found;
  for (const TensorInfo& tensor : file.tensors()) {
    if (layer_of(tensor.name) == layer) found[in_layer(tensor.name, 0)] = tensor.shape;
  }
  return found;
}

Status check_layers(const GgufReader& file, const LayerShape& shape) {
  const std::string where = "'" + file.path() + "': no layers can be left out: ";
  if (shape.n_layers < 2) {
    return unsupported(where + "it has " + std::to_string(shape.n_layers));
  }
  if (file.has(shape.architecture + ".nextn_predict_layers")) {
    return unsupported(where + "some of them predict further tokens");
  }
  const Alternating* const known = alternating(shape.architecture);
  const std::string told = told_by_place(file, shape);
  if (!told.empty()) return unsupported(where + "in '" + shape.architecture + "' " + told);
  if (known != nullptr && known->fixed_layers == shape.n_layers) {
    return unsupported(where + "llama.cpp takes the scale of its attention from their number");
  }
  // llama.cpp reads a list, or a number of this type.
  const std::string pattern = shape.architecture + kPattern;
  const std::int64_t given = gguf_find_key(file.metadata(), pattern.c_str());
  if (given >= 0) {
    const gguf_type type = gguf_get_kv_type(file.metadata(), given);
    if (type != GGUF_TYPE_UINT32 && type != GGUF_TYPE_ARRAY) {
      return unsupported(where + pattern + " is neither a list nor a number of type u32, but " +
                         gguf_type_name(type));
    }
  }
  const auto first = tensors_of(file, 0);
  if (first.empty()) return unsupported(where + "it has no tensors of layers ('blk.0. ...')");
  for (std::int32_t layer = 1; layer < shape.n_layers; ++layer) {
    if (tensors_of(file, layer) == first) continue;
    return unsupported(where + "layer " + std::to_string(layer) +
                       " has other tensors than the first");
  }
  return Status();
}

// Per-layer lists of the architecture: head counts, widths of feed-forward layers, patterns.
void cut_lists(gguf_context* metadata, const LayerShape& shape,
               std::span<const std::int32_t> kept) {
  std::vector<std::string> keys;
  for (std::int64_t i = 0; i < gguf_get_n_kv(metadata); ++i) {
    const std::string key = gguf_get_key(metadata, i);
    if (key.starts_with(shape.architecture + ".") &&
        gguf_get_kv_type(metadata, i) == GGUF_TYPE_ARRAY &&
        gguf_get_arr_type(metadata, i) != GGUF_TYPE_STRING &&
        gguf_get_arr_n(metadata, i) == static_cast<std::size_t>(shape.n_layers)) {
      keys.push_back(key);
    }
  }
  for (const std::string& key : keys) {
    const std::int64_t id = gguf_find_key(metadata, key.c_str());
    const gguf_type type = gguf_get_arr_type(metadata, id);
    const auto* data = static_cast<const std::uint8_t*>(gguf_get_arr_data(metadata, id));
    std::size_t size = 4;
    if (type == GGUF_TYPE_BOOL || type == GGUF_TYPE_INT8 || type == GGUF_TYPE_UINT8) size = 1;
    if (type == GGUF_TYPE_INT16 || type == GGUF_TYPE_UINT16) size = 2;
    if (type == GGUF_TYPE_INT64 || type == GGUF_TYPE_UINT64 || type == GGUF_TYPE_FLOAT64) size = 8;
    std::vector<std::uint8_t> chosen;
    for (const std::int32_t layer : kept) {
      const std::uint8_t* const value = data + size * static_cast<std::size_t>(layer);
      chosen.insert(chosen.end(), value, value + size);
    }
    gguf_remove_key(metadata, key.c_str());
    gguf_set_arr_data(metadata, key.c_str(), type, chosen.data(), kept.size());
  }
}

}  // namespace

std::int32_t layer_of(const std::string& tensor) {
  if (!tensor.starts_with(kBlock)) return -1;
  std::int32_t layer = 0;
  std::size_t i = kBlock.size();
  for (; i < tensor.size() && std::isdigit(static_cast<unsigned char>(tensor[i])) != 0; ++i) {
    if (layer > 1'000'000) return -1;
    layer = 10 * layer + (tensor[i] - '0');
  }
  return i > kBlock.size() && i < tensor.size() && tensor[i] == '.' ? layer : -1;
}

std::string in_layer(const std::string& tensor, std::int32_t layer) {
  return std::string(kBlock) + std::to_string(layer) +
         tensor.substr(tensor.find('.', kBlock.size()));
}

Result<LayerShape> read_layers(const GgufReader& file) {
  const Result<std::string> architecture = file.string("general.architecture");
  if (!architecture.ok()) return architecture.status();
  const Result<std::uint32_t> n = file.u32(*architecture + ".block_count");
  if (!n.ok()) return n.status();
  LayerShape shape{.architecture = *architecture, .n_layers = static_cast<std::int32_t>(*n)};
  shape.can_be_cut = check_layers(file, shape);
  return shape;
}

void cut_layers(gguf_context* metadata, const LayerShape& shape,
                std::span<const std::int32_t> kept) {
  const std::string& name = shape.architecture;
  const std::string pattern = name + kPattern;
  const std::int64_t given = gguf_find_key(metadata, pattern.c_str());
  const bool is_list = given >= 0 && gguf_get_kv_type(metadata, given) == GGUF_TYPE_ARRAY;
  const Alternating* const known = alternating(name);
  const std::int64_t window = gguf_find_key(metadata, (name + ".attention.sliding_window").c_str());
  if (known != nullptr && (known->always || window >= 0) && !is_list) {
    std::uint32_t period = static_cast<std::uint32_t>(known->period);
    if (given >= 0) period = gguf_get_val_u32(metadata, given);
    std::vector<std::uint32_t> windowed;
    for (std::int32_t layer = 0; layer < shape.n_layers; ++layer) {
      const std::uint32_t at = static_cast<std::uint32_t>(layer);
      windowed.push_back(period == 0 || at % period < period - 1 ? 1 : 0);
    }
    gguf_remove_key(metadata, pattern.c_str());
    gguf_set_arr_data(metadata, pattern.c_str(), GGUF_TYPE_UINT32, windowed.data(),
                      windowed.size());
  }
  cut_lists(metadata, shape, kept);
  gguf_set_val_u32(metadata, (name + ".block_count").c_str(),
                   static_cast<std::uint32_t>(kept.size()));
}

}  // namespace outrider::gguf
