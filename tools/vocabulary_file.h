// The vocabulary of a model file, for commands that need no model.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "model/vocabulary.h"
#include "store/tokenizer_id.h"
#include "tools/terminal.h"

namespace outrider::tools {

struct VocabularyFile {
  std::shared_ptr<const Vocabulary> vocabulary;  // shares the model's life
  TokenizerId id;
};

// Reads a GGUF file's header and vocabulary; its weights are mapped, not read. Errors name it;
// kCancelled by a signal. No progress is shown afterwards.
Result<VocabularyFile> read_vocabulary(const std::string& path, Terminal& terminal);

}  // namespace outrider::tools
