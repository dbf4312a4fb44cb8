// Workers: other machines' processors, which hold layers of a model and are reached by ggml's RPC.
//
// A worker is a program that runs ggml's RPC server (`outrider worker`, or llama.cpp's rpc-server
// of the same version). It serves one client at a time and keeps its weights in plain buffers. The
// protocol has no protection at all: whoever reaches the port can write into the worker's memory.
//
// ggml aborts its own process when a worker cannot be reached, speaks another version or dies. So
// addresses and workers are checked before ggml uses them, and what remains (a worker that dies
// later) happens in a process of its own (remote/remote_model.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

struct ggml_backend_device;

namespace outrider::llama {

struct WorkerAddress {
  std::string host;  // a name or an IPv4 address
  std::uint16_t port = 0;

  std::string text() const { return host + ":" + std::to_string(port); }
};

// "host:port". Errors: kInvalidArgument, naming the text.
Result<WorkerAddress> parse_worker_address(const std::string& text);

// All of them, 1 to 16, each once. Errors: kInvalidArgument.
Result<std::vector<WorkerAddress>> parse_worker_addresses(const std::vector<std::string>& texts);

// Connects, says ggml's hello and waits for its answer, at most `timeout_ms` for each of the two.
// While *cancel is true it ends with kCancelled; null: never.
// Errors, each naming the worker: kNotFound (no such host, nobody listens, no answer in time: busy
// with another client, or no worker at all); kUnsupported (another version of the protocol).
Status check_worker(const WorkerAddress& worker, int timeout_ms, const std::atomic<bool>* cancel);

// Their devices, for llama_model_params.devices; connected from now on until the process ends, as
// ggml does it. REQUIRES: check_worker() has passed for each a moment ago.
// Errors: kUnsupported when llama.cpp was built without RPC; kInternal for one without a device.
Result<std::vector<ggml_backend_device*>> worker_devices(const std::vector<std::string>& workers);

struct WorkerOptions {
  std::string host = "127.0.0.1";  // an IPv4 address of this machine, or "localhost"
  std::uint16_t port = 0;          // above 0
  std::int32_t n_threads = 0;      // 0: the physical cores
  std::string cache_folder;        // where large tensors are kept for the next time; empty: nowhere
  std::int64_t cache_mib = 65536;  // that it may have when the worker starts (tensor_cache.h)
};

// True for 127.x.x.x and "localhost".
bool is_loopback(const std::string& host);

// Serves this machine's accelerators, or its processor where it has none, to one client after the
// other, and does not return but for an error. `listening` is called once, from another thread,
// when clients are served. ggml writes to stdout about each client. Errors: kInvalidArgument for
// the address; kResourceExhausted when it is in use or no address of this machine; kUnsupported
// when llama.cpp was built without RPC.
Status serve_worker(const WorkerOptions& options, const std::function<void()>& listening);

}  // namespace outrider::llama
