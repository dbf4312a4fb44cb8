// A vocabulary with the chat template of a real model, of those in llama.cpp's models/templates.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "llama/files/model_file.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/chat_answers.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {

class ChatVocabularies : public ::testing::Test {
 protected:
  // By the template's file, without ".jinja"; `control`: texts that are control tokens.
  const LlamaVocabulary& vocabulary(const std::string& name,
                                    std::vector<std::string> control = {}) {
    std::ifstream in(std::string(OUTRIDER_CHAT_TEMPLATES) + "/" + name + ".jinja");
    EXPECT_TRUE(in.good()) << name;
    std::stringstream text;
    text << in.rdbuf();
    const std::string file = control.empty() ? name : name + "-control";
    return with_template(file, text.str(), std::move(control));
  }

  const LlamaVocabulary& with_template(const std::string& name, const std::string& source,
                                       std::vector<std::string> control = {}) {
    std::shared_ptr<ModelFile>& file = files_[name];
    if (file == nullptr) {
      testing::TinyModelOptions options;
      options.vocabulary.tokenizer = testing::TinyTokenizer::kBpe;  // keeps U+2581 as it is
      options.vocabulary.template_text = source;
      options.vocabulary.control_texts = std::move(control);
      EXPECT_TRUE(testing::write_tiny_gguf(dir_.file(name), options).ok());
      Result<std::shared_ptr<ModelFile>> loaded =
          ModelFile::load_vocabulary(dir_.file(name), LoadHooks{});
      EXPECT_TRUE(loaded.ok()) << loaded.status().message();
      file = *loaded;
    }
    return file->vocabulary();
  }

 private:
  testing::TempDir dir_;
  std::map<std::string, std::shared_ptr<ModelFile>> files_;
};

}  // namespace outrider::llama
