// outrider replay: what a drafter would have drafted and had accepted over given texts.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "json/json.h"
#include "lab/replay_run.h"
#include "tools/command.h"
#include "tools/drafter_files.h"
#include "tools/field_options.h"
#include "tools/options.h"
#include "tools/report.h"
#include "tools/terminal.h"
#include "tools/usage.h"
#include "tools/vocabulary_file.h"

namespace outrider::tools {
namespace {

constexpr const char* kReplayDetails =
    "No model runs: a text that was once said tells what each step would have accepted.\n"
    "JSON lines with 'messages' are conversations: the assistant's turns are drafted, what comes "
    "before\n"
    "each is its prompt. Other texts (a plain file, or 'turns', 'prompt' or 'text' of each line) "
    "are\n"
    "drafted from their second token on.\n"
    "With --chunk a plain text is cut into pieces of so many tokens, each as if it were generated "
    "by\n"
    "itself; an incomplete one at the end is skipped. With ngram-cache, what a piece held goes "
    "into "
    "the\n"
    "dynamic cache behind it (the file is not changed): together this is what llama.cpp's "
    "lookup-stats\n"
    "does (its --spec-draft-n-max N is --width N+1).";

// What a drafter needs beside texts; null: nothing.
const char* why_not_text(std::string_view drafter) {
  if (drafter == "recycle") return " lives on the target's logits, and";
  if (drafter == kDraftModelName) return " needs its model, but";
  const bool is_head = drafter == kMtpName || is_draft_name(drafter);
  return is_head ? " reads the target's hidden states, and" : nullptr;
}

// Throws UsageError for an expression with a drafter that needs more than text.
DrafterPlan text_drafters(const std::string& expression) {
  const Result<DrafterPlan> any = parse_drafter_plan(expression, kDrafterNames);
  for (const std::string_view name : kDrafterNames) {
    const char* const why = why_not_text(name);
    if (why == nullptr || !any.ok() || !any->mentions(name)) continue;
    throw UsageError(
        "--drafter is '" + expression + "', but " + std::string(name) + why + " no model runs here",
        "drafters that need only text: suffix and ngram-cache");
  }
  Result<DrafterPlan> plan = parse_drafter_plan(expression, lab::kTextDrafters);
  if (!plan.ok()) throw usage_error(plan.status());
  return *std::move(plan);
}

class ReplayCommand : public Command {
 public:
  std::string name() const override { return "replay"; }
  std::string summary() const override {
    return "measure a drafter over given texts, without running a model";
  }
  std::string details() const override { return kReplayDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  // Opens the files of --suffix-store, --ngram-static and --ngram-dynamic.
  Status open_files(const TokenizerId& tokenizer);

  std::optional<std::string> vocab_;
  std::optional<std::string> corpus_;
  std::optional<std::string> cost_;
  std::optional<std::string> drafter_;
  std::optional<std::int32_t> branches_;
  std::vector<DrafterFile> files_;
  lab::ReplayPlan plan_;
  OutputArguments output_;
};

void ReplayCommand::add_options(CLI::App& app) {
  const std::string heading = "Texts";
  OptionGroup texts(app, heading);
  texts.add_text("--vocab", vocab_, "FILE", "a GGUF file with the target's vocabulary (required)");
  CLI::Option* corpus = app.add_option(
      "corpus",
      [this](const CLI::results_t& results) {
        corpus_ = results.back();
        return true;
      },
      "a text, or JSON lines (name.jsonl) with 'messages', 'turns', 'prompt' or 'text'; - is "
      "standard input (required)");
  corpus->type_name("FILE")->group(heading);
  texts.add_integer("-c,--chunk", plan_.chunk, 0, 1 << 30,
                    "tokens of the pieces that a plain text is cut into; 0: the whole text");
  OptionGroup drafting(app, "Drafting");
  drafting.add_text(
      "--drafter", drafter_, "EXPR",
      "who guesses: suffix or ngram-cache (drafters with a model, and recycle, which needs the "
      "target's logits, cannot be replayed); 'a,b' merges their guesses, 'a/b' asks b only where a "
      "has none");
  drafting.add_integer("--width", plan_.width, 1, 1024,
                       "tokens of a step at most, its own last one included");
  drafting.add_integer("--branches", branches_, 1, 1024, "as --width",
                       "leaves of the suffix drafter's guesses at most; 1: a chain");
  add_drafter_files(drafting, files_);
  drafting.add_text("--cost", cost_, "FILE",
                    "what a step of each width costs, as JSON [{\"width\": 1, \"ms\": 72.0}, ...]: "
                    "predicts the speed-up");
  add_output_options(app, output_);
}

void ReplayCommand::check() {
  if (!vocab_) {
    throw UsageError("--vocab is missing", "give a GGUF file with the target's vocabulary");
  }
  if (!corpus_) {
    throw UsageError("a text is missing",
                     "usage: outrider replay --vocab T.gguf --drafter NAME corpus.jsonl|text");
  }
  if (!drafter_) throw UsageError("--drafter is missing", "give --drafter suffix or ngram-cache");
  plan_.drafter = *drafter_;
  plan_.drafters = text_drafters(*drafter_);
  // As `run` has it for drafters without a model.
  plan_.shape.branches = branches_.value_or(plan_.width);
  check_drafter_files(files_, plan_.drafters, *drafter_);
}

Status ReplayCommand::open_files(const TokenizerId& tokenizer) {
  for (const DrafterFile& file : files_to_read(files_, plan_.drafters)) {
    const Stopwatch watch;
    Result<OpenedDrafterFile> opened = open_drafter_file(file, tokenizer);
    if (!opened.ok()) return opened.status().with_context(file_option(file));
    plan_.files.push_back({*std::move(opened), watch.elapsed_ms()});
  }
  return Status();
}

int ReplayCommand::run() {
  Terminal terminal(output_);
  const SignalWatch& signals = terminal.signals;
  if (cost_) {
    Result<lab::CostFile> file = lab::CostFile::read(*cost_);
    if (!file.ok()) return fail(file.status());
    plan_.costs = std::move(*file);
  }
  const Result<VocabularyFile> vocabulary = read_vocabulary(*vocab_, terminal);
  if (!vocabulary.ok()) return fail(vocabulary.status(), signals);
  plan_.n_vocab = vocabulary->vocabulary->size();
  const Status files = open_files(vocabulary->id);
  if (!files.ok()) return fail(files, signals);
  const Result<lab::ReplayTexts> corpus = lab::read_replay_texts(*corpus_, *vocabulary->vocabulary);
  if (!corpus.ok()) return fail(corpus.status(), signals);
  for (const std::string& note : corpus->notes) print_warning(note);
  if (plan_.chunk > 0 && !corpus->plain) {
    return fail(invalid_argument("--chunk cuts a plain text into pieces, but '" + *corpus_ +
                                 "' has JSON lines, which are texts of their own; leave it out"),
                signals);
  }
  const Result<lab::ReplayResult> result = lab::run_replay(plan_, *corpus, terminal.watcher());
  terminal.progress.clear();
  if (!result.ok()) return fail(result.status(), signals);
  return print_result(output_.json ? json::encode(lab::replay_json(plan_, *result)) + "\n"
                                   : lab::replay_table(plan_, *result));
}

}  // namespace

std::unique_ptr<Command> make_replay_command() { return std::make_unique<ReplayCommand>(); }

}  // namespace outrider::tools
