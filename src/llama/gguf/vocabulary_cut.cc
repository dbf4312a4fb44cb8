#include "llama/gguf/vocabulary_cut.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace outrider::gguf {
namespace {

constexpr const char* kModel = "tokenizer.ggml.model";
constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr const char* kTypes = "tokenizer.ggml.token_type";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr const char* kTemplate = "tokenizer.chat_template";
constexpr std::string_view kIdSuffix = "_token_id";

// llama.cpp's types of tokens.
constexpr std::int32_t kNormal = 1;
constexpr std::int32_t kUnknown = 2;
constexpr std::int32_t kControl = 3;
constexpr std::int32_t kUserDefined = 4;
constexpr std::int32_t kByte = 6;

// A control token's name that short may be in a template by chance.
constexpr std::size_t kLeastName = 3;

// The length of the first character; of bytes that are not UTF-8, 1.
std::size_t first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(n, text.size());
}

std::vector<std::string> strings_of(const gguf_context* file, const char* key) {
  std::vector<std::string> strings;
  const std::int64_t id = gguf_find_key(file, key);
  if (id < 0 || gguf_get_kv_type(file, id) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(file, id) != GGUF_TYPE_STRING) {
    return strings;
  }
  const std::size_t n = gguf_get_arr_n(file, id);
  strings.reserve(n);
  for (std::size_t i = 0; i < n; ++i) strings.emplace_back(gguf_get_arr_str(file, id, i));
  return strings;
}

template <typename Number>
std::vector<Number> numbers_of(const gguf_context* file, const char* key, gguf_type type) {
  const std::int64_t id = gguf_find_key(file, key);
  if (id < 0 || gguf_get_kv_type(file, id) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(file, id) != type) {
    return {};
  }
  const auto* data = static_cast<const Number*>(gguf_get_arr_data(file, id));
  return std::vector<Number>(data, data + gguf_get_arr_n(file, id));
}

// The keys that name a token, with the id that they give.
std::vector<std::pair<std::string, Token>> named_tokens(const gguf_context* file) {
  std::vector<std::pair<std::string, Token>> named;
  for (std::int64_t i = 0; i < gguf_get_n_kv(file); ++i) {
    const std::string key = gguf_get_key(file, i);
    if (!key.ends_with(kIdSuffix) || gguf_get_kv_type(file, i) != GGUF_TYPE_UINT32) continue;
    named.emplace_back(key, static_cast<Token>(gguf_get_val_u32(file, i)));
  }
  return named;
}

void set_strings(gguf_context* metadata, const char* key, const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  pointers.reserve(strings.size());
  for (const std::string& text : strings) pointers.push_back(text.c_str());
  gguf_remove_key(metadata, key);
  gguf_set_arr_str(metadata, key, pointers.data(), pointers.size());
}

template <typename Number>
void set_chosen(gguf_context* metadata, const char* key, gguf_type type,
                const std::vector<Number>& all, std::span<const Token> kept) {
  if (all.empty()) return;
  std::vector<Number> chosen;
  for (const Token token : kept) chosen.push_back(all[static_cast<std::size_t>(token)]);
  gguf_remove_key(metadata, key);
  gguf_set_arr_data(metadata, key, type, chosen.data(), chosen.size());
}

// Arrays of ids, such as tokenizer.ggml.suppress_tokens.
void cut_id_arrays(gguf_context* metadata, const std::vector<Token>& new_ids) {
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> changed;
  for (std::int64_t i = 0; i < gguf_get_n_kv(metadata); ++i) {
    const std::string key = gguf_get_key(metadata, i);
    const bool is_ids = key.starts_with("tokenizer.ggml.") && key != kTypes && key != kScores &&
                        gguf_get_kv_type(metadata, i) == GGUF_TYPE_ARRAY &&
                        (gguf_get_arr_type(metadata, i) == GGUF_TYPE_INT32 ||
                         gguf_get_arr_type(metadata, i) == GGUF_TYPE_UINT32);
    if (!is_ids) continue;
    const auto* ids = static_cast<const std::int32_t*>(gguf_get_arr_data(metadata, i));
    std::vector<std::int32_t> left;
    for (std::size_t j = 0; j < gguf_get_arr_n(metadata, i); ++j) {
      const auto id = static_cast<std::size_t>(ids[j]);
      if (id < new_ids.size() && new_ids[id] != kNoToken) left.push_back(new_ids[id]);
    }
    changed.emplace_back(key, std::move(left));
  }
  for (const auto& [key, left] : changed) {
    gguf_remove_key(metadata, key.c_str());
    if (!left.empty()) {
      gguf_set_arr_data(metadata, key.c_str(), GGUF_TYPE_INT32, left.data(), left.size());
    }
  }
}

}  // namespace

