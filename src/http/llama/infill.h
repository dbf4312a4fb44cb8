// POST /infill: what belongs between two parts of a text, for editors. llama-server's body:
//
//   input_prefix  the text before the cursor        input_suffix  the text behind it
//   input_extra   [{"filename","text"}], of other files          prompt  more of what is before it
//
// and the fields of /completion (llama_body.h). The model gets, by its fill-in tokens (Vocabulary::
// special()), as repositories are written for such models (arXiv 2409.12186):
//
//   [repository]myproject\n [file]name\n text ... [file]filename\n
//   [prefix]...prompt [suffix]... [middle]
//
// with "--- snippet ---" on a line of its own in front of each extra file where there is no token
// for files. So llama-server's code has it (format_prompt_infill); its README puts the prompt
// behind [middle]. Where it is more than the context leaves beside the answer, the prefix keeps its
// end and the suffix its beginning, three to one; the extra files get the rest, the last ones
// first.
//
// The sampler "infill", which editors name in "samplers", is left out; the reply says so in
// kIgnoredHeader ("samplers.infill").
//
// Tested by infill_test.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "http/access/server_options.h"
#include "http/completion/completion_task.h"
#include "json/json.h"
#include "model/vocabulary.h"
#include "serve/loader.h"

namespace outrider::http {

// Errors: kUnsupported for a model without fill-in tokens; kInvalidArgument with the field.
Result<CompletionTask> read_infill_task(json::Json body, const ServerOptions& options,
                                        const Target& target);

// The parts of an infill as tokens.
struct InfillParts {
  std::vector<Token> front;  // what tokenize(add_special) puts there
  std::vector<Token> extra;  // other files, and the names of all
  std::vector<Token> prefix;
  std::vector<Token> suffix;
  std::vector<Token> prompt;
};

// All of them in order with the tokens between them, cut to at most `room` tokens: `front`,
// `prompt` and the three tokens are never cut, so it may be more where `room` is less than these.
std::vector<Token> join_infill(InfillParts parts, const SpecialTokens& special, std::int64_t room);

}  // namespace outrider::http
