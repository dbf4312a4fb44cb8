// The access log: a line of JSON for each request, when its answer has been written or given up.
//
//   {"time":"2026-11-23T18:01:02.345Z","remote","method","path","status","ms","bytes"}; where one
//   of the server's keys was shown, "key", its number (access.h); and, where completions ended,
//   "model","prompt_tokens","completion_tokens","drafted","accepted","model_ms","first_token_ms",
//   "finish"
//
// Never the keys themselves, headers, queries, prompts or answers. Tested by access_log_test.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/status.h"
#include "http/exchange/exchange.h"

namespace outrider::http {

// Where lines go. Any thread.
class LineSink {
 public:
  virtual ~LineSink() = default;
  virtual void write(std::string_view line) = 0;  // without a newline
};

// Appends to a file; "-": stderr.
class LineFile : public LineSink {
 public:
  // With `most_bytes` above 0 a file that a line would make longer becomes "<path>.1", in the place
  // of the one before, and a new one begins; so at most twice that much is kept. Not for "-",
  // nor for what is no file (a pipe, a device) or a link to one: whoever reads there would be left.
  // Of several processes that share the file, and have one limit, whoever comes to it first moves
  // it, and the others go on in the new one. Errors: kNotFound (it cannot be opened: why; so is a
  // pipe that nobody reads). `lost` (may be empty) is told of the first line that could not be
  // written, and of the first again once one could: on the thread that writes, which must not be
  // asked to write meanwhile.
  static Result<std::unique_ptr<LineFile>> open(const std::string& path,
                                                std::int64_t most_bytes = 0,
                                                std::function<void(const Status&)> lost = {});
  ~LineFile() override;
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // A whole line or nothing of it, as far as the disk allows; a full disk loses lines and nothing
  // else, and open()'s `lost` is told.
  void write(std::string_view line) override;

  // Goes on with the file of that name, after somebody has moved the old one away. An error leaves
  // it with the old one. Does not wait for a line that is being written (into a pipe that nobody
  // reads, say): then who writes it opens the file behind it, and `lost` is told of an error.
  Status reopen();

 private:
  LineFile(std::string path, int file, std::int64_t most_bytes,
           std::function<void(const Status&)> lost);
  void tell(bool is_written);
  void reopen_where_asked();
  Status reopen_locked();
  void make_room(std::size_t bytes);

  const std::string path_;
  const std::int64_t most_bytes_;  // 0: any number
  const std::function<void(const Status&)> lost_;
  std::atomic<bool> is_reopening_asked_{false};
  std::mutex mutex_;  // guards what follows
  int file_;
  bool may_move_;           // there is a file of that name, and no link or pipe
  bool is_losing_ = false;  // the last line
};

struct AccessEntry {
  std::string time;  // UTC, ISO 8601
  std::string remote;
  std::string method;
  std::string path;
  int status = 0;
  double ms = 0.0;
  std::int64_t bytes = 0;  // of the body
};

std::string access_line(const AccessEntry& entry, const CallRecord& record);

// "2026-11-23T18:01:02.345Z".
std::string utc_now();

}  // namespace outrider::http