Result<FileVocabulary> FileVocabulary::read(const GgufReader& file) {
  const std::string where = "'" + file.path() + "'";
  const Result<std::string> model = file.string(kModel);
  if (!model.ok()) return model.status();
  FileVocabulary v;
  if (*model != "llama" && *model != "gpt2") {
    return unsupported(where + " has a tokenizer '" + *model +
                       "', whose vocabulary cannot be cut; 'llama' (SentencePiece) and 'gpt2' "
                       "(byte pairs) can");
  }
  v.kind = *model == "llama" ? Kind::kSentencePiece : Kind::kBytePairs;
  v.tokens = strings_of(file.metadata(), kTokens);
  v.scores = numbers_of<float>(file.metadata(), kScores, GGUF_TYPE_FLOAT32);
  v.whole_scores = numbers_of<std::int32_t>(file.metadata(), kScores, GGUF_TYPE_INT32);
  // As llama.cpp reads them.
  if (v.scores.empty()) v.scores.assign(v.whole_scores.begin(), v.whole_scores.end());
  v.types = numbers_of<std::int32_t>(file.metadata(), kTypes, GGUF_TYPE_INT32);
  v.merges = strings_of(file.metadata(), kMerges);
  const bool needs_scores = v.kind == Kind::kSentencePiece;
  if (v.tokens.empty() || v.types.size() != v.tokens.size() ||
      (v.scores.size() != v.tokens.size() && (needs_scores || !v.scores.empty()))) {
    return data_loss(where + " lists " + std::to_string(v.tokens.size()) + " tokens, " +
                     std::to_string(v.types.size()) + " types and " +
                     std::to_string(v.scores.size()) + " scores; there must be one for each token");
  }
  for (const auto& [key, token] : named_tokens(file.metadata())) {
    if (token >= 0 && token < v.size()) v.named.push_back(token);
  }
  if (file.has(kTemplate)) {
    const Result<std::string> text = file.string(kTemplate);
    if (!text.ok()) return text.status();
    v.chat_template = *text;
  }
  return v;
}

TokenSelection::TokenSelection(const FileVocabulary& vocabulary)
    : vocabulary_(vocabulary), is_kept_(vocabulary.tokens.size(), false) {
  for (Token token = 0; token < vocabulary.size(); ++token) {
    ids_.emplace(vocabulary.tokens[static_cast<std::size_t>(token)], token);
  }
  for (std::size_t i = 0; i < vocabulary.merges.size(); ++i)
    ranks_.emplace(vocabulary.merges[i], i);
  const bool spells_bytes = vocabulary.kind == FileVocabulary::Kind::kBytePairs;
  for (Token token = 0; token < vocabulary.size(); ++token) {
    const std::string& text = vocabulary.tokens[static_cast<std::size_t>(token)];
    const std::int32_t type = vocabulary.types[static_cast<std::size_t>(token)];
    const bool is_byte = spells_bytes && !text.empty() && first_character(text) == text.size();
    const bool is_control = type == kControl || type == kUserDefined;
    const bool is_in_template = is_control && text.size() >= kLeastName &&
                                vocabulary.chat_template.find(text) != std::string::npos;
    if (type == kUnknown || type == kByte || is_byte || is_in_template) mark(token);
  }
  for (const Token token : vocabulary.named) mark(token);
}

void TokenSelection::mark(Token token) {
  const std::size_t i = static_cast<std::size_t>(token);
  if (is_kept_[i]) return;
  is_kept_[i] = true;
  ++n_kept_;
}

void TokenSelection::keep(Token token) {
  const std::size_t i = static_cast<std::size_t>(token);
  if (is_kept_[i]) return;
  mark(token);
  if (vocabulary_.types[i] == kNormal) mark_parts(token);
}

