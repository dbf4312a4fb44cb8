// Small byte-level vocabularies for tiny models, as llama.cpp reads them from a GGUF file.
//
// Layout, the same for both kinds (so that two kinds differ in type and spelling, not in size):
//   id 0 <unk>   1 <s>   2 </s>   3..258 the 256 bytes in order   259 <|im_start|>
//   260 <|im_end|> (end of turn, also ends generation)   261 <pad>   262 the space
//   263.. pieces and their prefixes   then padding tokens
//
// kSpm (default) is "llama", SentencePiece with byte fallback: llama.cpp tokenises and detokenises
// all valid UTF-8, and all bytes without spaces, invalid UTF-8 and NUL included, back to
// themselves. Two exceptions, both llama.cpp's, which turns each space into U+2581 ("▁") before it
// looks for characters: U+2581 itself comes back as a space, and a space where an incomplete
// character's missing bytes should be comes back as U+2581. Only tokenising is concerned: what the
// model generates prints its tokens' exact bytes. kBpe is "gpt2": the kind of SmolLM2 and most
// current models, but llama.cpp reads text as code points there, so bytes that are not UTF-8 are
// replaced on the way in; tokens that the model generates still give any bytes on the way out.
//
// Tested by tiny_vocabulary_test.cc, and with llama.cpp by tiny_gguf_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace outrider::testing {

enum class TinyTokenizer { kSpm, kBpe };

inline constexpr Token kTinyUnknown = 0;
inline constexpr Token kTinyBos = 1;
inline constexpr Token kTinyEos = 2;
inline constexpr Token kTinyFirstByte = 3;  // byte b is token kTinyFirstByte + b
inline constexpr Token kTinyTurnStart = 259;
inline constexpr Token kTinyTurnEnd = 260;
inline constexpr Token kTinyPad = 261;
inline constexpr Token kTinySpace = 262;
inline constexpr Token kTinyFirstPiece = 263;

// The pieces of TinyVocabularyOptions by default: words, whole multi-byte characters, halves of
// one (only generated, never the result of tokenising), and pieces that span line and stop strings.
std::vector<std::string> default_tiny_pieces();

// The different pieces of `n` bytes that `text` is made of, in order, what is left at its end
// dropped: for a vocabulary that a text needs little else than. REQUIRES: n > 0.
std::vector<std::string> pieces_of(std::string_view text, std::size_t n);

struct TinyVocabularyOptions {
  TinyTokenizer tokenizer = TinyTokenizer::kSpm;
  std::string splits = "gpt-2";  // how texts are split first (tokenizer.ggml.pre), with kBpe
  std::vector<std::string> pieces = default_tiny_pieces();  // bytes; no NUL, not empty, no repeats
  int n_padding = 0;          // unused tokens "[PAD0]".. at the end, never generated
  bool chat_template = true;  // ChatML, or:
  std::string template_text;  // a Jinja template of its own; empty: ChatML
  // Texts of further control tokens, behind the padding.
  std::vector<std::string> control_texts;
  bool add_bos = true;        // the tokenizer puts <s> before a text
  bool space_prefix = false;  // and a space, as SentencePiece does (kSpm)

  // For refusal tests. Swaps exchange what two tokens are (text, type); applied in order, last.
  // rotate_bytes = r gives token kTinyFirstByte + b the byte (b + r) % 256.
  int rotate_bytes = 0;
  std::vector<std::pair<Token, Token>> swaps;
};

// How llama.cpp sees a token (the values of tokenizer.ggml.token_type).
enum class TinyTokenType { kNormal = 1, kUnknown = 2, kControl = 3, kUnused = 5, kByte = 6 };

struct TinyToken {
  std::string text;   // as in the file: "<0x41>", "▁the", "Ġthe"
  std::string bytes;  // what it prints; empty for control, unknown and unused tokens
  TinyTokenType type = TinyTokenType::kNormal;
};

struct TinyVocabulary {
  TinyVocabularyOptions options;
  std::vector<TinyToken> tokens;    // [n_vocab], index = id
  std::vector<std::string> merges;  // kBpe: "left right", most important first

  int size() const { return static_cast<int>(tokens.size()); }
};

// kInvalidArgument for an empty or repeated piece, a NUL in a piece, a swap out of range,
// a negative padding or a piece that is spelled like a special token.
Result<TinyVocabulary> make_tiny_vocabulary(const TinyVocabularyOptions& options);

// What tiny models add to a token's logit, in nats: `eos_bias` for tokens that end generation,
// `odd_byte_bias` for bytes that are neither printable ASCII nor newline, kTinyNeverBias for what
// is never generated, 0 for plain text.
inline constexpr double kTinyNeverBias = -30.0;
double tiny_token_bias(const TinyToken& token, float eos_bias, float odd_byte_bias);

// The ChatML template (Jinja) that the chat_template option writes.
std::string_view tiny_chat_template();

}  // namespace outrider::testing
