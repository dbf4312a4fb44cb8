// outrider inspect: what a model is, what it needs, and whether a draft model fits it.
//
// Who inspects a file does not trust it yet, and llama.cpp aborts on some damaged ones. So a child
// of this process does the work, and its death is an error.
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "lab/inspection.h"
#include "tools/command.h"
#include "tools/options/field_words.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

constexpr const char* kInspectDetails =
    R"(No weights are read: a file's header and vocabulary are enough. Of a draft model it is measured,
for about a second, what a token takes in each type of weights on this machine, which should do
nothing else meanwhile: where times vary by more than types differ, none is named the cheapest.
Memory is weights and the cache of keys and values for --ctx tokens; llama.cpp's working memory
comes on top. Whether a setting is really exact here, the probe of run and compare finds out.)";

// In the parent: the child's exit code, or that it died. In the child, or where there can be none:
// nothing, and the work is to be done. REQUIRES: this process has one thread
Result<std::optional<int>> leave_to_child(const std::string& what) {
  std::fflush(nullptr);  // or both would write it
  const pid_t child = fork();
  if (child == 0) {
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a signal that ends the parent alone ends it, too
#endif
    return std::optional<int>();
  }
  if (child < 0) return std::optional<int>();
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return internal_error("the process that reads " + what + " is lost");
  }
  if (WIFEXITED(status)) return std::optional<int>(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  return data_loss("what reads " + what + " was ended by signal " + std::to_string(number) + " (" +
                   strsignal(number) +
                   "): the file is damaged, or of a kind that llama.cpp cannot read");
}

class InspectCommand : public Command {
 public:
  InspectCommand()
      : Command("inspect", "say what a model is and needs, and whether a draft model fits it",
                kInspectDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  ModelArguments* models() override { return &model_; }
  bool trusts_models() const override { return false; }
  Result<int> run() override;

 private:
  ModelArguments model_;
};

void InspectCommand::add_options(CLI::App& app) {
  add_inspected_models(app, model_);
  add_exact_option(app, "Model", model_);
  add_output_options(app, output_);
}

void InspectCommand::check() {
  if (!has_target(model_)) {
    throw UsageError("a model is missing", "usage: outrider inspect TARGET.gguf [DRAFT.gguf]");
  }
  require_model(model_);
}

Result<int> InspectCommand::run() {
  std::string what = "'" + *model_.model + "'";
  if (model_.draft_model) what += " and '" + *model_.draft_model + "'";
  // Before watch(), whose signals need a thread.
  OUTRIDER_ASSIGN_OR_RETURN(const std::optional<int> ended, leave_to_child(what));
  if (ended) return *ended;
  Terminal& terminal = watch();
  const LoadHooks hooks = terminal.load_hooks("reading");
  OUTRIDER_ASSIGN_OR_RETURN(lab::Inspection inspection,
                            lab::inspect(target_options(model_), hooks));
  if (model_.draft_model) {
    const Status status = lab::inspect_draft(draft_options(model_), hooks, inspection);
    OUTRIDER_RETURN_IF_ERROR(in_options(status, ModelRole::kDraft));
  }
  terminal.progress.clear();
  if (inspection.draft && !inspection.draft->types_status.ok()) {
    print_warning("types of weights were not measured: " +
                  inspection.draft->types_status.message());
  }
  return print(lab::inspection_json(inspection), in_options(lab::inspection_table(inspection)));
}

}  // namespace

std::unique_ptr<Command> make_inspect_command() { return std::make_unique<InspectCommand>(); }

}  // namespace outrider::tools
