// From what a client gives to the tokens that are read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "request/completion_request.h"
#include "serve/loader.h"

namespace outrider {

struct Prompt {
  std::vector<Token> tokens;                 // as they will be read
  std::int64_t n_asked = 0;                  // before they were cut
  std::map<Token, std::string> shown;        // Request::shown
  std::shared_ptr<const ChatReader> reader;  // of the answer; null: there are no messages
};

// What the parts give together; `add_special`: with BOS and the like in front of the first, when it
// is a text. `parse_special`: control tokens may be spelled out in texts. Errors:
// kInvalidArgument.
Result<std::vector<Token>> tokenize_parts(const std::vector<PromptPart>& parts,
                                          const Vocabulary& vocabulary, bool add_special = true,
                                          bool parse_special = true);

// The tokens of all of it, however many: as make_prompt(), but nothing is cut or refused for its
// length.
Result<Prompt> read_prompt(CompletionRequest& request, const Target& target);

// A text's control tokens may be spelled out; BOS and the like are put in front of the first text
// where the model wants them (a prompt that begins with an id stays as it is). With shift_keep, a
// prompt that leaves no room is cut. What the template of a conversation asks for goes into
// `request`: its grammar takes the place of the constraint there, its stop texts are added.
// REQUIRES: either a prompt or messages.
// Errors: kInvalidArgument (not UTF-8, an id outside the vocabulary);
// kUnsupported (messages without a template).
Result<Prompt> make_prompt(CompletionRequest& request, const Target& target);

}  // namespace outrider
