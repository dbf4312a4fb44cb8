#include "backend/loaded_target.h"

#include <string>
#include <utility>
#include <vector>

#include "llama/files/gguf_header.h"
#include "llama/workers/rpc_worker.h"
#include "remote/host_program.h"
#include "remote/remote_model.h"

namespace outrider {
namespace {

constexpr int kWorkerPatienceMs = 5'000;

Status check_workers(const std::vector<std::string>& texts, const std::atomic<bool>* cancel) {
  if (texts.empty()) return Status();
  OUTRIDER_ASSIGN_OR_RETURN(const std::vector<llama::WorkerAddress> workers,
                            llama::parse_worker_addresses(texts));
  for (const llama::WorkerAddress& worker : workers) {
    OUTRIDER_RETURN_IF_ERROR(llama::check_worker(worker, kWorkerPatienceMs, cancel));
  }
  return Status();
}

}  // namespace

Result<LoadedTarget::Parts> load_isolated_target(const ModelOptions& options,
                                                 const LlamaLoaderOptions& how,
                                                 const LoadHooks& hooks) {
  OUTRIDER_RETURN_IF_ERROR(check_workers(options.workers, hooks.cancel));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string program, find_host_program());
  const OpenRequest request{.model = options,
                            .speculation = how.speculation,
                            .probe_budget_ms = how.probe_budget_ms,
                            .cache_folder = how.cache_folder};
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<RemoteModel> model,
                            RemoteModel::open(program, request, hooks, how.probe_progress));
  const LoadHooks quiet{.progress = {}, .cancel = hooks.cancel, .log = hooks.log};
  OUTRIDER_ASSIGN_OR_RETURN(std::shared_ptr<llama::ModelFile> file,
                            llama::ModelFile::load_vocabulary(options.path, quiet));
  const OpenReport& report = model->report();
  if (file->vocabulary().size() != report.capabilities.n_vocab) {
    return data_loss("'" + options.path + "' was changed while it was loaded");
  }
  LoadedTarget::Parts parts{.model = std::move(model),
                            .file = std::move(file),
                            .exactness = report.exactness,
                            .exact_mode = options.exact,
                            .info = report.info,
                            .notes = report.notes,
                            .no_head_reason =
                                "a target in a process of its own does not hand out "
                                "the hidden states that prediction layers read"};
  const Result<llama::GgufHeader> header = llama::read_gguf_header(options.path);
  if (options.mtp == HeadChoice::kAuto && header.ok() && header->n_prediction > 0) {
    parts.notes.push_back("the file's prediction layers (MTP) do not guess: " +
                          parts.no_head_reason);
  }
  return parts;
}

}  // namespace outrider
