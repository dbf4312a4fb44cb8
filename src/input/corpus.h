// Texts to learn from: plain files, and JSON lines with prompts, turns or conversations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/watcher.h"
#include "json/json.h"
#include "model/vocabulary.h"

namespace outrider {

// The texts of a file: of one whose name ends in ".jsonl", for each line its `prompt`, its `turns`
// joined by newlines, or the contents of its `messages`, whoever wrote them, joined by newlines; of
// any other file (or "-", standard input) its whole contents. All are valid UTF-8.
// Errors name file, line and field; those of read_all(), which the watcher may end.
Result<std::vector<std::string>> read_corpus(const std::string& path, const Watcher& watcher = {});

// How texts become tokens.
enum class CorpusForm {
  kPlain,    // nothing in a text becomes a control token, and nothing is put in front
  kAsLlama,  // as llama.cpp's tools: without a newline at the end, with special tokens spelled out
             // or not, and what the vocabulary wants in front
};

// Calls `take` with the tokens of each text of `paths`, in order. The watcher hears how far, under
// `title`. Errors: read_corpus()'s; the vocabulary's and those of `take`, with the file;
// kCancelled.
Status for_each_text(const std::vector<std::string>& paths, const Vocabulary& vocabulary,
                     CorpusForm form, const Watcher& watcher, const std::string& title,
                     const std::function<Status(const std::vector<Token>&)>& take);

// The `turns` of a line, joined by newlines, behind `text`. "", or what is wrong with them.
std::string take_turns(const json::Json& turns, std::string& text);

// The `messages` of a line, each with a role and a content. "", or what is wrong with them.
std::string take_messages(const json::Json& messages, std::vector<ChatMessage>& list);

}  // namespace outrider
