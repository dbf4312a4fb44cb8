// Where outrider run takes its prompt from, and what of it is the prompt.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

constexpr const char* kPrompt = "Once upon a time";

// `outrider run` on the tiny target.
CliCall run_call(const std::vector<std::string>& more) {
  const CliModels& models = cli_models();
  std::vector<std::string> arguments = {"run", "-m", models.target, "-c", "1024", "--seed", "7"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return models.folder.call(arguments);
}

CliResult run(const std::vector<std::string>& more) { return run_cli(run_call(more)); }

TEST(CliRun, ThePromptMayComeFromAFileOrStandardInput) {
  const CliFolder folder;
  const std::string text = run({"-p", kPrompt, "-n", "12"}).out;
  EXPECT_EQ(run({"-f", folder.write("p.txt", kPrompt), "-n", "12"}).out, text);
  EXPECT_EQ(run({"-f", folder.write("p.txt", std::string(kPrompt) + "\n"), "-n", "12"}).out, text)
      << "one newline at the end is not part of it";
  CliCall call = run_call({"-", "-n", "12"});
  call.input = std::string(kPrompt) + "\n";
  EXPECT_EQ(run_cli(call).out, text);
  EXPECT_NE(run({"--chat", "-p", kPrompt, "-n", "12"}).out, text) << "the template changes it";
  EXPECT_EQ(run({"-n", "12", "-p", "-n"}).exit_code, 0) << "a prompt may look like an option";
}

TEST(CliRun, WhatAnEditorOfWindowsPutsAroundAPromptIsNoPartOfIt) {
  const CliFolder folder;
  const std::vector<std::string> whole = {"-p", kPrompt, "-n", "12", "--json"};
  const json::Json plain = run(whole).object();
  const auto same = [&](const json::Json& object) {
    return object["text"] == plain["text"] &&
           object["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"];
  };
  const std::string prompt = kPrompt;
  const std::string mark = "\xEF\xBB\xBF";
  for (const std::string& text : {prompt + "\r\n", mark + prompt, mark + prompt + "\r\n"}) {
    EXPECT_TRUE(same(run({"-f", folder.write("p.txt", text), "-n", "12", "--json"}).object()));
    CliCall call = run_call({"-", "-n", "12", "--json"});
    call.input = text;
    EXPECT_TRUE(same(run_cli(call).object()));
  }
  // One newline only, and no '\r' without one.
  for (const std::string end : {"\r\n\r\n", "\r", "\n\r"}) {
    const std::string file = folder.write("p.txt", prompt + end);
    EXPECT_FALSE(same(run({"-f", file, "-n", "12", "--json"}).object()));
  }
}

}  // namespace
}  // namespace outrider::testing
