#include "testing/tiny_vocabulary.h"

#include <algorithm>
#include <cstdio>
#include <unordered_set>

namespace outrider::testing {
namespace {

constexpr std::string_view kSpaceMarker = "\xe2\x96\x81";  // U+2581

std::string hex_byte_text(int byte) {
  char text[8];
  std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
  return text;
}

std::string utf8(int code_point) {  // REQUIRES: code_point < 0x800
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 63))};
}

// GPT-2 spells every byte as a printable character: bytes that print in Latin-1 as themselves, the
// other 68 in order as U+0100 and on (space is the 33rd of them: "Ġ").
std::string bpe_byte_text(int byte) {
  int n_unprintable = 0;
  for (int b = 0; b <= 0xff; ++b) {
    const bool prints = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad);
    if (b == byte) return utf8(prints ? b : 0x100 + n_unprintable);
    if (!prints) ++n_unprintable;
  }
  return {};
}

std::string bpe_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += bpe_byte_text(static_cast<unsigned char>(c));
  return text;
}

std::string spm_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c == ' ') {
      text += kSpaceMarker;
    } else {
      text += c;
    }
  }
  return text;
}

// Length in bytes of the UTF-8 character at the start of `text`, or 0 when there is none.
std::size_t character_length(std::string_view text) {
  const unsigned char lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// `piece` cut into what its tokenizer starts from: characters (kSpm) or bytes (kBpe). Empty when
// text can never be tokenised to it: a kSpm piece that is not whole characters.
std::vector<std::string_view> symbols_of(std::string_view piece, TinyTokenizer tokenizer) {
  std::vector<std::string_view> symbols;
  while (!piece.empty()) {
    const std::size_t n = tokenizer == TinyTokenizer::kBpe ? 1 : character_length(piece);
    if (n == 0) return {};
    symbols.push_back(piece.substr(0, n));
    piece.remove_prefix(n);
  }
  return symbols;
}

// Adds pieces in order, each after the prefixes that merging has to pass through to reach it.
class PieceAdder {
 public:
  explicit PieceAdder(TinyVocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (const TinyToken& token : vocabulary.tokens) texts_.insert(token.text);
  }

  Status add(const std::string& piece) {
    if (piece.empty()) return invalid_argument("a piece of a tiny vocabulary is empty");
    if (piece.find('\0') != std::string::npos) {
      return invalid_argument("a piece of a tiny vocabulary holds a NUL; GGUF strings here cannot");
    }
    const TinyTokenizer tokenizer = vocabulary_.options.tokenizer;
    const std::vector<std::string_view> symbols = symbols_of(piece, tokenizer);
    std::string prefix;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      prefix += symbols[i];
      if (i > 0) add_token(prefix);
    }
    const bool is_new = add_token(piece);
    if (!is_new && !prefixes_.contains(piece)) {
      return invalid_argument("piece \"" + piece + "\" is in the tiny vocabulary already");
    }
    prefixes_.erase(piece);
    return Status();
  }

 private:
  std::string text_of(std::string_view bytes) const {
    return vocabulary_.options.tokenizer == TinyTokenizer::kBpe ? bpe_text(bytes) : spm_text(bytes);
  }

  // False when the token is there already.
  bool add_token(const std::string& bytes) {
    const std::string text = text_of(bytes);
    if (!texts_.insert(text).second) return false;
    vocabulary_.tokens.push_back({text, bytes, TinyTokenType::kNormal});
    prefixes_.insert(bytes);
    if (vocabulary_.options.tokenizer == TinyTokenizer::kBpe) add_merges(bytes);
    return true;
  }

  // Every way to make `bytes` from two tokens, since earlier merges may leave any of them: " the"
  // from " th" and "e", but also from " " and "the".
  void add_merges(std::string_view bytes) {
    for (std::size_t n = bytes.size() - 1; n > 0; --n) {
      std::string left = text_of(bytes.substr(0, n));
      const std::string right = text_of(bytes.substr(n));
      if (!texts_.contains(left) || !texts_.contains(right)) continue;
      left += ' ';
      left += right;
      vocabulary_.merges.push_back(std::move(left));
    }
  }

  TinyVocabulary& vocabulary_;
  std::unordered_set<std::string> texts_;
  std::unordered_set<std::string> prefixes_;  // bytes of tokens nobody asked for by name yet
};

