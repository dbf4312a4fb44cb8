#include "llama/vocabulary/vocabulary.h"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>

#include "base/utf8.h"
#include "llama/base/backend.h"
#include "llama/base/handles.h"
#include "llama/vocabulary/token_prefixes.h"
#include "llama/vocabulary/tokenizer_stack.h"
#include "threads/deep_stack.h"

namespace outrider::llama {
namespace {

// Tokens are at most as many as bytes, and a few that the model adds. For very long texts half of
// that is tried first: ordinary text has three to five bytes a token.
std::size_t first_capacity(std::size_t n_bytes) {
  constexpr std::size_t kSmall = std::size_t{1} << 22;
  return (n_bytes < kSmall ? n_bytes : n_bytes / 2) + 16;
}

// What the tokenizer would put before or behind a text, though the file has no such token:
// llama.cpp aborts at the first text (llama-vocab.cpp, append_bos and its like). Empty: nothing.
std::string missing_token(const llama_vocab* vocab) {
  const bool no_begin = llama_vocab_bos(vocab) == LLAMA_TOKEN_NULL;
  const bool no_end = llama_vocab_eos(vocab) == LLAMA_TOKEN_NULL;
  switch (llama_vocab_type(vocab)) {
    case LLAMA_VOCAB_TYPE_SPM:
    case LLAMA_VOCAB_TYPE_BPE:
    case LLAMA_VOCAB_TYPE_UGM:
      if (no_begin && llama_vocab_get_add_bos(vocab)) return "tokenizer.ggml.bos_token_id";
      if (no_end && llama_vocab_get_add_eos(vocab)) return "tokenizer.ggml.eos_token_id";
      return "";
    case LLAMA_VOCAB_TYPE_WPM:  // adds both to every text, whatever the file says
      if (no_begin) return "tokenizer.ggml.bos_token_id";
      if (llama_vocab_sep(vocab) == LLAMA_TOKEN_NULL) return "tokenizer.ggml.seperator_token_id";
      return "";
    default:  // the others add none
      return "";
  }
}

constexpr std::size_t kShortPiece = 1024;  // 320 KiB: any thread's stack holds it
constexpr std::size_t kLongestPiece = std::size_t{4} << 20;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackPerByte = 4096;  // 2,820 measured
#else
constexpr std::size_t kStackPerByte = 1024;  // 320 measured with -O2, 530 without
#endif

}  // namespace

LlamaVocabulary::LlamaVocabulary(const llama_model* model, const llama_vocab* vocab)
    : vocab_(vocab), chat_template_(model) {}

LlamaVocabulary::~LlamaVocabulary() = default;

Result<std::unique_ptr<LlamaVocabulary>> LlamaVocabulary::create(const llama_model* model) {
  const llama_vocab* vocab = llama_model_get_vocab(model);
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE || llama_vocab_n_tokens(vocab) <= 0) {
    return unsupported("the model has no vocabulary, so it cannot read or write text");
  }
  const std::string missing = missing_token(vocab);
  if (!missing.empty()) {
    return data_loss("the tokenizer adds a token to each text that the vocabulary does not have: " +
                     missing + " is missing or wrong; fetch the file again");
  }
  std::unique_ptr<LlamaVocabulary> result(new LlamaVocabulary(model, vocab));
  result->read_tokens();
  return result;
}

void LlamaVocabulary::read_tokens() {
  const std::int32_t n = llama_vocab_n_tokens(vocab_);
  offsets_.reserve(static_cast<std::size_t>(n) + 1);
  ends_generation_.reserve(static_cast<std::size_t>(n));
  std::string buffer(256, '\0');
  offsets_.push_back(0);
  for (Token token = 0; token < n; ++token) {
    std::int32_t length = 0;
    // A negative length is the room that it takes.
    while ((length = llama_token_to_piece(vocab_, token, buffer.data(),
                                          static_cast<std::int32_t>(buffer.size()), /*lstrip=*/0,
                                          /*special=*/false)) < 0) {
      buffer.resize(static_cast<std::size_t>(-length));
    }
    bytes_.append(buffer, 0, static_cast<std::size_t>(length));
    offsets_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    ends_generation_.push_back(llama_vocab_is_eog(vocab_, token) ? 1 : 0);
  }
  std::int32_t n_suppressed = 0;
  const llama_token* suppressed = llama_vocab_get_suppress_tokens(vocab_, &n_suppressed);
  for (std::int32_t i = 0; i < n_suppressed; ++i) {
    if (suppressed[i] >= 0 && suppressed[i] < n) suppressed_.push_back(suppressed[i]);
  }
}

