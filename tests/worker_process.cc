#include "tests/worker_process.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "llama/workers/rpc_worker.h"
#include "tests/build_paths.h"

namespace outrider::testing {
namespace {

constexpr const char* kVariable = "OUTRIDER_HOST_PROGRAM";
constexpr int kAttempts = 20;      // somebody else may take the port
constexpr int kPatienceMs = 1000;  // for one question
constexpr int kQuestions = 120;

bool serves(const std::string& address, ChildProcess& process) {
  for (int i = 0; i < kQuestions; ++i) {
    if (llama::check_worker(*llama::parse_worker_address(address), kPatienceMs, nullptr).ok()) {
      return !process.wait(0);  // or another test's worker has the port
    }
    if (process.wait(50)) return false;
  }
  return false;
}

}  // namespace

std::uint16_t free_port() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  (void)bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  close(socket);
  return ntohs(address.sin_port);
}

WorkerProcess::WorkerProcess() {
  for (int i = 0; i < kAttempts; ++i) {
    const std::string port = std::to_string(free_port());
    Result<std::unique_ptr<ChildProcess>> process = ChildProcess::start(
        outrider_binary(), {"outrider", "worker", "--port", port, "--threads", "1"}, {});
    if (!process.ok()) break;
    process_ = std::move(*process);
    address_ = "127.0.0.1:" + port;
    if (serves(address_, *process_)) return;
  }
  std::fprintf(stderr, "cannot go on: no worker could be started\n");
  std::abort();
}

WorkerProcess::~WorkerProcess() {
  if (killed_ || !process_->wait(0)) return;
  std::fprintf(stderr, "the worker on %s %s: %s\n", address_.c_str(), process_->ending().c_str(),
               process_->last_lines().c_str());
}

void WorkerProcess::kill() {
  killed_ = true;
  process_->kill();
  while (!process_->wait(1000)) {
  }
}

void WorkerProcess::stop() {
  killed_ = true;  // what it says at its end does not matter
  ::kill(process_->pid(), SIGSTOP);
}

HostProgram::HostProgram() : HostProgram(outrider_binary()) {}

HostProgram::HostProgram(const std::string& program) {
  const char* before = std::getenv(kVariable);
  if (before != nullptr) before_ = before;
  setenv(kVariable, program.c_str(), /*overwrite=*/1);
}

HostProgram::~HostProgram() {
  before_.empty() ? unsetenv(kVariable) : setenv(kVariable, before_.c_str(), /*overwrite=*/1);
}

}  // namespace outrider::testing
