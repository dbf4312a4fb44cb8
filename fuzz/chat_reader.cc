// Answers that a model may give, and others, read in parts: whatever the bytes, there is a reply.
// That what is shown only grows holds for the formats of chat_formats_test.cc: of a call that its
// grammar would not have let through, llama-common may take back what it has read, and
// http/completion/answer.h does not.
#include <array>
#include <memory>
#include <string>

#include "fuzz/tiny_file.h"
#include "testing/chat_answers.h"

namespace outrider::fuzz {
namespace {

// Two of llama-common's ways to mark calls and reasoning.
constexpr std::array<const char*, 2> kTemplates = {
    R"({%- if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools>
For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
{%- endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% if m.tool_calls %}{% for call in m.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %})",
    R"({% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %})"};

std::shared_ptr<const ChatReader> make_reader(const char* source) {
  const Result<std::shared_ptr<llama::ModelFile>> file = load_tiny_vocabulary(source);
  if (!file.ok()) violated(file.status().message());
  ChatOptions chat;
  chat.tools = testing::chat_answer_tools();
  const Result<ChatPrompt> prompt =
      (*file)->vocabulary().chat_prompt({{.role = "user", .content = "Hello?"}}, chat);
  if (!prompt.ok()) violated(prompt.status().message());
  return prompt->reader;
}

}  // namespace

void chat_reader(Bytes input) {
  static const std::array<std::shared_ptr<const ChatReader>, 2> readers = {
      make_reader(kTemplates[0]), make_reader(kTemplates[1])};
  Reader bytes(input);
  const ChatReader& reader = *readers[bytes.below(readers.size())];
  const std::string_view answer = text(bytes.rest()).substr(0, 2000);
  const std::size_t step = 1 + answer.size() / 40;
  for (std::size_t end = 0; end < answer.size(); end += step) {
    static_cast<void>(reader.read(answer.substr(0, end), /*complete=*/false));
  }
  static_cast<void>(reader.read(answer, /*complete=*/true));
}

}  // namespace outrider::fuzz
