#include "llama/files/gguf_windows.h"

#include <gguf.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "llama/gguf/integers.h"

namespace outrider::llama {
namespace {

constexpr const char* kPattern = "attention.sliding_window_pattern";
constexpr std::size_t kMostEntries = 512;    // LLAMA_MAX_LAYERS: llama.cpp refuses longer lists
constexpr std::int64_t kGemma3nLayers = 20;  // with cells of their own (models/gemma3n.cpp)

enum class Windowed {
  kAlways,
  kWithSize,    // where the file gives a window of more than 0 tokens
  kUnlessZero,  // but where it gives one of 0
  kWith64       // with so many layers
};

// Of every `period` layers the last has no window (or the first), unless the file says otherwise.
struct WindowedArchitecture {
  std::string_view name;
  std::int64_t period;  // 0: the file must list the layers
  bool full_first = false;
  Windowed when = Windowed::kAlways;
};

// As load_arch_hparams() of llama.cpp's models has it; those alone that may meet the assertion.
constexpr WindowedArchitecture kWindowed[] = {
    {.name = "cohere2", .period = 4},
    {.name = "cohere2moe", .period = 4, .full_first = true},
    {.name = "exaone-moe", .period = 4},
    {.name = "gemma2", .period = 2},
    {.name = "gemma3n", .period = 5},
    {.name = "gpt-oss", .period = 2},
    {.name = "muse-glimmer", .period = 4},
    {.name = "gemma4", .period = 0},
    {.name = "granite_swa", .period = 0},
    {.name = "maple", .period = 0},
    {.name = "mimo2", .period = 0},
    {.name = "spark2_5", .period = 0},
    {.name = "step35", .period = 0},
    {.name = "afmoe", .period = 4, .when = Windowed::kWithSize},
    {.name = "gemma3", .period = 6, .when = Windowed::kWithSize},
    {.name = "laguna", .period = 4, .full_first = true, .when = Windowed::kWithSize},
    {.name = "mellum", .period = 4, .when = Windowed::kWithSize},
    {.name = "olmo2", .period = 4, .when = Windowed::kWithSize},
    {.name = "plamo3", .period = 8, .when = Windowed::kWithSize},
    {.name = "smallthinker", .period = 4, .full_first = true, .when = Windowed::kWithSize},
    {.name = "llama4", .period = 4, .when = Windowed::kUnlessZero},
    {.name = "exaone4", .period = 4, .when = Windowed::kWith64}};

class Layers {
 public:
  Layers(const gguf_context* gguf, const std::string& architecture)
      : gguf_(gguf), prefix_(architecture + ".") {
    all_ = number("block_count").value_or(0);
    without_prediction_ = all_ - count_of("nextn_predict_layers");
  }

  std::int64_t count() const { return all_; }
  std::int64_t without_prediction() const { return without_prediction_; }

  std::optional<std::int64_t> number(const char* name) const {
    return gguf::integer(gguf_, prefix_ + name);
  }
  // 0 where it is not said, or is no count: a file may say any number.
  std::int64_t count_of(const char* name) const {
    return std::max<std::int64_t>(0, number(name).value_or(0));
  }
  std::string key(const char* name) const { return prefix_ + name; }

  bool have_windows(const WindowedArchitecture& of) const {
    const std::optional<std::int64_t> size = number("attention.sliding_window");
    switch (of.when) {
      case Windowed::kAlways:
        return true;
      case Windowed::kWithSize:
        return size.value_or(0) > 0;
      case Windowed::kUnlessZero:
        return size != 0;
      case Windowed::kWith64:
        return without_prediction_ == 64;
    }
    return false;
  }

  // One for each layer; none where llama.cpp itself says what is wrong with the file.
  std::optional<std::vector<bool>> windows(const WindowedArchitecture& of) const {
    std::vector<bool> result(static_cast<std::size_t>(all_), false);
    const std::int64_t id = gguf_find_key(gguf_, key(kPattern).c_str());
    if (id >= 0 && gguf_get_kv_type(gguf_, id) == GGUF_TYPE_ARRAY) {
      const std::vector<bool> listed = list(id);
      if (listed.empty()) return std::nullopt;
      std::copy_n(listed.begin(), std::min(listed.size(), result.size()), result.begin());
      return result;
    }
    if (of.period == 0) return std::nullopt;
    const std::int64_t period = number(kPattern).value_or(of.period);
    if (period < 0) return std::nullopt;
    for (std::int64_t i = 0; i < without_prediction_; ++i) {
      const bool full = period > 0 && i % period == (of.full_first ? 0 : period - 1);
      result[static_cast<std::size_t>(i)] = !full;
    }
    return result;
  }

