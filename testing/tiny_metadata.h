// What a tiny model's file says about itself. For the writer's own files only.
#pragma once

#include "testing/gguf_file.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_vocabulary.h"

namespace outrider::testing {

// Sizes of recurrent layers.
inline constexpr int kTinyConvolution = 4;  // tokens that a convolution sees
inline constexpr int kTinyState = 16;
inline constexpr int kTinyTimeRank = 32;

bool tiny_layer_is_recurrent(const TinyModelOptions& options, int layer);

// The keys of the vocabulary alone, for files of another shape.
void set_tiny_vocabulary(gguf_context* metadata, const TinyVocabulary& vocabulary);

// All keys of the file: its shape and its vocabulary.
GgufHandle tiny_metadata(const TinyModelOptions& options, const TinyVocabulary& vocabulary);

}  // namespace outrider::testing
