// What the tests of `outrider chat` share: how it is called, and what it saved.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/tiny_gguf.h"
#include "tests/cli_process.h"

namespace outrider::testing {

// `outrider chat` on the tiny pair, with a history of its own.
inline CliCall chat_call(const std::vector<std::string>& more, const std::string& input = "") {
  const CliModels& models = cli_models();
  std::vector<std::string> arguments = {"chat", "-m", models.target, "-d",     models.draft, "-c",
                                        "2048", "-n", "24",          "--seed", "7"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  CliCall call = models.folder.call(arguments);
  call.environment["XDG_STATE_HOME"] = models.folder.path("state");
  call.input = input;
  return call;
}

// The messages of a saved conversation, "user:hello".
inline std::vector<std::string> saved(const std::string& path) {
  const json::Parsed parsed = json::parse(read_file(path));
  EXPECT_TRUE(parsed.ok()) << parsed.error;
  std::vector<std::string> all;
  if (!parsed.ok()) return all;
  for (const json::Json& message : (*parsed.value)["messages"]) {
    all.push_back(message["role"].get<std::string>() + ":" + message["content"].get<std::string>());
  }
  return all;
}

// Whose template has thoughts apart.
inline std::string thinking_model(const CliFolder& folder) {
  TinyModelOptions options;
  options.vocabulary.template_text =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n"
      "{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  EXPECT_TRUE(write_tiny_gguf(folder.path("thinks.gguf"), options).ok());
  return folder.path("thinks.gguf");
}

inline CliCall thinking_call(const CliFolder& folder, const std::vector<std::string>& more) {
  const std::string grammar = folder.write("g", R"(root ::= "<think>\nHm.\n</think>\n\nYes.")");
  std::vector<std::string> arguments = {"chat",      "-m",    thinking_model(folder),
                                        "--grammar", grammar, "--no-history"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return folder.call(arguments);
}

}  // namespace outrider::testing