 private:
  // Empty: not of a type or a length that llama.cpp takes.
  std::vector<bool> list(std::int64_t id) const {
    const std::size_t n = gguf_get_arr_n(gguf_, id);
    if (n > kMostEntries) return {};
    std::vector<bool> result;
    if (gguf_get_arr_type(gguf_, id) == GGUF_TYPE_BOOL) {
      const std::int8_t* values = static_cast<const std::int8_t*>(gguf_get_arr_data(gguf_, id));
      for (std::size_t i = 0; i < n; ++i) result.push_back(values[i] != 0);
      return result;
    }
    for (const std::int64_t value : gguf::integers(gguf_, key(kPattern))) {
      result.push_back(value != 0);
    }
    return result;
  }

  const gguf_context* gguf_;
  const std::string prefix_;
  std::int64_t all_ = 0;
  std::int64_t without_prediction_ = 0;
};

// Of an architecture whose last layers have no cells of their own: how many have; none elsewhere.
std::optional<std::int64_t> layers_with_cells(const Layers& layers,
                                              const std::string& architecture) {
  if (architecture == "gemma3n") return kGemma3nLayers;
  if (architecture != "gemma4") return std::nullopt;
  return layers.count() - layers.count_of("attention.shared_kv_layers");
}

std::string wrong_sharing(const Layers& layers, std::int64_t with_cells,
                          const std::vector<bool>& windows) {
  if (with_cells < 2) {
    return layers.key("attention.shared_kv_layers") + " is " +
           std::to_string(layers.count() - with_cells) +
           ", but must be at most block_count - 2, which is " + std::to_string(layers.count() - 2);
  }
  for (std::int64_t i = with_cells; i < layers.without_prediction(); ++i) {
    const bool window = windows[static_cast<std::size_t>(i)];
    const std::int64_t shared = with_cells - (window ? 2 : 1);
    if (windows[static_cast<std::size_t>(shared)] == window) continue;
    return layers.key(kPattern) + " gives layer " + std::to_string(i) + (window ? " a" : " no") +
           " window, but must do the same with layer " + std::to_string(shared) +
           ", whose cells it uses";
  }
  return "";
}

// Of a file that may have windows; none where it has none, or it is not known.
std::optional<std::vector<bool>> windows_of(const Layers& layers, const std::string& architecture) {
  const auto* const end = std::end(kWindowed);
  const auto* const of =
      std::find_if(std::begin(kWindowed), end,
                   [&](const WindowedArchitecture& each) { return each.name == architecture; });
  if (of == end) return std::nullopt;
  if (layers.count() < 1 || layers.count() > static_cast<std::int64_t>(kMostEntries)) {
    return std::nullopt;
  }
  return layers.have_windows(*of) ? layers.windows(*of) : std::nullopt;
}

}  // namespace

std::string wrong_windows(const gguf_context* gguf, const std::string& architecture) {
  const Layers layers(gguf, architecture);
  const std::optional<std::vector<bool>> windows = windows_of(layers, architecture);
  if (!windows) return "";
  if (std::find(windows->begin(), windows->end(), true) == windows->end()) {
    return layers.key(kPattern) + " gives no layer a window, but must give one to at least one";
  }
  const std::optional<std::int64_t> with_cells = layers_with_cells(layers, architecture);
  return with_cells ? wrong_sharing(layers, *with_cells, *windows) : "";
}

std::vector<bool> windowed_layers(const gguf_context* gguf, const std::string& architecture) {
  return windows_of(Layers(gguf, architecture), architecture).value_or(std::vector<bool>());
}

std::int32_t count_layers_with_cells(const gguf_context* gguf, const std::string& architecture,
                                     std::int32_t n_layer) {
  const std::optional<std::int64_t> n = layers_with_cells(Layers(gguf, architecture), architecture);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(n.value_or(n_layer), 0, n_layer));
}

}  // namespace outrider::llama
