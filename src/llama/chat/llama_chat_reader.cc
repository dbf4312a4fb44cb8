#include "llama/chat/llama_chat_reader.h"

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace outrider::llama {
namespace {

ChatReply reply_of(common_chat_msg msg) {
  ChatReply reply;
  reply.content = std::move(msg.content);
  reply.reasoning = std::move(msg.reasoning_content);
  for (common_chat_tool_call& call : msg.tool_calls) {
    reply.tool_calls.push_back({.id = std::move(call.id),
                                .name = std::move(call.name),
                                .arguments = std::move(call.arguments)});
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

class LlamaChatReader : public ChatReader {
 public:
  LlamaChatReader(const common_chat_params& params, bool continued) : params_(params) {
    params_.reasoning_format = COMMON_REASONING_FORMAT_AUTO;
    if (!params.parser.empty()) params_.parser.load(params.parser);
    if (continued) given_ = reply_of(common_chat_parse("", /*is_partial=*/true, params_));
  }

  ChatReply read(std::string_view text, bool complete) const override {
    // llama-common forgets what it has read where a byte is none of a character's.
    if (!complete) text = text.substr(0, complete_utf8_prefix(text));
    const std::string valid = with_replacements(text);
    try {
      ChatReply reply = reply_of(common_chat_parse(valid, !complete, params_));
      reply.content.erase(0, given_.content.size());
      reply.reasoning.erase(0, given_.reasoning.size());
      return reply;
    } catch (const std::exception&) {
      return {.content = valid, .reasoning = "", .tool_calls = {}};
    }
  }

  ChatReply given() const override { return given_; }

 private:
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
