// A model's chat template, and a conversation that it writes: the template, a NUL, the last
// message's text. An even number of bytes: tools are offered.
#include <memory>
#include <string>

#include "fuzz/tiny_file.h"
#include "llama/chat/template_budget.h"
#include "testing/chat_answers.h"

namespace outrider::fuzz {

void chat_template(Bytes input) {
  const std::string_view all = text(input);
  const std::string_view source = all.substr(0, all.find('\0'));
  const std::string_view said = all.substr(std::min(all.size(), source.size() + 1));
  // The product's would take libFuzzer's time for an input, with sanitizers.
  const llama::ScopedTemplateLimits limits({.operations = 50'000, .seconds = 4.0});
  const Result<std::shared_ptr<llama::ModelFile>> file = load_tiny_vocabulary(std::string(source));
  if (!file.ok()) return;  // what no file can hold
  const Vocabulary& vocabulary = (*file)->vocabulary();
  static_cast<void>(vocabulary.chat_template_caps());
  ChatOptions chat;
  if (input.size() % 2 == 0) chat.tools = testing::chat_answer_tools();
  const Result<ChatPrompt> prompt =
      vocabulary.chat_prompt({{.role = "system", .content = "Be brief."},
                              {.role = "user", .content = "Hello?"},
                              {.role = "assistant", .content = "Hi."},
                              {.role = "user", .content = std::string(said)}},
                             chat);
  if (!prompt.ok()) {
    if (prompt.status().message().empty()) violated("an error that says nothing");
    return;
  }
  if (prompt->reader == nullptr) violated("a prompt whose answer nobody reads");
  static_cast<void>(prompt->reader->read(said, /*complete=*/true));
}

}  // namespace outrider::fuzz
