#include "tools/answer.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "api/completion_json.h"
#include "json/json.h"
#include "run/stats_table.h"
#include "tools/answer_text.h"

namespace outrider::tools {

void add_answer_options(CLI::App& app, AnswerArguments& a) {
  OptionGroup output(app, "Output");
  output.add_switch("--stats", a.stats, "print a table of speeds, counts and times at the end");
  output.add_flag_choice(
      "--color", a.color, {"never", "auto", "always"}, "auto",
      "colour the tokens that were guessed by who guessed them: auto, which is "
      "meant without a value, on a terminal unless NO_COLOR is set; always; never");
}

CompletionRequest named_request(const RequestArguments& arguments, const ModelArguments& model,
                                const Target& target) {
  CompletionRequest request = arguments.request;
  DrafterPlan drafters = chosen_drafters(arguments, model, &target);
  if (!drafters.empty()) request.drafters = std::move(drafters);  // nobody: the result says why
  return request;
}

Result<std::shared_ptr<const CompletionResult>> print_answer(LocalRuntime& local,
                                                             Terminal& terminal,
                                                             const AnswerArguments& arguments,
                                                             CompletionRequest request,
                                                             TextOutput& output, Apart apart) {
  const bool to_terminal = isatty(STDOUT_FILENO) == 1 || arguments.color == "always";
  const Thoughts thoughts = !to_terminal    ? Thoughts::kHidden
                            : output.dims() ? Thoughts::kDimmed
                                            : Thoughts::kMarked;
  std::optional<AnswerText> text;
  const bool json = arguments.output.json;
  Result<std::shared_ptr<const CompletionResult>> result = generate(
      local.harness(), std::move(request),
      [&](const std::vector<SaidToken>& tokens) {
        terminal.progress.clear();
        if (!json) text->add(tokens);
        return !output.failed();
      },
      [&](const StartedCompletion& started) {
        text.emplace(output, apart == Apart::kThoughts ? started.reader : nullptr, thoughts);
      });
  terminal.progress.clear();
  if (!json && result.ok()) text->finish(**result);
  if (json && result.ok()) output.write(result_line(**result));
  return result;
}

std::string result_line(const CompletionResult& result) {
  return json::encode(api::result_json(result)) + "\n";
}

std::string error_line(const Status& status) {
  json::Json error = api::error_or_null(status);
  if (!status.field().empty()) error["field"] = status.field();
  return json::encode(json::Json{{"error", std::move(error)}}) + "\n";
}

std::string answer_stats(const CompletionResult& result, const LocalRuntime& local,
                         std::int32_t width) {
  return stats_table(result.completion, result.exactness, result.kernels,
                     std::min(width, local.target().capabilities().max_width));
}

}  // namespace outrider::tools
