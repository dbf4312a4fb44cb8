// outrider inspect: what a model is, what it needs, and whether a draft model fits it.
#include <memory>
#include <optional>

#include "lab/inspection.h"
#include "tools/command.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

constexpr const char* kInspectDetails =
    R"(No weights are read: a file's header and vocabulary are enough. Of a draft model it is measured,
for about a second, what a token takes in each type of weights on this machine.
Memory is weights and the cache of keys and values for --ctx tokens; llama.cpp's working memory
comes on top. Whether a setting is really exact here, the probe of run and compare finds out.)";

class InspectCommand : public Command {
 public:
  InspectCommand()
      : Command("inspect", "say what a model is and needs, and whether a draft model fits it",
                kInspectDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  ModelArguments* models() override { return &model_; }
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
  Terminal& terminal = watch();
  std::optional<ModelOptions> draft;
  if (model_.draft_model) draft = draft_options(model_);
  OUTRIDER_ASSIGN_OR_RETURN(
      const lab::Inspection inspection,
      lab::inspect(target_options(model_), draft, terminal.load_hooks("reading")));
  terminal.progress.clear();
  if (inspection.draft && !inspection.draft->types_status.ok()) {
    print_warning("types of weights were not measured: " +
                  inspection.draft->types_status.message());
  }
  return print(lab::inspection_json(inspection), lab::inspection_table(inspection));
}

}  // namespace

std::unique_ptr<Command> make_inspect_command() { return std::make_unique<InspectCommand>(); }

}  // namespace outrider::tools
