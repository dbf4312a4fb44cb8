// outrider run: one prompt, one text.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "api/completion_json.h"
#include "draft/ngram/ngram_file.h"
#include "json/json.h"
#include "lab/prompt_file.h"
#include "lab/stats_table.h"
#include "store/atomic_file.h"
#include "tools/command.h"
#include "tools/model_options.h"
#include "tools/options.h"
#include "tools/output_options.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/sampling_options.h"
#include "tools/session.h"
#include "tools/signals.h"
#include "tools/speculation_options.h"
#include "tools/text_output.h"
#include "tools/usage.h"

namespace outrider::tools {
namespace {

constexpr const char* kRunDetails =
    "The text goes to stdout as it is accepted, without the prompt; everything else goes to "
    "stderr.\n"
    "Ctrl-C ends it with what there is, statistics included, and exit code 130; a second one kills "
    "it.";

class RunCommand : public Command {
 public:
  std::string name() const override { return "run"; }
  std::string summary() const override { return "generate text from a prompt"; }
  std::string details() const override { return kRunDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  Status read_prompt();
  Status save_ngrams(Session& session, const Completion& completion) const;
  Result<Request> make_request(const Session& session) const;
  int report(const Completion& completion, Session& session, const SignalWatch& signals,
             TextOutput& output) const;

  std::optional<std::string> prompt_;
  std::optional<std::string> file_;
  std::optional<std::string> standard_input_;  // "-"
  bool chat_ = false;
  bool stats_ = false;
  std::string color_ = "never";
  std::optional<std::string> result_;
  ModelArguments model_;
  SamplingArguments sampling_;
  SpeculationArguments speculation_;
  OutputArguments output_;

  std::string text_;  // of the prompt
  SpeculationPlan plan_;
  std::vector<Token> prompt_tokens_;
};

void RunCommand::add_options(CLI::App& app) {
  const std::string heading = "Prompt (exactly one of -p, -f and -)";
  OptionGroup prompt(app, heading);
  prompt.add_text("-p,--prompt", prompt_, "TEXT", "the prompt itself");
  prompt.add_text("-f,--file", file_, "FILE",
                  "a file with the prompt; one newline at its end is not part of it");
  prompt.add_switch("--chat", chat_,
                    "the prompt is a user's message: put it into the model's own chat template");
  CLI::Option* standard_input = app.add_option(
      "stdin",
      [this](const CLI::results_t& results) {
        standard_input_ = results.back();
        return true;
      },
      "read the prompt from standard input; one newline at its end is not part of it");
  standard_input->type_name("-")->group(heading);
  add_model_options(app, model_);
  add_sampling_options(app, sampling_);
  add_stop_option(app, sampling_);
  add_logprobs_option(app, sampling_);
  add_speculation_options(app, speculation_, model_);
  OptionGroup output(app, "Output");
  output.add_switch("--stats", stats_, "print a table of speeds, counts and times at the end");
  output.add_flag_choice(
      "--color", color_, {"never", "auto", "always"}, "auto",
      "colour the tokens that were guessed (green): auto, which is "
      "meant without a value, on a terminal unless NO_COLOR is set; always; never");
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
  check_sampling(sampling_);
  check_speculation(speculation_, model_);
}

Status RunCommand::read_prompt() {
  if (prompt_) {
    text_ = *prompt_;
    return lab::check_utf8(text_, "the prompt");
  }
  const std::string path = file_.value_or("-");
  Result<std::string> text = lab::read_all(path);
  if (!text.ok()) return text.status();
  text_ = std::move(*text);
  if (!text_.empty() && text_.back() == '\n') text_.pop_back();
  return lab::check_utf8(
      text_, path == "-" ? "the prompt on standard input" : "the prompt in '" + path + "'");
}

Result<Request> RunCommand::make_request(const Session& session) const {
  Result<std::vector<Token>> tokens =
      chat_ ? session.tokenize({{.role = "user", .content = text_}}) : session.tokenize(text_);
  if (!tokens.ok()) return tokens.status();
  Result<Request> request =
      session.request(std::move(*tokens), sampling_.options, chosen_seed(sampling_), plan_.width);
  if (!request.ok()) return request.status();
  request->max_tokens = sampling_.max_tokens;
  request->stop = sampling_.stop;
  request->rule = chosen_rule(speculation_);
  request->draft = chosen_shape(speculation_);
  request->drafters = plan_.drafters;
  request->logprobs = sampling_.logprobs;
  if (!plan_.off_reason.empty()) request->speculation_off_reason = plan_.off_reason;
  return request;
}

// The prompt and what was said join the dynamic cache's file, for later texts. A text that was cut
// short by Ctrl-C does, too. Counted from the text: the drafter has forgotten it with its end. Into
// the file as it is now: another run may have added to it meanwhile.
Status RunCommand::save_ngrams(Session& session, const Completion& completion) const {
  const NgramDrafting* ngrams = session.ngrams();
  if (ngrams == nullptr || !ngrams->dynamic) return Status();
  const std::string& path = *speculation_.ngrams.dynamic_file;
  const TokenizerId tokenizer = tokenizer_id(session.vocabulary());
  Result<NgramCache> cache = load_dynamic_ngrams(path, tokenizer);
  if (!cache.ok()) return cache.status();
  std::vector<Token> text = prompt_tokens_;
  text.insert(text.end(), completion.tokens.begin(), completion.tokens.end());
  cache->count(text, /*from=*/0, /*min_order=*/1, kMaxNgram);
  return outrider::save_ngrams(*cache, tokenizer, path).with_context("--ngram-dynamic");
}

int RunCommand::report(const Completion& completion, Session& session, const SignalWatch& signals,
                       TextOutput& output) const {
  const std::string object = json::encode(api::completion_json(completion, session.exactness(),
                                                               session.target_info().kernels)) +
                             "\n";
  output_.json ? output.write(object) : output.finish();
  const std::int32_t width = std::min(plan_.width, session.target().capabilities().max_width);
  if (stats_)
    std::fputs(
        lab::stats_table(completion, session.exactness(), session.target_info().kernels, width)
            .c_str(),
        stderr);
  Status written = result_ ? lab::write_file(*result_, object) : Status();
  if (written.ok()) written = save_ngrams(session, completion);
  if (!completion.error.ok()) return fail(completion.error);
  if (!written.ok()) return fail(written);
  if (!output.status().ok()) return fail(output.status());
  return signals.raised() ? signals.exit_code() : kDone;
}

int RunCommand::run() {
  plan_ = plan_speculation(speculation_, model_);
  const int constraint = read_constraint(sampling_);
  if (constraint != kDone) return constraint;
  if (plan_.use_ngrams && speculation_.ngrams.dynamic_file) {
    const Status writable = check_writable(*speculation_.ngrams.dynamic_file);
    if (!writable.ok()) return fail(writable.with_context("--ngram-dynamic"));
  }
  const Status prompt = read_prompt();  // before signals are blocked: Ctrl-C must end the waiting
  if (!prompt.ok()) return fail(prompt);
  SignalWatch signals;
  ProgressBar progress;

  SessionOptions options{.target = target_options(model_),
                         .speculation = plan_.width != 1,
                         .planned = plan_.width == kAutoWidth,
                         .widest_is_wish = plan_.width != kAutoWidth};
  options.target.widest = opened_width(speculation_);
  choose_drafters(plan_, speculation_, model_, options);
  const SessionHooks hooks{
      .progress = progress, .signals = signals, .log = log_sink(output_, progress)};
  Result<std::unique_ptr<Session>> session = Session::open(options, hooks);
  progress.clear();
  if (!session.ok()) return fail(session.status(), signals);
  for (const std::string& warning : (*session)->warnings()) print_warning(warning);

  Result<Request> request = make_request(**session);
  if (!request.ok()) return fail(request.status());
  prompt_tokens_ = request->prompt;
  TextOutput output(STDOUT_FILENO, use_color(color_));
  Result<Completion> completion =
      generate(**session, std::move(*request), signals, progress, [&](const Update& update) {
        if (!output_.json) output.write(update.pieces);
        return !output.failed();
      });
  if (!completion.ok()) return fail(completion.status());
  return report(*completion, **session, signals, output);
}

}  // namespace

std::unique_ptr<Command> make_run_command() { return std::make_unique<RunCommand>(); }

}  // namespace outrider::tools
