#include "llama/vocabulary/vocab_match.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/escaped_bytes.h"
#include "llama/base/handles.h"

namespace outrider::llama {
namespace {

// As llama.cpp has it (SPEC_VOCAB_MAX_SIZE_DIFFERENCE). Qwen2.5 has 151,936 tokens up to 3B and
// 152,064 above, the same ones but for those that nothing is.
constexpr std::int32_t kMaxPadding = 128;
constexpr Token kFirstCompared = 5;
constexpr std::size_t kMaxNamed = 5;

struct Special {
  const char* name;
  llama_token (*get)(const llama_vocab*);
  // Whether the tokenizer adds it, so that the two must agree; null, or where neither adds it: it
  // only keeps two vocabularies from being identical. Where a text ends, the target's says.
  bool (*added)(const llama_vocab*);
};
constexpr std::array<Special, 8> kSpecials{{
    {"BOS", llama_vocab_bos, llama_vocab_get_add_bos},
    {"EOS", llama_vocab_eos, llama_vocab_get_add_eos},
    {"EOT", llama_vocab_eot, nullptr},
    {"SEP", llama_vocab_sep, nullptr},
    {"NL", llama_vocab_nl, nullptr},
    {"PAD", llama_vocab_pad, nullptr},
    {"MASK", llama_vocab_mask, nullptr},
    {"FIM prefix", llama_vocab_fim_pre, nullptr},
}};

const char* type_name(enum llama_vocab_type type) {
  switch (type) {
    case LLAMA_VOCAB_TYPE_NONE:
      return "none";
    case LLAMA_VOCAB_TYPE_SPM:
      return "SentencePiece";
    case LLAMA_VOCAB_TYPE_BPE:
      return "BPE";
    case LLAMA_VOCAB_TYPE_WPM:
      return "WordPiece";
    case LLAMA_VOCAB_TYPE_UGM:
      return "Unigram";
    case LLAMA_VOCAB_TYPE_RWKV:
      return "RWKV";
    case LLAMA_VOCAB_TYPE_PLAMO2:
      return "PLaMo-2";
    case LLAMA_VOCAB_TYPE_TEST:
      return "test";
  }
  return "unknown";
}

// At most 32 bytes of a token's text, with everything unprintable escaped.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMaxBytes = 32;
  std::string result = "\"";
  for (const char c : text.substr(0, kMaxBytes)) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      append_escaped(result, byte);
    } else {
      result += c;
    }
  }
  return result + (text.size() > kMaxBytes ? "...\"" : "\"");
}

std::string id_or_none(llama_token token) {
  return token == LLAMA_TOKEN_NULL ? "none" : std::to_string(token);
}

struct SpecialDifferences {
  std::string all;
  bool must_agree = false;
};

SpecialDifferences compare_specials(const llama_vocab* a, const llama_vocab* b) {
  SpecialDifferences result;
  const auto note = [&result](const std::string& text, bool must_agree) {
    result.all += (result.all.empty() ? "" : ", ") + text;
    result.must_agree = result.must_agree || must_agree;
  };
  for (const Special& special : kSpecials) {
    const llama_token token_a = special.get(a);
    const llama_token token_b = special.get(b);
    if (token_a == token_b) continue;
    note(std::string(special.name) + " is " + id_or_none(token_a) + " and " + id_or_none(token_b),
         special.added != nullptr && (special.added(a) || special.added(b)));
  }
  const auto flag = [&note](const char* what, bool flag_a, bool flag_b) {
    if (flag_a == flag_b) return;
    note(std::string(flag_a ? "only the target" : "only the draft") + " adds " + what, true);
  };
  flag("BOS", llama_vocab_get_add_bos(a), llama_vocab_get_add_bos(b));
  flag("EOS", llama_vocab_get_add_eos(a), llama_vocab_get_add_eos(b));
  return result;
}

struct TokenDifferences {
  std::int32_t early = 0;       // texts below kFirstCompared
  std::int32_t texts = 0;       // texts from there on
  std::int32_t attributes = 0;  // same text, another attribute
  std::string named;            // the first few of `texts`
};

TokenDifferences compare_tokens(const LlamaVocabulary& target, const LlamaVocabulary& draft) {
  TokenDifferences result;
  const std::int32_t n = std::min(target.size(), draft.size());
  for (Token token = 0; token < n; ++token) {
    const std::string_view a = target.text(token);
    const std::string_view b = draft.text(token);
    if (a == b) {
      result.attributes += llama_vocab_get_attr(target.handle(), token) !=
                           llama_vocab_get_attr(draft.handle(), token);
    } else if (token < kFirstCompared) {
      ++result.early;
    } else if (static_cast<std::size_t>(result.texts++) < kMaxNamed) {
      result.named += (result.named.empty() ? "" : ", ") + std::to_string(token) + " (" +
                      quoted(a) + " and " + quoted(b) + ")";
    }
  }
  return result;
}

}  // namespace

VocabularyMatch match_vocabularies(const LlamaVocabulary& target, const LlamaVocabulary& draft) {
  const enum llama_vocab_type type = llama_vocab_type(target.handle());
  const enum llama_vocab_type draft_type = llama_vocab_type(draft.handle());
  const SpecialDifferences specials = compare_specials(target.handle(), draft.handle());
  const TokenDifferences tokens = compare_tokens(target, draft);
  const std::int32_t padding = std::abs(target.size() - draft.size());

  VocabularyMatch match;
  std::vector<std::string> reasons;
  bool usable = true;
  const auto differs = [&](bool tolerable, std::string reason) {
    usable = usable && tolerable;
    reasons.push_back(std::move(reason));
  };
  if (type != draft_type) {
    differs(false,
            std::string("the tokenizers are ") + type_name(type) + " and " + type_name(draft_type));
  }
  if (padding != 0) {
    differs(padding <= kMaxPadding, "the sizes are " + std::to_string(target.size()) + " and " +
                                        std::to_string(draft.size()) + " tokens");
  }
  if (!specials.all.empty()) differs(!specials.must_agree, specials.all);
  if (tokens.texts > 0) {
    differs(false, std::to_string(tokens.texts) + " common ids differ in text: " + tokens.named +
                       (tokens.texts > static_cast<std::int32_t>(kMaxNamed) ? ", ..." : ""));
  }
  if (tokens.early > 0) {
    differs(true, std::to_string(tokens.early) + " of the first " + std::to_string(kFirstCompared) +
                      " ids are spelt differently");
  }
  if (tokens.attributes > 0) {
    differs(true, std::to_string(tokens.attributes) + " ids differ in their attributes only");
  }
  if (reasons.empty()) {
    match.kind = VocabularyMatch::Kind::kIdentical;
    return match;
  }
  match.kind = usable ? VocabularyMatch::Kind::kPadded : VocabularyMatch::Kind::kDifferent;
  for (const std::string& reason : reasons) {
    match.message += (match.message.empty() ? "" : "; ") + reason;
  }
  return match;
}

}  // namespace outrider::llama
