// For the targets that need a vocabulary of llama.cpp's: one of a few hundred tokens.
#pragma once

#include <memory>
#include <string>

#include "fuzz/targets.h"
#include "llama/files/model_file.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::fuzz {

// `chat_template`: its Jinja source; empty: ChatML. A source that the file cannot hold is an error.
inline Result<std::shared_ptr<llama::ModelFile>> load_tiny_vocabulary(
    const std::string& chat_template) {
  static const testing::TempDir folder;
  testing::TinyModelOptions options;
  options.n_layer = 1;  // of which nothing is computed
  options.n_ff = 64;
  options.vocabulary.tokenizer = testing::TinyTokenizer::kBpe;
  options.vocabulary.template_text = chat_template;
  const std::string path = folder.file("vocabulary.gguf");
  OUTRIDER_RETURN_IF_ERROR(testing::write_tiny_gguf(path, options));
  return llama::ModelFile::load_vocabulary(path, LoadHooks{});
}

}  // namespace outrider::fuzz
