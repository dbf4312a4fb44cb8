// Files: a prompt's text, JSON lines with many prompts, and a result to be written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/watcher.h"
#include "model/vocabulary.h"

namespace outrider {

// All bytes of a file, or of standard input for "-". Errors name the file: kNotFound;
// kInvalidArgument for a folder; kInternal when reading fails; kCancelled when `watcher` ends it,
// also while it waits for what a pipe or a terminal will say.
Result<std::string> read_all(const std::string& path, const Watcher& watcher = {});

// Replaces the contents of `path`. Errors name the file and the reason.
Status write_file(const std::string& path, std::string_view contents);
// Whether it can, so that a mistake in a name is found before the work is. The file stays as it is.
Status check_write_file(const std::string& path);

// One prompt of a prompt file.
struct FilePrompt {
  std::string id;                     // question_id or id when the line has one, else the line
  std::string category;               // empty when there is none
  std::string text;                   // from `turns` (the first) or `prompt`
  std::vector<ChatMessage> messages;  // from `messages`; then `text` is empty
};

// Reads a file of JSON lines, each an object with `turns` (texts, as in Spec-Bench; the first is
// taken), `prompt` (a text) or `messages` ([{"role","content"}], up to the last that is not the
// assistant's). At most `limit` prompts (0: all).
// Errors name file, line and field; a file without prompts is an error.
Result<std::vector<FilePrompt>> read_prompt_file(const std::string& path, std::size_t limit);

}  // namespace outrider
