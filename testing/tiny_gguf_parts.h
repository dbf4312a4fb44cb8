// How the residual stream of a tiny lag model is laid out, for the writers of it and of its heads.
#pragma once

#include <string>

#include "testing/tiny_gguf_lag.h"
#include "testing/tiny_gguf_tensors.h"

namespace outrider::testing {

inline constexpr int kPartSize = 40;  // dimensions of a code
inline constexpr int kPartsEmbd = 128;
inline constexpr int kPartsHead = 64;  // size of an attention head
inline constexpr int kPartsFeedForward = 64;
inline constexpr float kPartsEpsilon = 1e-5F;
// Size of query and key entries: scores fall by 50 from the distance that is looked for to the
// next.
inline constexpr double kPartsScore = 14.0;

// Dimension `i` of part 0, 1 or 2; dimension 0 is the constant 1.
constexpr int part_dimension(int part, int i) { return 1 + part * kPartSize + i; }

// The weights of an RMSNorm that leave a stream with `n_parts` filled parts and the constant as it
// is.
double parts_norm(int n_parts);

// Where rotary position finds the two halves of a pair in a head.
enum class RopePairs { kNeighbours, kHalves };

// Sets `kPartsHead` rows from `first_row` on so that they give, out of the constant in `column`, a
// query that finds the key of parts_key() `distance` positions back.
void set_parts_query(TinyMatrix& matrix, int first_row, int column, int distance, RopePairs pairs,
                     double size);
void set_parts_key(TinyMatrix& matrix, int first_row, int column, double size);

// Adds `factor` to the entries that give rows first_row.. the dimensions of a part, whose columns
// begin at `first_column`.
void copy_part(TinyMatrix& matrix, int first_row, int first_column, float factor);

// Tensors that target and heads share: [n_vocab] rows of codes, and of the logits' weights.
void add_parts_embedding(TinyTensors& tensors, const std::string& name,
                         const TinyLagOptions& options, const TinyVocabulary& vocabulary);
// The rows of `ids` only, in that order.
void add_parts_output(TinyTensors& tensors, const std::string& name, const TinyLagOptions& options,
                      const TinyVocabulary& vocabulary, const std::vector<Token>& ids);
// 0, 1, 2.. for all of a vocabulary.
std::vector<Token> all_ids(const TinyVocabulary& vocabulary);

// The keys that all models of this shape have, under the architecture's name.
void set_parts_shape(gguf_context* metadata, const std::string& architecture,
                     const std::string& name, int n_layer, int n_head, int n_head_kv, int n_ctx);
void set_key(gguf_context* metadata, const std::string& architecture, const char* key, int value);

// Feed-forward matrices: computed, and their result zero, or random.
void add_feed_forward(TinyTensors& tensors, const std::string& block, TinyHead kind);

}  // namespace outrider::testing
