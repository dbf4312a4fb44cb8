// Which layers of a model can be left out, and what its file says without them.
//
// Idea. A layer adds to the residual stream that all others read, so a model without some of its
// layers still works, worse ("The Unreasonable Ineffectiveness of the Deeper Layers", 2403.17887;
// "Draft & Verify", 2309.08168, drafts that way). What is left is numbered anew. Where layers are
// of two kinds, as the attention over a window and over the whole text, each keeps its kind: the
// file then lists them. Where llama.cpp tells more from a layer's place, and no key can say it,
// none is left out.
//
// Tested by layer_cut_test.cc and draft_writer_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "llama/gguf/gguf_file.h"

namespace outrider::gguf {

struct LayerShape {
  std::string architecture;
  std::int32_t n_layers = 0;
  Status can_be_cut;  // or why not
};

// Errors: kDataLoss where the file does not say how many layers it has.
Result<LayerShape> read_layers(const GgufReader& file);

// The layer of a tensor: 12 of "blk.12.ffn_up.weight"; -1: of none.
std::int32_t layer_of(const std::string& tensor);
// The same tensor in another layer. REQUIRES: it is in one
std::string in_layer(const std::string& tensor, std::int32_t layer);

// Makes `metadata`, the file's, describe the layers `kept` (rising, not empty) and no others.
// REQUIRES: the shape can be cut
void cut_layers(gguf_context* metadata, const LayerShape& shape,
                std::span<const std::int32_t> kept);

}  // namespace outrider::gguf
