#include "llama/workers/rpc_worker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/on_exit.h"
#include "ggml-backend.h"
#include "ggml-rpc.h"
#include "llama/base/backend.h"
#include "llama/kernels/compute_threads.h"
#include "llama/kernels/kernel_worker.h"
#include "llama/workers/client_keepalive.h"
#include "llama/workers/tensor_cache.h"

namespace outrider::llama {
namespace {

constexpr std::size_t kMostWorkers = GGML_RPC_MAX_SERVERS;
constexpr int kOwnPatienceMs = 2'000;  // for the worker's own answer to itself

// The functions of the RPC backend, which a build may lack.
template <typename F>
F rpc_function(const char* name) {
  ensure_backend();
  const ggml_backend_reg_t rpc = ggml_backend_reg_by_name("RPC");
  return rpc == nullptr ? nullptr
                        : reinterpret_cast<F>(ggml_backend_reg_get_proc_address(rpc, name));
}

Status no_rpc() {
  return unsupported(
      "this llama.cpp was built without RPC, which workers need; build with -DGGML_RPC=ON");
}

// As ggml's server picks them: accelerators, else the processor.
std::vector<ggml_backend_dev_t> devices_to_serve() {
  std::vector<ggml_backend_dev_t> devices;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    const enum ggml_backend_dev_type type = ggml_backend_dev_type(device);
    if (type != GGML_BACKEND_DEVICE_TYPE_CPU && type != GGML_BACKEND_DEVICE_TYPE_ACCEL) {
      devices.push_back(device);
    }
  }
  const ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (devices.empty() && cpu != nullptr) devices.push_back(worker_device(cpu));
  return devices;
}

// Binds and lets go again: ggml only says that it failed, not why.
Status try_to_bind(const std::string& host, std::uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return wrong_value("host", "'" + host + "'",
                       "an IPv4 address of this machine, such as 127.0.0.1");
  }
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool bound = bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                     listen(socket, 1) == 0;
  const int error = errno;
  close(socket);
  if (bound) return Status();
  return resource_exhausted("cannot listen on " + host + ":" + std::to_string(port) + ": " +
                            std::strerror(error));
}

std::string ipv4(const std::string& host) { return host == "localhost" ? "127.0.0.1" : host; }

}  // namespace

Result<WorkerAddress> parse_worker_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string host = text.substr(0, std::min(colon, text.size()));
  const std::string digits = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool plain_host =
      !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '-' || c == '_';
      });
  const bool plain_port = !digits.empty() && digits.size() <= 5 &&
                          digits.find_first_not_of("0123456789") == std::string::npos;
  const int port = plain_port ? std::stoi(digits) : 0;
  if (plain_host && port >= 1 && port <= 65535) {
    return WorkerAddress{.host = host, .port = static_cast<std::uint16_t>(port)};
  }
  return invalid_argument("the worker '" + text +
                          "' must be HOST:PORT, a name or an IPv4 address and a port from 1 to "
                          "65535, such as 127.0.0.1:50052");
}

Result<std::vector<WorkerAddress>> parse_worker_addresses(const std::vector<std::string>& texts) {
  if (texts.empty() || texts.size() > kMostWorkers) {
    return invalid_argument(std::to_string(texts.size()) +
                            " workers were given; there may be 1 to " +
                            std::to_string(kMostWorkers));
  }
  std::vector<WorkerAddress> workers;
  for (const std::string& text : texts) {
    Result<WorkerAddress> worker = parse_worker_address(text);
    if (!worker.ok()) return worker.status();
    for (const WorkerAddress& other : workers) {
      // One that is busy with this client would not answer it a second time.
      if (other.port == worker->port && ipv4(other.host) == ipv4(worker->host)) {
        return invalid_argument("the worker '" + text + "' was given twice");
      }
    }
    workers.push_back(std::move(*worker));
  }
  return workers;
}

Result<std::vector<ggml_backend_device*>> worker_devices(const std::vector<std::string>& workers) {
  const auto add_server =
      rpc_function<decltype(&ggml_backend_rpc_add_server)>("ggml_backend_rpc_add_server");
  if (add_server == nullptr) return no_rpc();
  std::vector<ggml_backend_device*> devices;
  for (const std::string& worker : workers) {
    const ggml_backend_reg_t server = add_server(worker.c_str());
    const std::size_t n = server == nullptr ? 0 : ggml_backend_reg_dev_count(server);
    if (n == 0) return internal_error("the worker " + worker + " has no device");
    for (std::size_t i = 0; i < n; ++i) devices.push_back(ggml_backend_reg_dev_get(server, i));
  }
  return devices;
}

bool is_loopback(const std::string& host) {
  in_addr address = {};
  return inet_pton(AF_INET, ipv4(host).c_str(), &address) == 1 &&
         (ntohl(address.s_addr) >> 24) == 127;
}

Status serve_worker(const WorkerOptions& options, const std::function<void()>& listening) {
  const auto start_server =
      rpc_function<decltype(&ggml_backend_rpc_start_server)>("ggml_backend_rpc_start_server");
  if (start_server == nullptr) return no_rpc();
  const std::string host = ipv4(options.host);
  OUTRIDER_RETURN_IF_ERROR(try_to_bind(host, options.port));
  if (!options.cache_folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.cache_folder, error);
    if (error) {
      return invalid_argument("cannot make the folder '" + options.cache_folder +
                              "': " + error.message());
    }
    const std::uint64_t most = static_cast<std::uint64_t>(options.cache_mib) << 20;
    OUTRIDER_RETURN_IF_ERROR(remove_oldest_tensors(options.cache_folder, most).status());
    OUTRIDER_RETURN_IF_ERROR(remove_damaged_tensors(options.cache_folder).status());
  }
  std::vector<ggml_backend_dev_t> devices = devices_to_serve();
  const std::string endpoint = host + ":" + std::to_string(options.port);
  const std::int32_t n_threads = threads_of(options.n_threads);

  // ggml does not say when it listens, so it is asked as a client would.
  std::atomic<bool> over{false};
  const std::jthread asking([&] {
    const WorkerAddress self{.host = host == "0.0.0.0" ? "127.0.0.1" : host, .port = options.port};
    while (!over.load()) {
      const bool serves = check_worker(self, kOwnPatienceMs, &over).ok();
      ask_for_clients(options.port);  // also for one that came before this question
      if (serves) return listening();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  const OnExit told([&over] { over.store(true); });
  const std::shared_ptr<threads::Teams> teams = threads::Teams::shared();
  const ComputeThreads own_threads(*teams);  // it computes on this thread, one client at a time
  start_server(endpoint.c_str(),
               options.cache_folder.empty() ? nullptr : options.cache_folder.c_str(),
               static_cast<std::size_t>(n_threads), devices.size(), devices.data());
  return internal_error("the worker on " + endpoint + " has ended");
}

}  // namespace outrider::llama
