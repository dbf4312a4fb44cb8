// HiddenStates: which hidden states a context hands out, for trained heads.
//
// The only room that includes llama.cpp's staging header (llama-ext.h), whose functions have traps:
// a layer's input asked of an architecture that does not mark it aborts the process, and the last
// state asked of one that does not compute it leaves what was in the buffer. So both are asked only
// of architectures that are known to have them in the pinned version; a new version means reading
// src/models again. States are copied while the next piece of a batch is computed, so a batch must
// not be longer than one piece (n_ubatch). Tested by
// tests/mtp_output_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "llama/files/model_file.h"

struct llama_context;

namespace outrider::llama {

struct HiddenStates {
  // The state behind the last layer, which prediction layers (MTP) read.
  bool last = false;
  // The inputs of these layers, one behind the other, which EAGLE-3 and DFlash read. Not beside
  // `last`.
  std::vector<std::int32_t> layer_inputs;

  bool any() const { return last || !layer_inputs.empty(); }
  bool operator==(const HiddenStates&) const = default;

  // For keys of caches: "" for none, "last", "inputs 2 5 9".
  std::string text() const;
};

// A longer batch would be computed in pieces.
inline constexpr std::int32_t kMostHiddenBatch = 512;

// Whether llama.cpp evaluates the prediction layers of this architecture, and hands out the states
// that they read.
bool has_prediction_layers(std::string_view architecture);

// Empty: a context of this model, for so many sequences, hands them out; else why not.
std::string why_not_hidden(const ModelFacts& facts, const HiddenStates& wanted,
                           std::int32_t n_sequences);

// Floats of one token's row.
std::int32_t hidden_width(const ModelFile& file, const HiddenStates& states);

// From the next decode on. REQUIRES: why_not_hidden() is empty, or, with `last`, that it is a
// context of prediction layers.
void hand_out(llama_context* context, const HiddenStates& states);

// Which of a file's prediction layers a context of them runs. REQUIRES: 0 <= layer < their number.
void choose_prediction_layer(llama_context* context, std::int32_t layer);

// Appends the rows of the `n_tokens` tokens of the last decode, in the batch's order, to `rows`.
// False when llama.cpp has none. REQUIRES: hand_out() before that decode, which succeeded.
bool append_hidden(llama_context* context, const HiddenStates& states, std::size_t n_tokens,
                   std::size_t width, std::vector<float>* rows);

}  // namespace outrider::llama
