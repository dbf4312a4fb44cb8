// HiddenStates: which hidden states a context hands out, for trained heads.
//
// The only room, but for llama/model/device_memory.cc, that includes llama.cpp's staging header
// (llama-ext.h), whose functions do not check what they are asked: a layer's input asked of an
// architecture that does not mark it aborts the process, and the last state asked of one that does
// not compute it leaves what was in the buffer. So both are asked only of architectures that are
// known to have them in the pinned version; a new version means reading src/models again. States
// are copied while the next piece of a batch is computed, so a batch must not be longer than one
// piece (n_ubatch). Tested by tests/mtp_output_test.cc.
#pragma once

#include <cstdint>
#include <span>
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

// Empty: llama.cpp hands them out of a model of this architecture with so many layers; else why
// not.
std::string why_not_hidden(std::string_view architecture, std::int32_t n_layer,
                           const HiddenStates& wanted);
// The same of a context of this model, for so many sequences.
std::string why_not_hidden(const ModelFacts& facts, const HiddenStates& wanted,
                           std::int32_t n_sequences);

// Floats of one token's row.
std::int32_t hidden_width(const ModelFile& file, const HiddenStates& states);

// Floats of what a head's encoder takes for one token: all layers' inputs. Of EAGLE-3 files.
std::int32_t encoder_width(const ModelFile& file);

// From the next decode on. REQUIRES: why_not_hidden() is empty, or, with `last`, that it is a
// context of prediction layers.
void hand_out(llama_context* context, const HiddenStates& states);

// Which of a file's prediction layers a context of them runs. REQUIRES: 0 <= layer < their number.
void choose_prediction_layer(llama_context* context, std::int32_t layer);

// Appends the rows of the `n_tokens` tokens of the last decode, in the batch's order, to `rows`.
// False when llama.cpp has none. REQUIRES: hand_out() before that decode, which succeeded.
bool append_hidden(llama_context* context, const HiddenStates& states, std::size_t n_tokens,
                   std::size_t width, std::vector<float>* rows);

// What the head of a context with an encoder (EAGLE-3) makes of the target's rows: appends a row of
// `width` floats for each of the `n_rows`, which are one behind the other. Returns llama_encode's
// code; 0: done. Voids what the last decode handed out.
// REQUIRES: hand_out() of the last state; n_rows fit a batch.
std::int32_t append_encoded(llama_context* context, std::span<const float> rows, std::size_t n_rows,
                            std::size_t width, std::vector<float>* encoded);

}  // namespace outrider::llama
