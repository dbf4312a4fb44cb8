// outrider run: one prompt, one text.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "draft/ngram/ngram_file.h"
#include "input/prompt_file.h"
#include "serve/prompt.h"
#include "store/atomic_file.h"
#include "tools/answer.h"
#include "tools/command.h"
#include "tools/local_runtime.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"
#include "tools/options/request_options.h"
#include "tools/options/usage.h"
#include "tools/output_file.h"
#include "tools/report.h"
#include "tools/text_output.h"

namespace outrider::tools {
namespace {

constexpr const char* kRunDetails =
    R"(The text goes to stdout as it is accepted, without the prompt; everything else goes to stderr.
Ctrl-C ends it with what there is, statistics included, and exit code 130; a second one kills it.)";

// Whole, or not at all with the old file as it was. A device, a pipe and a file in a folder where
// none can be made are written as they are.
Status write_result(const std::string& path, const std::string& line) {
  const StatusCode beside = check_writable(path).code();
  const bool may_replace = beside == StatusCode::kOk || beside == StatusCode::kResourceExhausted;
  return may_replace ? write_whole_file(path, line) : write_file(path, line);
}

// What editors put around a text that is none of it: one newline at its end, which on Windows is
// "\r\n", and the mark of UTF-8 at its beginning.
void drop_frame(std::string& text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  if (!text.ends_with('\n')) return;
  text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
}

class RunCommand : public Command {
 public:
  RunCommand() : Command("run", "generate text from a prompt", kRunDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  OptionFacts facts() const override { return {.drafters = asked_drafters(request_, model_)}; }
  Status prepare() override;
  ModelArguments* models() override { return &model_; }
  Result<int> run() override;

 private:
  bool reads_standard_input() const { return standard_input_ || file_ == "-"; }
  Status read_prompt();
  // That --result replaces no file that is read.
  Status check_result() const;
  CompletionRequest make_request(const Target& target) const;
  // The file that learns this text; none without the drafter.
  std::optional<std::string> learned_file() const {
    return dynamic_file(request_.files, chosen_drafters(request_, model_));
  }
  Status save_ngrams(const Target& target, const Completion& completion) const;
  Result<int> report(const CompletionResult& result, const LocalRuntime& local,
                     const SignalWatch& signals, const TextOutput& output) const;

  std::optional<std::string> prompt_;
  std::optional<std::string> file_;
  std::optional<std::string> standard_input_;  // "-"
  bool chat_ = false;
  std::optional<std::string> result_;
  std::int32_t ngram_dynamic_mib_ = 256;
  ModelArguments model_;
  RequestArguments request_;
  AnswerArguments answer_{.output = output_};

  std::string text_;  // of the prompt
};

void RunCommand::add_options(CLI::App& app) {
  OptionGroup prompt(app, "Prompt (exactly one of -p, -f and -)");
  prompt.add_text("-p,--prompt", prompt_, "TEXT", "the prompt itself");
  prompt.add_text(
      "-f,--file", file_, "FILE",
      "a file with the prompt; a newline at its end and a UTF-8 mark at its beginning are not "
      "part of it");
  prompt.add_switch("--chat", chat_,
                    "the prompt is a user's message: put it into the model's own chat template");
  prompt.add_text(
      "stdin", standard_input_, "-",
      "read the prompt from standard input; a newline at its end and a UTF-8 mark at its "
      "beginning are not part of it");
  add_model_options(app, model_);
  add_request_options(app, request_, {"namespace"});
  OptionGroup(app, "Speculation")
      .add_integer(
          "--ngram-dynamic-mib", ngram_dynamic_mib_, {1, 1 << 20},
          "mebibytes that the file of --ngram-dynamic may have; the n-grams with the fewest "
          "uses go first, of equals the oldest");
  add_exact_option(app, "Speculation", model_);
  add_answer_options(app, answer_);
  OptionGroup output(app, "Output");
  output.add_text("--result", result_, "FILE",
                  "also write the result object of --json to this file (replaced if it exists)");
  add_output_options(app, output_);
}

void RunCommand::check() {
  if (standard_input_ && *standard_input_ != "-") {
    throw UsageError("unexpected argument '" + *standard_input_ + "'",
                     "give the prompt with -p 'TEXT' (quoted), with -f FILE, or with - on stdin");
  }
  // One given on the command line (or in a file) replaces another from the environment.
  const auto from_environment = [](const std::optional<std::string>& value, const char* name) {
    const char* text = std::getenv(name);
    return value && text != nullptr && *value == text;
  };
  const bool other_prompt = file_.has_value() || standard_input_.has_value();
  if (other_prompt && from_environment(prompt_, "OUTRIDER_PROMPT")) prompt_.reset();
  const bool other_file = prompt_.has_value() || standard_input_.has_value();
  if (other_file && from_environment(file_, "OUTRIDER_FILE")) file_.reset();
  const int given = prompt_.has_value() + file_.has_value() + standard_input_.has_value();
  if (given != 1) {
    throw UsageError(given == 0 ? "a prompt is missing" : "there is more than one prompt",
                     "give exactly one of -p TEXT, -f FILE and - (standard input)");
  }
  require_model(model_);
  check_request(request_, model_);
}

Status RunCommand::read_prompt() {
  if (prompt_) {
    text_ = *prompt_;
    return check_utf8(text_, "the prompt");
  }
  const std::string path = file_.value_or("-");
  OUTRIDER_ASSIGN_OR_RETURN(text_, read_all(path));
  drop_frame(text_);
  return check_utf8(text_,
                    path == "-" ? "the prompt on standard input" : "the prompt in '" + path + "'");
}

CompletionRequest RunCommand::make_request(const Target& target) const {
  CompletionRequest request = named_request(request_, model_, target);
  set_prompt(request, {.text = text_}, chat_);
  return request;
}

// The prompt and what was said join the dynamic cache's file, for later texts. A text that was cut
// short by Ctrl-C does, too. Counted from the text: the drafter has forgotten it with its end. Into
// the file as it is now: another run may have added to it since this one began.
Status RunCommand::save_ngrams(const Target& target, const Completion& completion) const {
  const std::optional<std::string> path = learned_file();
  if (!path) return Status();
  CompletionRequest request = make_request(target);
  OUTRIDER_ASSIGN_OR_RETURN(outrider::Prompt prompt, make_prompt(request, target));
  std::vector<Token> text = std::move(prompt.tokens);
  text.insert(text.end(), completion.tokens.begin(), completion.tokens.end());
  const std::uint64_t most_bytes = static_cast<std::uint64_t>(ngram_dynamic_mib_) << 20;
  return add_to_ngrams(text, tokenizer_id(target.vocabulary()), *path, most_bytes)
      .with_context("--ngram-dynamic");
}

Result<int> RunCommand::report(const CompletionResult& result, const LocalRuntime& local,
                               const SignalWatch& signals, const TextOutput& output) const {
  if (answer_.stats) {
    std::fputs(answer_stats(result, local, request_.request.width).c_str(), stderr);
  }
  // All of it is tried, and told: none of them depends on another.
  const Status outcomes[] = {
      result.completion.error,
      result_ ? write_result(*result_, result_line(result)).with_context("--result") : Status(),
      save_ngrams(local.target(), result.completion), output.status()};
  Status first;
  for (const Status& outcome : outcomes) {
    if (outcome.ok()) continue;
    if (first.ok()) {
      first = outcome;
    } else {
      (void)fail(outcome);
    }
  }
  OUTRIDER_RETURN_IF_ERROR(first);
  return signals.exit_code();
}

Status RunCommand::check_result() const {
  if (!result_) return Status();
  OutputFile output{.option = "--result", .path = *result_, .reads = files_read(request_, model_)};
  if (file_) output.reads.push_back(*file_);
  return check_not_read(output);
}

Status RunCommand::prepare() {
  OUTRIDER_RETURN_IF_ERROR(read_constraint(request_));
  OUTRIDER_RETURN_IF_ERROR(check_result());
  if (result_) OUTRIDER_RETURN_IF_ERROR(check_write_file(*result_).with_context("--result"));
  OUTRIDER_RETURN_IF_ERROR(check_output("--ngram-dynamic", learned_file()));
  return reads_standard_input() ? Status() : read_prompt();
}

Result<int> RunCommand::run() {
  OUTRIDER_RETURN_IF_ERROR(check_result());  // those of the hub are files now
  // Before signals are blocked: Ctrl-C must end the waiting.
  if (reads_standard_input()) OUTRIDER_RETURN_IF_ERROR(read_prompt());
  Terminal& terminal = watch();
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<LocalRuntime> local,
                            LocalRuntime::open(setup_for(request_, model_), terminal));
  local->print_warnings(request_.request);
  if (chat_) local->print_template_warning();
  TextOutput output(STDOUT_FILENO, use_color(answer_.color));
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::shared_ptr<const CompletionResult> result,
      print_answer(*local, terminal, answer_, make_request(local->target()), output));
  return report(*result, *local, terminal.signals, output);
}

}  // namespace

std::unique_ptr<Command> make_run_command() { return std::make_unique<RunCommand>(); }

}  // namespace outrider::tools