void add_fixed_tokens(TinyVocabulary& vocabulary) {
  const bool bpe = vocabulary.options.tokenizer == TinyTokenizer::kBpe;
  std::vector<TinyToken>& tokens = vocabulary.tokens;
  tokens.push_back({"<unk>", "", TinyTokenType::kUnknown});
  tokens.push_back({"<s>", "", TinyTokenType::kControl});
  tokens.push_back({"</s>", "", TinyTokenType::kControl});
  for (int i = 0; i < 256; ++i) {
    const int byte = (((i + vocabulary.options.rotate_bytes) % 256) + 256) % 256;
    tokens.push_back({bpe ? bpe_byte_text(byte) : hex_byte_text(byte),
                      std::string(1, static_cast<char>(byte)),
                      bpe ? TinyTokenType::kNormal : TinyTokenType::kByte});
  }
  tokens.push_back({"<|im_start|>", "", TinyTokenType::kControl});
  tokens.push_back({"<|im_end|>", "", TinyTokenType::kControl});
  tokens.push_back({"<pad>", "", TinyTokenType::kControl});
  // kBpe has its space among the bytes already; two spaces stand in so that the ids agree.
  if (bpe) {
    tokens.push_back({bpe_text("  "), "  ", TinyTokenType::kNormal});
    vocabulary.merges.push_back(bpe_text(" ") + " " + bpe_text(" "));
  } else {
    tokens.push_back({std::string(kSpaceMarker), " ", TinyTokenType::kNormal});
  }
}

}  // namespace

std::vector<std::string> default_tiny_pieces() {
  return {"the",      " the", " and", " of",  " to", "ing", "er", ", ", ". ",   "\n\n",
          "END",      "ND\n", "stop", "top!", "###", "é",   "ü",  "€",  "日本", "😀",
          "\xf0\x9f",   // the first half of an emoji
          "\x98\x80",   // the second half of the same one
          "\xe6\x97"};  // two bytes of a three-byte character
}

std::vector<std::string> pieces_of(std::string_view text, std::size_t n) {
  std::vector<std::string> pieces;
  std::unordered_set<std::string> known;
  for (; text.size() >= n; text.remove_prefix(n)) {
    if (known.emplace(text.substr(0, n)).second) pieces.emplace_back(text.substr(0, n));
  }
  return pieces;
}

Result<TinyVocabulary> make_tiny_vocabulary(const TinyVocabularyOptions& options) {
  if (options.n_padding < 0) return invalid_argument("n_padding is negative");
  TinyVocabulary vocabulary;
  vocabulary.options = options;
  add_fixed_tokens(vocabulary);
  PieceAdder adder(vocabulary);
  for (const std::string& piece : options.pieces) OUTRIDER_RETURN_IF_ERROR(adder.add(piece));
  for (int i = 0; i < options.n_padding; ++i) {
    vocabulary.tokens.push_back({"[PAD" + std::to_string(i) + "]", "", TinyTokenType::kUnused});
  }
  for (const std::string& text : options.control_texts) {
    vocabulary.tokens.push_back({text, "", TinyTokenType::kControl});
  }
  for (const std::pair<Token, Token>& swap : options.swaps) {
    if (std::min(swap.first, swap.second) < 0 ||
        std::max(swap.first, swap.second) >= vocabulary.size()) {
      return invalid_argument("a swap names token " + std::to_string(swap.first) + " and " +
                              std::to_string(swap.second) + ", but the vocabulary has " +
                              std::to_string(vocabulary.size()));
    }
    std::swap(vocabulary.tokens[swap.first], vocabulary.tokens[swap.second]);
  }
  return vocabulary;
}

double tiny_token_bias(const TinyToken& token, float eos_bias, float odd_byte_bias) {
  if (token.text == "</s>" || token.text == "<|im_end|>") return static_cast<double>(eos_bias);
  if (token.bytes.empty()) return kTinyNeverBias;
  const unsigned char first = static_cast<unsigned char>(token.bytes[0]);
  const bool plain = token.bytes.size() > 1 || (first >= 0x20 && first < 0x7f) || first == '\n';
  return plain ? 0.0 : static_cast<double>(odd_byte_bias);
}

std::string_view tiny_chat_template() {
  return "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
         "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
}

}  // namespace outrider::testing
