#include "backend/loaded_target.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/list_of.h"
#include "llama/files/gguf_header.h"
#include "llama/workers/rpc_worker.h"
#include "remote/host_program.h"
#include "remote/remote_model.h"

namespace outrider {
namespace {

using Workers = std::vector<llama::WorkerAddress>;

constexpr int kWorkerPatienceMs = 5'000;
// When the target is lost, requests wait for the answers.
constexpr int kLostPatienceMs = 1'000;
constexpr std::chrono::seconds kAllLostPatience{5};

Result<Workers> check_workers(const std::vector<std::string>& texts,
                              const std::atomic<bool>* cancel) {
  if (texts.empty()) return Workers();
  OUTRIDER_ASSIGN_OR_RETURN(Workers workers, llama::parse_worker_addresses(texts));
  for (const llama::WorkerAddress& worker : workers) {
    OUTRIDER_RETURN_IF_ERROR(llama::check_worker(worker, kWorkerPatienceMs, cancel));
  }
  return workers;
}

// ggml's client ends its process without a word of which worker failed, so all are asked once more.
// One that was started again meanwhile answers. Those for whom no time is left are not asked.
std::string gone_workers(const Workers& workers) {
  if (workers.empty()) return "";
  const std::chrono::steady_clock::time_point end =
      std::chrono::steady_clock::now() + kAllLostPatience;
  std::vector<std::string> gone;
  for (const llama::WorkerAddress& worker : workers) {
    if (std::chrono::steady_clock::now() >= end) break;
    const Status answered = llama::check_worker(worker, kLostPatienceMs, nullptr);
    if (!answered.ok()) gone.push_back(answered.message());
  }
  return gone.empty() ? "all of its workers answer now" : joined(gone, "; ");
}

}  // namespace

Result<LoadedTarget::Parts> load_isolated_target(const ModelOptions& options,
                                                 const LlamaLoaderOptions& how,
                                                 const LoadHooks& hooks) {
  OUTRIDER_ASSIGN_OR_RETURN(Workers workers, check_workers(options.workers, hooks.cancel));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string program, find_host_program());
  const OpenRequest request{.model = options,
                            .speculation = how.speculation,
                            .probe_budget_ms = how.probe_budget_ms,
                            .cache_folder = how.cache_folder};
  OUTRIDER_ASSIGN_OR_RETURN(
      std::unique_ptr<RemoteModel> model,
      RemoteModel::open(program, request, hooks, how.probe_progress,
                        [workers = std::move(workers)] { return gone_workers(workers); }));
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
