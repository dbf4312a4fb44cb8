#include "backend/model_host.h"

#include <cstdio>
#include <utility>

#include "llama/open_target.h"
#include "remote/host_process.h"
#include "remote/serve_model.h"

namespace outrider {
namespace {

Result<HostedModel> open_hosted(const OpenRequest& request, const LoadHooks& hooks,
                                const std::function<void(double)>& probing) {
  const llama::TargetOptions how{.widest = request.model.widest,
                                 .speculation = request.speculation,
                                 .probe_budget_ms = request.probe_budget_ms,
                                 .cache_folder = request.cache_folder,
                                 .probe_progress = probing};
  OUTRIDER_ASSIGN_OR_RETURN(llama::OpenedTarget opened,
                            llama::open_target(request.model, hooks, how));
  HostedModel hosted;
  hosted.report.exactness = std::move(opened.exactness);
  hosted.report.notes = std::move(opened.notes);
  hosted.report.info = opened.file->facts();
  hosted.model = std::move(opened.model);
  return hosted;
}

int failed(const Status& status, int exit_code) {
  std::fprintf(stderr, "outrider model-host: %s\n", status.message().c_str());
  return exit_code;
}

}  // namespace

int run_model_host(int channel, int memory) {
  const Status given = HostProcess::check(channel, memory);
  if (!given.ok()) return failed(given, 2);
  const HostProcess process(channel, memory);
  const Status served = serve_model(FileDescriptor(channel), FileDescriptor(memory), open_hosted);
  return served.ok() ? 0 : failed(served, 1);
}

}  // namespace outrider
