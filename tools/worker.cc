// outrider worker: this machine as a part of another one's target.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "llama/workers/rpc_worker.h"
#include "model/model_options.h"
#include "tools/command.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"
#include "tools/report.h"
#include "tools/signals.h"

namespace outrider::tools {
namespace {

constexpr const char* kWorkerDetails =
    R"(It holds layers of a target that runs elsewhere with --workers HOST:PORT, one client at a time,
and computes with this machine's accelerators, or its processor where it has none. All machines need
the same version. Prints the address once it listens; ends with SIGTERM or Ctrl-C.)";

class WorkerCommand : public Command {
 public:
  WorkerCommand()
      : Command("worker", "lend this machine to another one's target (a ggml RPC server)",
                kWorkerDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  Result<int> run() override;

 private:
  std::optional<std::string> host_;
  std::int32_t port_ = 50052;
  std::int32_t threads_ = 0;
  std::optional<std::string> cache_;
  std::int64_t cache_mib_ = llama::WorkerOptions().cache_mib;
  bool force_ = false;
};

void WorkerCommand::add_options(CLI::App& app) {
  OptionGroup group(app, "Worker");
  group.add_text("--host", host_, "ADDRESS",
                 "the address of this machine to listen on, IPv4 [default: 127.0.0.1]");
  group.add_integer("--port", port_, {1, 65535}, "the port to listen on");
  group.add_integer("-t,--threads", threads_, field_named(model_fields(), "threads").range,
                    "threads to compute with; 0: one for each physical core");
  // Not --cache: its variable would be that of the folder for measurements.
  group.add_text("--tensor-cache", cache_, "FOLDER",
                 "keep large tensors here, so that the next client need not send them again");
  group.add_integer("--tensor-cache-mib", cache_mib_, {1, 1 << 20},
                    "mebibytes that folder may have when the worker starts; what was written "
                    "longest ago goes first");
  group.add_switch("--force", force_,
                   "listen on an address that other machines reach. The protocol has no "
                   "protection: whoever reaches the port can take over this process");
}

void WorkerCommand::check() {
  const std::string host = host_.value_or("127.0.0.1");
  if (llama::is_loopback(host) || force_) return;
  throw UsageError(
      "--host is '" + host +
          "', which other machines may reach, and ggml's protocol has no protection at all",
      "give --force as well, on a network where you trust every machine; or use 127.0.0.1 and a "
      "tunnel");
}

Result<int> WorkerCommand::run() {
  llama::WorkerOptions options{.host = host_.value_or("127.0.0.1"),
                               .port = static_cast<std::uint16_t>(port_),
                               .n_threads = threads_,
                               .cache_folder = cache_.value_or(""),
                               .cache_mib = cache_mib_};
  SignalWatch signals;
  // Being told to end is how a worker ends; ggml has no other way out of its loop.
  signals.on_signal([] { std::_Exit(kDone); });
  // ggml writes about its clients to stdout, where only the address belongs.
  std::fflush(stdout);
  const int out = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const std::string address = options.host + ":" + std::to_string(options.port);
  return llama::serve_worker(options, [&] {
    const std::string line = "listening on " + address + "\n";
    if (write(out, line.data(), line.size()) < 0) print_warning("cannot write to stdout");
  });
}

}  // namespace

std::unique_ptr<Command> make_worker_command() { return std::make_unique<WorkerCommand>(); }

}  // namespace outrider::tools
