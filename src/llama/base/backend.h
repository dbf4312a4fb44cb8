// llama.cpp's process-wide side: start-up, the log, and what the machine has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/log.h"

namespace outrider::llama {

// Takes over the logs of llama.cpp and llama-common, which is all that reading a file's header
// needs. It starts no thread. Any thread.
void take_over_log();

// The same, and starts llama.cpp's backends, with a test of our kernels, whose threads stay; the
// first call of the process does the work. Any thread.
void ensure_backend();

// While it lives, what llama.cpp logs on this thread goes to `sink` (which may be empty), line by
// line, and the first error is remembered, so that a failed call can say why. Lines of threads
// without a capture are dropped: llama.cpp has one log for the whole process, and an app that
// embeds us should not find it on its stderr. Captures nest; the innermost one gets the lines.
class LogCapture {
 public:
  // `sink` must outlive the capture.
  explicit LogCapture(const LogSink& sink);
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  // llama.cpp's own reason: the first error line, else the last warning, without the names of
  // functions in front; empty when there was neither.
  std::string reason() const;

  // The reason as an addition to a message: ": <reason>", or "" when there is none.
  std::string because() const;

  void add(LogLevel level, bool continues, std::string_view text);  // for the callback

 private:
  void end_line();

  const LogSink& sink_;
  LogCapture* outer_;
  LogLevel level_ = LogLevel::kInfo;
  std::string line_;  // not ended yet
  std::string first_error_;
  std::string last_warning_;
};

// Whether a reason of llama.cpp's says that memory is short, the machine's or a device's.
bool is_want_of_memory(std::string_view reason);

// Cores to compute with: the physical ones that this thread may use (of two kinds the faster), at
// most usable_processors(); at least 1.
std::int32_t physical_cores();
// Threads to compute with where so many are asked for; 0 or less: physical_cores(). Times and
// states that are kept are known by it.
std::int32_t threads_of(std::int32_t asked);

// Whether there is a device beside the processor: a GPU, say. REQUIRES: ensure_backend()
bool has_other_device();
// Whether ggml has a layout of its own for weights that AMX multiplies, which not every graph can
// use: llama.cpp offers it the matrices of single heads or groups of heads, whose inputs then do
// not lie in one piece, and ends the process when it finds nobody to multiply them.
// REQUIRES: ensure_backend()
bool has_amx_layout();

// Bytes of main memory of the machine, or the limit of the process's control groups when that is
// less; 0 when unknown.
std::uint64_t memory_limit();

}  // namespace outrider::llama