bool TokenSelection::merge_of(const std::string& left, const std::string& right,
                              double& goodness) const {
  if (vocabulary_.kind == FileVocabulary::Kind::kBytePairs) {
    const auto rank = ranks_.find(left + " " + right);
    if (rank == ranks_.end()) return false;
    goodness = -static_cast<double>(rank->second);
    return true;
  }
  const auto merged = ids_.find(left + right);
  if (merged == ids_.end()) return false;
  goodness = static_cast<double>(vocabulary_.scores[static_cast<std::size_t>(merged->second)]);
  return true;
}

// The tokenizer's own way to the token, and every token on it.
void TokenSelection::mark_parts(Token token) {
  std::vector<std::string> parts;
  std::string_view rest = vocabulary_.tokens[static_cast<std::size_t>(token)];
  while (!rest.empty()) {
    parts.emplace_back(rest.substr(0, first_character(rest)));
    rest.remove_prefix(parts.back().size());
  }
  const auto mark_part = [this](const std::string& part) {
    const auto known = ids_.find(part);
    if (known != ids_.end()) mark(known->second);
  };
  for (const std::string& part : parts) mark_part(part);
  while (parts.size() > 1) {
    std::optional<std::size_t> best;
    double best_goodness = 0.0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      double goodness = 0.0;
      if (!merge_of(parts[i], parts[i + 1], goodness)) continue;
      if (best && goodness <= best_goodness) continue;
      best = i;
      best_goodness = goodness;
    }
    if (!best) return;
    parts[*best] += parts[*best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
    mark_part(parts[*best]);
  }
}

void TokenSelection::fill(std::size_t n) {
  for (Token token = 0; token < vocabulary_.size() && n_kept_ < n; ++token) {
    const std::int32_t type = vocabulary_.types[static_cast<std::size_t>(token)];
    if (type == kNormal || type == kUserDefined) keep(token);
  }
}

std::vector<Token> TokenSelection::kept() const {
  std::vector<Token> kept;
  for (Token token = 0; token < vocabulary_.size(); ++token) {
    if (is_kept_[static_cast<std::size_t>(token)]) kept.push_back(token);
  }
  return kept;
}

void cut_metadata(gguf_context* metadata, const FileVocabulary& vocabulary,
                  std::span<const Token> kept) {
  std::vector<Token> new_ids(vocabulary.tokens.size(), kNoToken);
  std::vector<std::string> tokens;
  std::unordered_map<std::string_view, Token> left;
  for (const Token token : kept) {
    const std::string& text = vocabulary.tokens[static_cast<std::size_t>(token)];
    new_ids[static_cast<std::size_t>(token)] = static_cast<Token>(tokens.size());
    tokens.push_back(text);
    left.emplace(text, token);
  }
  set_strings(metadata, kTokens, tokens);
  if (vocabulary.whole_scores.empty()) {
    set_chosen(metadata, kScores, GGUF_TYPE_FLOAT32, vocabulary.scores, kept);
  } else {
    set_chosen(metadata, kScores, GGUF_TYPE_INT32, vocabulary.whole_scores, kept);
  }
  set_chosen(metadata, kTypes, GGUF_TYPE_INT32, vocabulary.types, kept);
  if (!vocabulary.merges.empty()) {
    std::vector<std::string> merges;
    for (const std::string& merge : vocabulary.merges) {
      const std::size_t space = merge.find(' ', 1);  // the left part may not be empty
      if (space == std::string::npos) continue;
      const std::string first = merge.substr(0, space);
      const std::string second = merge.substr(space + 1);
      const bool all =
          left.contains(first) && left.contains(second) && left.contains(first + second);
      if (all) merges.push_back(merge);
    }
    set_strings(metadata, kMerges, merges);
  }
  for (const auto& [key, token] : named_tokens(metadata)) {
    const std::size_t i = static_cast<std::size_t>(token);
    if (i < new_ids.size() && new_ids[i] != kNoToken) {
      gguf_set_val_u32(metadata, key.c_str(), static_cast<std::uint32_t>(new_ids[i]));
    } else {
      gguf_remove_key(metadata, key.c_str());  // it named a token that is not there
    }
  }
  cut_id_arrays(metadata, new_ids);
  gguf_remove_key(metadata, "tokenizer.huggingface.json");  // describes the whole vocabulary
}

}  // namespace outrider::gguf
