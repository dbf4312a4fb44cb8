// The vocabulary of a model file, for commands that need no model.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "model/vocabulary.h"
#include "store/tokenizer_id.h"
#include "tools/terminal.h"

namespace outrider::tools {

class VocabularyFile {
 public:
  // Reads a GGUF file's header and vocabulary; its weights are mapped, not read. Errors name it;
  // kCancelled by a signal. No progress is shown afterwards.
  static Result<VocabularyFile> open(const std::string& path, Terminal& terminal);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const TokenizerId& id() const { return id_; }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;  // shares the model's life
  TokenizerId id_;
};

}  // namespace outrider::tools
