#include "tools/fetch_models.h"

#include <unistd.h>

#include <optional>
#include <string>

#include "draft/drafter_table.h"
#include "llama/download/hub_download.h"
#include "llama/files/gguf_header.h"
#include "tools/options/model_folder.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

// `file` gets the path of what `repo` names, where it names anything.
Status fetch(const std::optional<std::string>& repo, std::optional<std::string>& file,
             Terminal& terminal) {
  if (!repo) return Status();
  OUTRIDER_ASSIGN_OR_RETURN(const llama::HubName name, llama::parse_hub_name(*repo));
  const llama::DownloadHooks hooks{
      .progress = [&](const std::string& what,
                      double fraction) { terminal.progress.update(what, fraction); },
      .cancel = terminal.signals.flag()};
  Result<llama::DownloadedModel> model = llama::download_model(name, hooks);
  terminal.progress.clear();
  if (!model.ok()) return model.status();
  for (const std::string& note : model->notes) print_warning(note);
  file = std::move(model->path);
  return Status();
}

Status fetch_both(ModelArguments& a, Terminal& terminal) {
  OUTRIDER_RETURN_IF_ERROR(fetch(a.hf_repo, a.model, terminal));
  return fetch(a.hf_repo_draft, a.draft_model, terminal);
}

}  // namespace

int fetch_models(ModelArguments& a) {
  if (a.hf_repo || a.hf_repo_draft) {
    Terminal terminal;
    const Status status = fetch_both(a, terminal);
    if (!status.ok()) return fail(status, terminal.signals);
    // One that came when there was nothing to fetch any more.
    if (terminal.signals.raised()) return terminal.signals.exit_code();
  }
  return kDone;
}

// Loading a file that cannot be read will say what is wrong with it.
void name_draft(ModelArguments& a) {
  if (!a.draft_model) return;
  const Result<llama::GgufHeader> header = llama::read_gguf_header(*a.draft_model);
  if (header.ok()) a.draft_name = draft_name(header->architecture);
}

void offer_draft(const ModelArguments& a) {
  if (!a.model || has_draft(a) || isatty(STDERR_FILENO) != 1) return;
  if (a.target.isolate) return;  // this process does not read its file
  ModelFamilies families;
  const std::optional<std::string> draft = find_draft_beside(*a.model, families);
  if (draft) print_hint(draft_offer(*a.model, *draft));
}

Status download_models(ModelArguments& a, Terminal& terminal) {
  if (!a.hf_repo && !a.hf_repo_draft) return Status();
  OUTRIDER_RETURN_IF_ERROR(fetch_both(a, terminal));
  return terminal.signals.raised() ? cancelled("stopped by a signal") : Status();
}

}  // namespace outrider::tools