const TokenPrefixes& LlamaVocabulary::prefixes() const {
  std::call_once(prefixes_once_,
                 [this] { prefixes_ = std::make_unique<const TokenPrefixes>(*this); });
  return *prefixes_;
}

std::string_view LlamaVocabulary::text(Token token) const {
  return llama_vocab_get_text(vocab_, token);
}

SpecialTokens LlamaVocabulary::special() const {
  static_assert(LLAMA_TOKEN_NULL == kNoToken);
  const auto valid = [this](llama_token token) {
    return token >= 0 && token < size() ? token : kNoToken;
  };
  const Token begin_of_text = valid(llama_vocab_bos(vocab_));
  return {.front = llama_vocab_get_add_bos(vocab_) ? begin_of_text : kNoToken,
          .begin_of_text = begin_of_text,
          .end_of_text = valid(llama_vocab_eos(vocab_)),
          .end_of_turn = valid(llama_vocab_eot(vocab_)),
          .fill_prefix = valid(llama_vocab_fim_pre(vocab_)),
          .fill_suffix = valid(llama_vocab_fim_suf(vocab_)),
          .fill_middle = valid(llama_vocab_fim_mid(vocab_)),
          .repository = valid(llama_vocab_fim_rep(vocab_)),
          .file = valid(llama_vocab_fim_sep(vocab_))};
}

Result<std::vector<Token>> LlamaVocabulary::tokenize(std::string_view text, bool add_special,
                                                     bool parse_special) const {
  OUTRIDER_RETURN_IF_ERROR(check_utf8(text, "the text"));
  if (text.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) / 2) {
    return invalid_argument("the text is too long: " + std::to_string(text.size()) +
                            " bytes; at most 1 GiB can be tokenised at once");
  }
  const bool splits =
      text.size() >= kShortPiece && llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_BPE;
  const std::size_t piece = splits ? longest_piece(text) : 0;
  if (piece <= kShortPiece) return tokenize_here(text, add_special, parse_special);
  if (piece > kLongestPiece) {
    return invalid_argument(
        "the text has " + std::to_string(piece) +
        " bytes without a space, or of spaces and signs alone; at most 4 MiB of "
        "such can be tokenised");
  }
  Result<std::vector<Token>> tokens = std::vector<Token>();
  OUTRIDER_RETURN_IF_ERROR(call_with_stack(piece * kStackPerByte, [&] {
    try {
      tokens = tokenize_here(text, add_special, parse_special);
    } catch (...) {  // for want of memory
      tokens = resource_exhausted("out of memory");
    }
  }));
  return tokens;
}

Result<std::vector<Token>> LlamaVocabulary::tokenize_here(std::string_view text, bool add_special,
                                                          bool parse_special) const {
  const LogSink no_sink;
  const LogCapture log(no_sink);
  try {
    std::vector<Token> tokens(first_capacity(text.size()));
    // llama.cpp copies the text, but does not like a null pointer.
    const char* data = text.empty() ? "" : text.data();
    for (int attempt = 0; attempt < 2; ++attempt) {
      const std::int32_t n =
          llama_tokenize(vocab_, data, static_cast<std::int32_t>(text.size()), tokens.data(),
                         static_cast<std::int32_t>(tokens.size()), add_special, parse_special);
      if (n >= 0) {
        tokens.resize(static_cast<std::size_t>(n));
        return tokens;
      }
      if (n == std::numeric_limits<std::int32_t>::min()) {
        return invalid_argument("the text gives more tokens than can be counted");
      }
      tokens.resize(static_cast<std::size_t>(-static_cast<std::int64_t>(n)));
    }
  } catch (const std::exception& error) {
    return internal_error(std::string("llama.cpp could not tokenise the text: ") + error.what());
  }
  return internal_error("llama.cpp could not tokenise the text" + log.because());
}

Result<std::string> LlamaVocabulary::detokenize(const std::vector<Token>& tokens) const {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= size()) {
      return invalid_argument("token " + std::to_string(tokens[i]) + " (number " +
                              std::to_string(i) + ") is not in the vocabulary of " +
                              std::to_string(size()) + " tokens");
    }
    text += piece(tokens[i]);
  }
  return text;
}

}  // namespace outrider::llama
