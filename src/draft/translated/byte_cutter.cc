#include "draft/translated/byte_cutter.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"

namespace outrider {
namespace {

constexpr std::string_view kSpace = " ";

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

Result<std::vector<CutToken>> ByteCutter::cut(std::string_view bytes, bool at_start) const {
  std::vector<CutToken> out;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t valid = first_invalid_utf8(bytes.substr(at)).value_or(bytes.size() - at);
    if (valid > 0) {
      OUTRIDER_RETURN_IF_ERROR(cut_valid(bytes.substr(at, valid), at, at_start && at == 0, out));
      at += valid;
      continue;
    }
    std::size_t n = 1;  // up to where a character may begin
    while (at + n < bytes.size() && continues_character(bytes[at + n])) ++n;
    match(bytes.substr(at, n), at, out);
    at += n;
  }
  return out;
}

// `text` is valid UTF-8 and not empty.
Status ByteCutter::cut_valid(std::string_view text, std::size_t offset, bool at_start,
                             std::vector<CutToken>& out) const {
  Status status;
  std::string_view added = adds_space_ && at_start ? kSpace : std::string_view();
  if (adds_space_ && !at_start) {
    const std::size_t n_before = std::min(text.find(' '), text.size());
    match(text.substr(0, n_before), offset, out);
    text.remove_prefix(n_before);
    offset += n_before;
    if (text.empty()) return status;
  }
  const std::string_view given = adds_space_ && !at_start ? text.substr(1) : text;
  if (given.empty() || !tokenise(given, offset, added, out, status)) {
    if (status.ok()) match(text, offset, out);
  }
  return status;
}

// True when the tokens of `given` are those bytes: with `added` in front, or what a space that the
// tokenizer adds stands for.
bool ByteCutter::tokenise(std::string_view given, std::size_t offset, std::string_view added,
                          std::vector<CutToken>& out, Status& status) const {
  const Result<std::vector<Token>> tokens =
      vocabulary_->tokenize(given, /*add_special=*/false, /*parse_special=*/false);
  if (!tokens.ok()) {
    status = tokens.status().with_context("the draft model's tokenizer");
    return false;
  }
  // What the tokens spell: a space that was added, then `given`.
  const std::size_t n_space = adds_space_ ? 1 : 0;
  std::size_t at = 0;
  for (const Token token : *tokens) {
    for (const char c : vocabulary_->piece(token)) {
      const char wanted = at < n_space                  ? ' '
                          : at - n_space < given.size() ? given[at - n_space]
                                                        : 0;
      if (c != wanted || at >= n_space + given.size()) return false;
      ++at;
    }
  }
  if (at != n_space + given.size()) return false;
  at = 0;
  for (const Token token : *tokens) {
    at += vocabulary_->piece(token).size();
    out.push_back({.token = token, .end = offset + at - std::min(at, added.size())});
  }
  return true;
}

void ByteCutter::match(std::string_view bytes, std::size_t offset,
                       std::vector<CutToken>& out) const {
  while (!bytes.empty()) {
    const Token token = pieces_.longest(bytes);
    const std::size_t n = token == kNoToken ? 1 : vocabulary_->piece(token).size();
    offset += n;
    bytes.remove_prefix(n);
    if (token != kNoToken) {
      out.push_back({.token = token, .end = offset});
    } else if (!out.empty()) {
      out.back().end = offset;
    }
  }
}

}  // namespace outrider
