// outrider make-draft: a draft model for a target that has none.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "lab/make_draft_run.h"
#include "llama/gguf/draft_writer.h"
#include "request/completion_request.h"
#include "tools/command.h"
#include "tools/local_runtime.h"
#include "tools/options/field_words.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"
#include "tools/output_file.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

constexpr const char* kMakeDraftDetails =
    R"(Makes drafts of a smaller model of the family (--from), or of the target itself: with weights of
types that are cheap on this machine, with the tokens alone that a sample of text needs (the target
keeps all of its own, and its text is the same), and without some of the layers. Each is tried on
what the target said to a few prompts: how many guesses hold, and what they take. From that and
from what steps of the target take follows the speed to be expected; the --measure best ones are
then measured beside plain decoding, 4 to 10 times over, and the fastest is written; of those that
cannot be told apart, the smallest. What needs more memory than is free is passed over.
The sample should be like the texts that the draft is for: it decides which tokens are kept. Half
of what the target says is for choosing tokens, the other half for measuring.
Where none is faster than plain decoding for certain, nothing is written, and the exit code is 1.
The file beside the output that ends in .candidate.gguf is removed at the end, and after Ctrl-C.)";

class MakeDraftCommand : public Command {
 public:
  MakeDraftCommand()
      : Command("make-draft",
                "make a draft model for a target, out of a smaller model or of itself",
                kMakeDraftDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  Status prepare() override { return check_files(); }
  ModelArguments* models() override { return &model_; }
  Result<int> run() override;

 private:
  void add_search_options(CLI::App& app);
  Status check_files() const;

  ModelArguments model_;
  std::optional<std::string> from_;
  std::optional<std::string> path_;
  bool force_ = false;
  float temperature_ = 0.8f;
  std::vector<std::string> types_;
  std::vector<std::int32_t> n_tokens_;
  std::vector<std::int32_t> n_left_out_;
  lab::MakeDraftPlan plan_;
};

void MakeDraftCommand::add_options(CLI::App& app) {
  OptionGroup group(app, "Draft");
  group.add_text("TARGET", model_.model, "TARGET.gguf", "the model to make a draft for");
  group.add_text("--from", from_, "SMALLER.gguf",
                 "the model that the draft is made of [default: the target itself]");
  group.add_text("-o,--output", path_, "DRAFT.gguf", "the draft to write (required)");
  group.add_switch("--force", force_, "replace the output if it exists");
  add_search_options(app);
  add_lone_target_options(app, model_);
  add_exact_option(app, "Model", model_);
  add_output_options(app, output_);
}

void MakeDraftCommand::add_search_options(CLI::App& app) {
  OptionGroup sample(app, "Sample");
  sample.add_texts(
      "--sample", plan_.sample.files, "FILE",
      "a text, or JSON lines with 'prompt', 'turns' or 'messages', like what the draft "
      "is for; may be given several times [default: built-in prompts]");
  sample.add_integer("-n,--tokens", plan_.sample.max_tokens, {2, 100000},
                     "tokens that the target says to each of up to eight prompts");
  sample.add_number("--temp", temperature_, "temperature at which it says them, and drafts guess",
                    field_named(sampling_fields(), "temp").range);
  sample.add_integer("--seed", plan_.sample.seed, {0, 4294967295}, "of its noise");
  OptionGroup search(app, "Search");
  search.add_names("--types", types_,
                   "types of weights to try, as ggml names them: q4_0,q8_0; none: the source's own "
                   "alone [default: the three that are cheapest here]");
  search
      .add_integers("--vocabulary", n_tokens_, {0, 100000000},
                    "numbers of tokens to try; 0: all of them alone")
      ->default_str("halves, quarters, ... down to what the sample needs");
  search
      .add_integers("--leave-out", n_left_out_, {0, 100000},
                    "numbers of layers to try to leave out; 0: none")
      ->default_str("one to four sixths");
  search.add_integer("--measure", plan_.most_measured, {0, 100},
                     "how many of the best are measured; 0: what is expected decides");
}

void MakeDraftCommand::check() {
  require_model(model_);
  const std::string usage = "usage: outrider make-draft TARGET.gguf -o DRAFT.gguf";
  if (!path_ || path_->empty()) throw UsageError("--output is missing: the draft to write", usage);
  if (from_ == "") throw UsageError("--from is '', but must be a GGUF file");
  SamplingOptions& sampling = plan_.sample.sampling;
  sampling.temperature = temperature_;
  const Status valid = validate(sampling);
  if (!valid.ok()) throw UsageError(valid.message_with("--temp"));
  const auto without_zero = [](std::vector<std::int32_t> values) {
    std::erase(values, 0);
    return values;
  };
  if (types_.size() == 1 && types_[0] == "none") {
    plan_.types.emplace();
  } else if (!types_.empty()) {
    for (const std::string& type : types_) {
      const Status known = gguf::check_draft_type(type);
      if (!known.ok()) throw UsageError("--types: " + known.message());
    }
    plan_.types = types_;
  }
  if (!n_tokens_.empty()) plan_.n_tokens = without_zero(n_tokens_);
  if (!n_left_out_.empty()) plan_.n_left_out = without_zero(n_left_out_);
}

// Before half a minute of loading. A target in the hub is a file only once it is downloaded.
Status MakeDraftCommand::check_files() const {
  OutputFile output{.option = "--output", .path = *path_};
  for (const std::optional<std::string>& path : {model_.model, from_}) {
    if (path) add_model_files(output.reads, *path);
  }
  OUTRIDER_RETURN_IF_ERROR(check_output_file(output));
  std::error_code error;
  if (!force_ && std::filesystem::exists(*path_, error)) {
    return invalid_argument("'" + *path_ + "' exists; --force replaces it");
  }
  const std::optional<std::string>& source = from_ ? from_ : model_.model;
  return source ? gguf::read_draft_source(*source).status() : Status();
}

Result<int> MakeDraftCommand::run() {
  if (model_.hf_repo) OUTRIDER_RETURN_IF_ERROR(check_files());
  plan_.output = *path_;
  plan_.target = target_options(model_);
  plan_.target.widest = kOpenedWidth;
  model_.draft_model = *path_;
  plan_.draft = draft_options(model_);
  plan_.source = from_.value_or(plan_.target.path);
  plan_.command = command_line();
  Terminal& terminal = watch();
  LocalSetup setup{.target = plan_.target};
  setup.runtime.slots = 1;
  setup.runtime.reuse_prefix = false;  // measured texts read their prompts
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<LocalRuntime> local,
                            LocalRuntime::open(setup, terminal));
  local->print_warnings();
  OUTRIDER_ASSIGN_OR_RETURN(const lab::MakeDraftResult made,
                            lab::make_draft(local->harness(), plan_));
  OUTRIDER_RETURN_IF_ERROR(print(lab::make_draft_json(made), lab::make_draft_table(made)).status());
  if (made.chosen) return kDone;
  print_error(in_options(made.verdict, ModelRole::kDraft));
  return kFailed;
}

}  // namespace

std::unique_ptr<Command> make_make_draft_command() { return std::make_unique<MakeDraftCommand>(); }

}  // namespace outrider::tools
