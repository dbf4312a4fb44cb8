// How an answer is generated and printed: for `run` once, for `chat` after each message.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "serve/completion_result.h"
#include "tools/local_runtime.h"
#include "tools/options/model_options.h"
#include "tools/options/request_options.h"
#include "tools/terminal.h"
#include "tools/text_output.h"

namespace outrider::tools {

struct AnswerArguments {
  const OutputArguments& output;  // the command's
  bool stats = false;
  std::string color = "never";
};

// Adds --stats and --color under "Output". `arguments` must outlive the parsing.
void add_answer_options(CLI::App& app, AnswerArguments& arguments);

// The request of the options, its drafters named, so that n-gram files count that are not there
// yet. The prompt is the caller's to add.
CompletionRequest named_request(const RequestArguments& arguments, const ModelArguments& model,
                                const Target& target);

enum class Apart {
  kNothing,   // the text as it is said
  kThoughts,  // what the model thinks is told apart; hidden where stdout is no terminal
};

// Generates the answer, and prints it as it comes; with --json nothing but its result object, at
// the end. A signal, and a reader that goes away, end it with what there is. What `output` could
// not write is in its status(). Errors: Runtime::start's. A failure on the way is in the
// completion.
Result<std::shared_ptr<const CompletionResult>> print_answer(
    LocalRuntime& local, Terminal& terminal, const AnswerArguments& arguments,
    CompletionRequest request, TextOutput& output, Apart apart = Apart::kNothing);

// The result object of --json, a line.
std::string result_line(const CompletionResult& result);
// The line in its place where there is none: {"error":{"code","message","field"}}, "field" where
// the error has one.
std::string error_line(const Status& status);

// The table of --stats. `width`: the widest step asked for.
std::string answer_stats(const CompletionResult& result, const LocalRuntime& local,
                         std::int32_t width);

}  // namespace outrider::tools
