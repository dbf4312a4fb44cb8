// VocabularyCut: a model's vocabulary with most of its tokens left out, whose tokenizer still cuts
// texts as before wherever a text needs none of those.
//
// Idea. Of a small model the output matrix is a large part (of gemma-3-270m 63 % of the weights),
// and most of its rows are tokens that a kind of text never uses. A draft need not have them: what
// it cannot say it does not guess. What is left must be a vocabulary of its own: a tokenizer builds
// a token out of smaller ones, so these are kept with it, all the way down.
//
//      wanted      " the"
//      built of    " t" + "he", and these of " " + "t" and "h" + "e"
//      kept        " the", " t", "he", " ", "t", "h", "e"
//
// Claim. A text whose tokens are all kept is cut by the smaller vocabulary into the same tokens.
// Proof. Tokenizers of both kinds (SentencePiece's, by scores, and byte pairs, by ranks) merge the
// best pair of neighbours until there is none. What a token is built of depends on its own bytes
// only, as no merge has crossed its ends; all of that is kept, in the old order. And no merge that
// is gone was made: what it gave would be a part of a token of the text.
//
// Cost: a few hundred steps a token that is kept. Source: vocabulary trimming, e.g. "An Efficient
// Multilingual Language Model Compression through Vocabulary Trimming" (2305.15020); keeping what a
// token is built of is ours. Tested by vocabulary_cut_test.cc, with llama.cpp's tokenizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "llama/gguf/gguf_file.h"

namespace outrider::gguf {

// A vocabulary as a file lists it.
struct FileVocabulary {
  enum class Kind { kSentencePiece, kBytePairs };
  Kind kind = Kind::kSentencePiece;
  std::vector<std::string> tokens;
  std::vector<float> scores;               // [tokens], or empty
  std::vector<std::int32_t> whole_scores;  // the same where the file has integers, or empty
  std::vector<std::int32_t> types;         // [tokens] llama.cpp's: 1 normal, 3 control, ...
  std::vector<std::string> merges;         // of byte pairs: "left right", the first wins
  std::vector<Token> named;                // those that tokenizer.ggml.*_token_id name
  std::string chat_template;               // or empty

  std::int32_t size() const { return static_cast<std::int32_t>(tokens.size()); }

  // Errors, each naming the file: kUnsupported for another kind of tokenizer; kDataLoss where a
  // list is missing or has another length.
  static Result<FileVocabulary> read(const GgufReader& file);
};

// Which tokens are kept. Grows only. Points to the vocabulary.
class TokenSelection {
 public:
  // Begins with what no vocabulary can do without: the tokens that the file names, unknown and
  // byte tokens, the characters that bytes are spelt with, and the control tokens that the chat
  // template has.
  explicit TokenSelection(const FileVocabulary& vocabulary);

  // With all that it is built of. REQUIRES: a valid id
  void keep(Token token);
  // More of them, by rising id, which is by falling frequency in vocabularies of both kinds, until
  // there are `n`. Control tokens are passed over.
  void fill(std::size_t n);

  std::size_t size() const { return n_kept_; }
  std::vector<Token> kept() const;  // rising

 private:
  void mark(Token token);
  void mark_parts(Token token);
  // Of two neighbours, how good it is to merge them, the greater the better; false: they cannot be.
  bool merge_of(const std::string& left, const std::string& right, double& goodness) const;

  const FileVocabulary& vocabulary_;
  std::unordered_map<std::string_view, Token> ids_;
  std::unordered_map<std::string_view, std::size_t> ranks_;  // of merges
  std::vector<bool> is_kept_;                                // [tokens]
  std::size_t n_kept_ = 0;
};

// Makes `metadata` list the tokens `kept` (rising, not empty) of `vocabulary` and no others: their
// texts, scores, types, merges, and the ids by which other keys name them.
void cut_metadata(gguf_context* metadata, const FileVocabulary& vocabulary,
                  std::span<const Token> kept);

}  // namespace outrider::gguf
