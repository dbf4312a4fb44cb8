// DownloadJob: the part of a download that may block, on a thread of its own, and what it tells.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "llama/download/hub.h"
#include "llama/download/hub_download.h"

namespace outrider::llama {

constexpr std::chrono::milliseconds kAskAgain{100};  // who waits for another's download

// Shared by the thread and whoever waits for it; the latter may leave first.
struct DownloadJob {
  HubName name;
  Hub hub;
  std::atomic<bool> cancel{false};

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::string what;             // is being done
  double fraction = 0.0;        // of it
  std::uint64_t n_changes = 0;  // of these two, by which a waiter sees that it goes on
  std::string part;             // the file that grows while something comes; empty: none
  std::optional<Result<DownloadedModel>> result;

  void tell(const std::string& now_what, double now_fraction);
  void watch(const std::string& path);
};

// All of it: asks, fetches, checks. Never throws.
void run_download(DownloadJob& job);

}  // namespace outrider::llama
