#include "llama/heads/hidden_states.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "llama-ext.h"
#include "llama.h"

namespace outrider::llama {
namespace {

// llama.cpp v0.5.0, src/models: those with a graph for LLM_GRAPH_TYPE_DECODER_MTP. All of them set
// t_h_nextn in their main graph, too.
constexpr std::array<std::string_view, 14> kPredicts{
    "bailingmoe3", "cohere2moe", "deepseek2", "deepseek32", "deepseek4",
    "glm-dsa",     "glm4moe",    "hy_v3",     "mimo2",      "nemotron_h_moe",
    "qwen35",      "qwen35moe",  "qwen3next", "step35"};

// The same: those that set t_layer_inp.
constexpr std::array<std::string_view, 19> kMarksInputs{
    "bailingmoe3", "deepseek4",  "gemma4",         "gpt-oss",    "hunyuan_vl",
    "lfm2",        "llama",      "minimax-01",     "minimax-m2", "muse-glimmer",
    "nanbeige",    "nemotron_h", "nemotron_h_moe", "qwen3",      "qwen35",
    "qwen35moe",   "qwen3moe",   "qwen3next",      "qwen4exp"};

template <std::size_t kSize>
bool holds(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string HiddenStates::text() const {
  if (last) return "last";
  std::string list;
  for (const std::int32_t layer : layer_inputs) list += " " + std::to_string(layer);
  return list.empty() ? "" : "inputs" + list;
}

bool has_prediction_layers(std::string_view architecture) { return holds(kPredicts, architecture); }

std::string why_not_hidden(std::string_view architecture, std::int32_t n_layer,
                           const HiddenStates& wanted) {
  const std::string of = "llama.cpp does not hand out the hidden states of the architecture " +
                         std::string(architecture);
  if (wanted.last && !holds(kPredicts, architecture)) return of;
  if (!wanted.layer_inputs.empty() && !holds(kMarksInputs, architecture)) return of;
  for (const std::int32_t layer : wanted.layer_inputs) {
    if (layer >= 0 && layer < n_layer) continue;
    return "the head reads the input of layer " + std::to_string(layer) +
           ", and the target's layers are 0 to " + std::to_string(n_layer - 1);
  }
  return "";
}

std::string why_not_hidden(const ModelFacts& facts, const HiddenStates& wanted,
                           std::int32_t n_sequences) {
  std::string why = why_not_hidden(facts.architecture, facts.n_layer, wanted);
  // It cuts a batch of several sequences into pieces of equal length, and hands out their states in
  // that order.
  if (why.empty() && (facts.hybrid || facts.recurrent) && n_sequences > 1) {
    why =
        "llama.cpp hands out the hidden states of a model with recurrent layers for one "
        "sequence at a time, and this one is open for " +
        std::to_string(n_sequences);
  }
  return why;
}

std::int32_t hidden_width(const ModelFile& file, const HiddenStates& states) {
  if (states.last) return llama_model_n_embd_out(file.handle());
  return static_cast<std::int32_t>(states.layer_inputs.size()) * llama_model_n_embd(file.handle());
}

std::int32_t encoder_width(const ModelFile& file) {
  const std::string width = file.metadata("eagle3.target_hidden_size").value_or("0");
  const std::uint32_t n_layers = llama_model_target_layer_ids_n(file.handle());
  return static_cast<std::int32_t>(n_layers) * std::atoi(width.c_str());
}

void hand_out(llama_context* context, const HiddenStates& states) {
  // Not masked: rows of all tokens, whether their logits are asked for or not.
  if (states.last) llama_set_embeddings_nextn(context, true, /*masked=*/false);
  for (const std::int32_t layer : states.layer_inputs) {
    llama_set_embeddings_layer_inp(context, static_cast<std::uint32_t>(layer), true);
  }
}

void choose_prediction_layer(llama_context* context, std::int32_t layer) {
  llama_set_nextn_layer_offset(context, layer);
}

bool append_hidden(llama_context* context, const HiddenStates& states, std::size_t n_tokens,
                   std::size_t width, std::vector<float>* rows) {
  llama_synchronize(context);
  if (states.last) {
    const float* const all = llama_get_embeddings_nextn(context);
    if (all == nullptr) return false;
    rows->insert(rows->end(), all, all + n_tokens * width);
    return true;
  }
  const std::size_t n_layers = states.layer_inputs.size();
  const std::size_t part = width / n_layers;
  const std::size_t first = rows->size();
  rows->resize(first + n_tokens * width);
  for (std::size_t l = 0; l < n_layers; ++l) {
    const float* const all =
        llama_get_embeddings_layer_inp(context, static_cast<std::uint32_t>(states.layer_inputs[l]));
    if (all == nullptr) return false;
    for (std::size_t i = 0; i < n_tokens; ++i) {
      std::copy_n(all + i * part, part,
                  rows->begin() + static_cast<std::ptrdiff_t>(first + i * width + l * part));
    }
  }
  return true;
}

std::int32_t append_encoded(llama_context* context, std::span<const float> rows, std::size_t n_rows,
                            std::size_t width, std::vector<float>* encoded) {
  // Only read, but llama.cpp's batch has no constant pointers.
  const llama_batch batch = {.n_tokens = static_cast<std::int32_t>(n_rows),
                             .token = nullptr,
                             .embd = const_cast<float*>(rows.data()),
                             .pos = nullptr,
                             .n_seq_id = nullptr,
                             .seq_id = nullptr,
                             .logits = nullptr};
  const std::int32_t code = llama_encode(context, batch);
  if (code != 0) return code;
  llama_synchronize(context);
  const float* const made = llama_get_embeddings_nextn(context);
  if (made == nullptr) return -1;
  encoded->insert(encoded->end(), made, made + n_rows * width);
  return 0;
}

}  // namespace outrider::llama
