#include "tools/fetch_models.h"

#include <unistd.h>

#include <optional>
#include <string>

#include "llama/download/hub_download.h"
#include "tools/model_folder.h"
#include "tools/report.h"
#include "tools/terminal.h"

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
  if (!a.hf_repo && !a.hf_repo_draft) return kDone;
  Terminal terminal;
  const Status status = fetch_both(a, terminal);
  return status.ok() ? kDone : fail(status, terminal.signals);
}

void offer_draft(const ModelArguments& a) {
  if (!a.model || has_draft(a) || isatty(STDERR_FILENO) != 1) return;
  const std::optional<std::string> draft = find_draft_beside(*a.model);
  if (draft) print_hint(draft_offer(*a.model, *draft));
}

Status download_models(ModelArguments& a) {
  if (!a.hf_repo && !a.hf_repo_draft) return Status();
  Terminal terminal;
  return fetch_both(a, terminal);
}

}  // namespace outrider::tools
