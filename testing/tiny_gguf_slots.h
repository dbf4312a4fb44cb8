// How the residual stream of a tiny lag model is laid out, for the writers of it and of its heads.
#pragma once

#include <string>

#include "testing/tiny_gguf_lag.h"
#include "testing/tiny_gguf_tensors.h"

namespace outrider::testing {

inline constexpr int kSlotSize = 40;  // dimensions of a code
inline constexpr int kSlotsEmbd = 128;
inline constexpr int kSlotsHead = 64;  // size of an attention head
inline constexpr int kSlotsFeedForward = 64;
inline constexpr float kSlotsEpsilon = 1e-5F;
// Size of query and key entries: scores fall by 50 from the distance that is looked for to the
// next.
inline constexpr double kSlotsScore = 14.0;

// Dimension `i` of slot 0, 1 or 2; dimension 0 is the constant 1.
constexpr int slot_dimension(int slot, int i) { return 1 + slot * kSlotSize + i; }

// The weights of an RMSNorm that leave a stream with `n_slots` filled slots and the constant as it
// is.
double slots_norm(int n_slots);

// Where rotary position finds the two halves of a pair in a head.
enum class RopePairs { kNeighbours, kHalves };

// Sets `kSlotsHead` rows from `first_row` on so that they give, out of the constant in `column`, a
// query that finds the key of slots_key() `distance` positions back.
void set_slots_query(TinyMatrix& matrix, int first_row, int column, int distance, RopePairs pairs,
                     double size);
void set_slots_key(TinyMatrix& matrix, int first_row, int column, double size);

// Adds `factor` to the entries that give rows first_row.. the dimensions of a slot, whose columns
// begin at `first_column`.
void copy_slot(TinyMatrix& matrix, int first_row, int first_column, float factor);

// Tensors that target and heads share: [n_vocab] rows of codes, and of the logits' weights.
void add_slots_embedding(TinyTensors& tensors, const std::string& name,
                         const TinyLagOptions& options, const TinyVocabulary& vocabulary);
// The rows of `ids` only, in that order.
void add_slots_output(TinyTensors& tensors, const std::string& name, const TinyLagOptions& options,
                      const TinyVocabulary& vocabulary, const std::vector<Token>& ids);
// 0, 1, 2.. for all of a vocabulary.
std::vector<Token> all_ids(const TinyVocabulary& vocabulary);

// The keys that all models of this shape have, under the architecture's name.
void set_slots_shape(gguf_context* metadata, const std::string& architecture,
                     const std::string& name, int n_layer, int n_head, int n_head_kv, int n_ctx);
void set_key(gguf_context* metadata, const std::string& architecture, const char* key, int value);

// Feed-forward matrices: computed, and their result zero, or random.
void add_feed_forward(TinyTensors& tensors, const std::string& block, TinyHead kind);

}  // namespace outrider::testing
