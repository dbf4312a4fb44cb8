// Texts to replay: a plain text, or JSON lines.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/watcher.h"
#include "model/vocabulary.h"

namespace outrider::lab {

struct ReplayText {
  std::vector<Token> tokens;  // at least 1
  // How many of them were there before a model said the rest: a conversation's prompt; 1 for texts.
  std::size_t given = 1;
};

struct ReplayTexts {
  bool plain = false;  // one plain text, as llama.cpp's tools take it
  std::vector<ReplayText> texts;
  std::vector<std::string> notes;  // what the user should know
};

// Reads `path` ("-": standard input). A file whose name ends in .jsonl, or that begins with '{',
// holds JSON lines, each with `messages` (one text for each of the assistant's turns, its prompt
// made by the model's chat template), `turns` (texts, joined by newlines), `prompt` or `text`.
// Anything else is one text, less one newline at its end. Special tokens may be spelled out, and
// what the vocabulary puts in front of a text comes in front, as in llama.cpp's tools.
// Errors name file, line and field; a corpus without tokens is an error; those of read_all().
Result<ReplayTexts> read_replay_texts(const std::string& path, const Vocabulary& vocabulary,
                                      const Watcher& watcher = {});

}  // namespace outrider::lab
