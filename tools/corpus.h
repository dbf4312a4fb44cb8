// Texts to learn from: plain files, and JSON lines with prompts, turns or conversations.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace outrider::tools {

// The texts of a file: of one whose name ends in ".jsonl", for each line its `prompt`, its `turns`
// joined by newlines, or the contents of its `messages`, whoever wrote them, joined by newlines; of
// any other file (or "-", standard input) its whole contents. All are valid UTF-8.
// Errors name file, line and field.
Result<std::vector<std::string>> read_corpus(const std::string& path);

}  // namespace outrider::tools
