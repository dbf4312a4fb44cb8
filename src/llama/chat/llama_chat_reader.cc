#include "llama/chat/llama_chat_reader.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "json/valid_strings.h"

namespace outrider::llama {
namespace {

// llama-common takes a quoted text of LFM2's calls for a JSON string as it is, with its line breaks
// and escapes (common/chat-peg-parser.cpp, normalize_quotes_to_json).
ChatReply reply_of(common_chat_msg msg) {
  ChatReply reply;
  reply.content = std::move(msg.content);
  reply.reasoning = std::move(msg.reasoning_content);
  for (common_chat_tool_call& call : msg.tool_calls) {
    reply.tool_calls.push_back({.id = std::move(call.id),
                                .name = std::move(call.name),
                                .arguments = json::valid_strings(call.arguments)});
  }
  return reply;
}

// A format without any marks: what is said is content. Reading it takes no parser, which would look
// at the whole text for each token.
class PlainReader : public ChatReader {
 public:
  explicit PlainReader(ChatReply given) : given_(std::move(given)) {}

  ChatReply read(std::string_view text, bool /*complete*/) const override {
    return {.content = std::string(text), .reasoning = "", .tool_calls = {}};
  }
  ChatReply given() const override { return given_; }

 private:
  const ChatReply given_;
};

// Whether `reader` takes everything for content: texts as they are said, brackets of all kinds, and
// the texts that the format knows.
bool is_plain(const ChatReader& reader, const common_chat_params& params) {
  std::vector<std::string> samples = {"a", " a\n\n b ", "<a></a>{\"name\": [1]}[a](b)\n", "\n"};
  for (const std::string& known : params.preserved_tokens) samples.push_back(known + "a" + known);
  for (const std::string& sample : samples) {
    for (std::size_t n = 0; n <= sample.size() + 1; ++n) {
      const std::string text = sample.substr(0, n);
      const ChatReply reply = reader.read(text, /*complete=*/n > sample.size());
      const bool same = reply.content == text && reply.reasoning.empty();
      if (!same || !reply.tool_calls.empty()) return false;
    }
  }
  return true;
}

// Of Unicode's private area (U+10FFFD): no template's mark holds it.
constexpr std::string_view kBehind = "\xF4\x8F\xBF\xBD";

bool same_calls(const std::vector<ToolCall>& a, const std::vector<ToolCall>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ToolCall& x, const ToolCall& y) {
                      return x.id == y.id && x.name == y.name && x.arguments == y.arguments;
                    });
}

// Whether `more`, which was read from a text with kBehind behind it, says what `reply` does, read
// from the text alone, and more words in `where`, at whose end kBehind was: it is taken off.
bool says_more(const ChatReply& reply, std::string ChatReply::*where, ChatReply& more) {
  const std::string& before = reply.*where;
  std::string& now = more.*where;
  if (!now.ends_with(kBehind)) return false;
  now.resize(now.size() - kBehind.size());
  return now.starts_with(before) &&
         now.find_first_not_of(" \n\r\t", before.size()) != std::string::npos;
}

std::size_t common_start(const std::string& a, const std::string& b) {
  const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(ends.first - a.begin());
}

class LlamaChatReader : public ChatReader {
 public:
  LlamaChatReader(const common_chat_params& params, bool continued) : params_(params) {
    params_.reasoning_format = COMMON_REASONING_FORMAT_AUTO;
    if (!params.parser.empty()) params_.parser.load(params.parser);
    if (continued) given_ = with_last_words("", parse("", /*partial=*/true));
  }

  ChatReply read(std::string_view text, bool complete) const override {
    // llama-common forgets what it has read where a byte is none of a character's.
    if (!complete) text = text.substr(0, complete_utf8_prefix(text));
    const std::string valid = with_replacements(text);
    try {
      ChatReply reply = parse(valid, !complete);
      if (complete) reply = with_last_words(valid, std::move(reply));
      // Not always all of it: its end may have been the beginning of a mark.
      reply.content.erase(0, common_start(given_.content, reply.content));
      reply.reasoning.erase(0, common_start(given_.reasoning, reply.reasoning));
      return reply;
    } catch (const std::exception&) {
      return {.content = valid, .reasoning = "", .tool_calls = {}};
    }
  }

  ChatReply given() const override { return given_; }

 private:
  ChatReply parse(const std::string& text, bool partial) const {
    return reply_of(common_chat_parse(text, partial, params_));
  }

  // llama-common stops before what may begin a mark where a text ends, also where nothing follows
  // (common/peg-parser.cpp, until): "a <" is read as "a ". With a character behind it, it does not.
  // `reply`: what the text was read as. What ends with a call, or a whole mark, stays as it is.
  ChatReply with_last_words(const std::string& text, ChatReply reply) const {
    ChatReply more;
    try {
      more = parse(text + std::string(kBehind), /*partial=*/true);
    } catch (const std::exception&) {
      return reply;
    }
    if (!same_calls(reply.tool_calls, more.tool_calls)) return reply;
    const bool content = more.reasoning == reply.reasoning;
    if (!content && more.content != reply.content) return reply;
    const bool grown =
        says_more(reply, content ? &ChatReply::content : &ChatReply::reasoning, more);
    return grown ? more : reply;
  }

  common_chat_parser_params params_;
  ChatReply given_;  // what the prompt has said of the answer
};

}  // namespace

std::shared_ptr<const ChatReader> make_chat_reader(const common_chat_params& params,
                                                   bool continued) {
  std::shared_ptr<const ChatReader> reader =
      std::make_shared<const LlamaChatReader>(params, continued);
  const bool may_be_plain = !params.supports_thinking && params.grammar.empty();
  if (may_be_plain && is_plain(*reader, params)) {
    return std::make_shared<const PlainReader>(reader->given());
  }
  return reader;
}

}  // namespace outrider::llama
