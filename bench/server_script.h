// A model that says what a reasoning agent says, in the format of a real template, which
// llama-common reads: it thinks for half of the answer, says something, and calls a tool with a
// long text for the rest. Its passes cost nothing but take their time, since a longer answer is
// read the less often the faster it comes (http/completion/answer.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "llama/files/model_file.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/fake_loader.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::http {

// Tokens 0 to 255 are bytes, which prompts are of; those behind them are said.
enum Said : Token { kThink = 256, kThought, kCall, kEnd, kWord, kComma, kLine, kSaidEnd };
inline constexpr std::int32_t kScriptTokens = kSaidEnd;

inline constexpr std::chrono::milliseconds kPass{5};  // a quick model's

inline std::map<Token, std::string> script_pieces() {
  std::map<Token, std::string> pieces = {
      {kThink, "<think>\n"},
      {kThought, "\n</think>\n\n"},
      {kCall, "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"text\": \""},
      {kEnd, "\"}}\n</tool_call>"},
      {kWord, " word"},
      {kComma, ","},
      {kLine, " and more"}};
  for (Token byte = 0; byte < 256; ++byte) pieces[byte] = std::string(1, static_cast<char>(byte));
  return pieces;
}

inline Token said_at(std::size_t place, std::size_t n) {
  if (place == 0) return kThink;
  if (place == n / 2) return kThought;
  if (place == n * 5 / 8) return kCall;
  if (place + 1 == n) return kEnd;
  return place % 7 == 3 ? kComma : place % 11 == 5 ? kLine : kWord;
}

// The script of `n` tokens, whatever the prompt.
inline testing::RowFunction script_rows(std::size_t n) {
  return [n](std::span<const Token> context) {
    std::size_t said = 0;
    while (said < context.size() && context[context.size() - 1 - said] >= kThink) ++said;
    std::vector<float> row(kScriptTokens, -10.0F);
    row[static_cast<std::size_t>(said_at(said, n))] = 10.0F;
    return row;
  };
}

// Conversations by the template of a real model.
class TemplateVocabulary : public testing::FakeVocabulary {
 public:
  // `path`: of the template. Ends the process where it cannot be read.
  explicit TemplateVocabulary(const std::string& path)
      : FakeVocabulary(kScriptTokens, kNoToken, script_pieces()) {
    use_chat();
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    testing::TinyModelOptions options;
    options.vocabulary.template_text = text.str();
    const Status written = testing::write_tiny_gguf(folder_.file("model.gguf"), options);
    if (!in.good() || !written.ok()) std::abort();
    file_ = llama::ModelFile::load_vocabulary(folder_.file("model.gguf"), LoadHooks{}).value();
  }
  Result<ChatPrompt> chat_prompt(const std::vector<ChatMessage>& messages,
                                 const ChatOptions& options) const override {
    return file_->vocabulary().chat_prompt(messages, options);
  }

 private:
  testing::TempDir folder_;
  std::shared_ptr<llama::ModelFile> file_;
};

class ScriptTarget : public testing::FakeTarget {
 public:
  ScriptTarget(const ModelOptions& options, std::atomic<std::int64_t>& n_begun,
               const std::string& path, std::size_t n)
      : FakeTarget(file(), options, n_begun),
        vocabulary_(path),
        model_(capabilities_of(file(), options), script_rows(n)) {
    model_.on_evaluated([](std::int64_t) { std::this_thread::sleep_for(kPass); });
  }
  LanguageModel& model() override { return model_; }
  const Capabilities& capabilities() const override { return model_.capabilities(); }
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  static testing::FakeFile file() { return {.n_vocab = kScriptTokens}; }

  TemplateVocabulary vocabulary_;
  testing::FakeModel model_;
};

// Its targets say a script of `n` tokens, in the format of the template at `path`.
class ScriptLoader : public testing::FakeLoader {
 public:
  ScriptLoader(std::string path, std::size_t n) : path_(std::move(path)), n_(n) {
    add("target", {});  // for whoever asks how large it is
  }
  Result<std::unique_ptr<Target>> load_target(const ModelOptions& options,
                                              const LoadHooks& /*hooks*/) override {
    return std::unique_ptr<Target>(std::make_unique<ScriptTarget>(options, n_begun_, path_, n_));
  }

 private:
  const std::string path_;
  const std::size_t n_;
  std::atomic<std::int64_t> n_begun_{0};
};

}  // namespace outrider::http
