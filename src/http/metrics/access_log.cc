#include "http/metrics/access_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "json/json.h"

namespace outrider::http {
namespace {

constexpr mode_t kOwnerOnly = 0600;  // who asked, and when, is nobody else's business

Result<int> open_file(const std::string& path) {
  if (path == "-") return STDERR_FILENO;
  // A pipe that nobody reads is an error (ENXIO), and not waited for; who writes then does wait.
  const int file =
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, kOwnerOnly);
  if (file >= 0) {
    const int flags = ::fcntl(file, F_GETFL);
    if (flags >= 0) ::fcntl(file, F_SETFL, flags & ~O_NONBLOCK);
    return file;
  }
  return not_found("cannot write to '" + path + "': " + std::strerror(errno))
      .in_field("access_log");
}

void close_file(int file) {
  if (file != STDERR_FILENO) ::close(file);
}

std::int64_t size_of(int file) {
  struct stat about = {};
  return ::fstat(file, &about) == 0 ? static_cast<std::int64_t>(about.st_size) : 0;
}

bool is_file(const std::string& path) {
  struct stat about = {};
  return ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

bool lies_at(const std::string& path, int file) {
  struct stat there = {};
  struct stat ours = {};
  return ::lstat(path.c_str(), &there) == 0 && ::fstat(file, &ours) == 0 &&
         there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

double rounded(double ms) { return std::round(ms * 1000.0) / 1000.0; }

}  // namespace

Result<std::unique_ptr<LineFile>> LineFile::open(const std::string& path, std::int64_t most_bytes,
                                                 std::function<void(const Status&)> lost) {
  OUTRIDER_ASSIGN_OR_RETURN(const int file, open_file(path));
  return std::unique_ptr<LineFile>(
      new LineFile(path, file, path == "-" ? 0 : most_bytes, std::move(lost)));
}

LineFile::LineFile(std::string path, int file, std::int64_t most_bytes,
                   std::function<void(const Status&)> lost)
    : path_(std::move(path)),
      most_bytes_(most_bytes),
      lost_(std::move(lost)),
      file_(file),
      may_move_(is_file(path_)) {}

LineFile::~LineFile() { close_file(file_); }

void LineFile::write(std::string_view line) {
  std::string whole(line);
  whole += '\n';
  const std::lock_guard<std::mutex> lock(mutex_);
  reopen_where_asked();
  make_room(whole.size());
  // O_APPEND: one call is one line, also when several processes share the file.
  ssize_t written = 0;
  do {
    written = ::write(file_, whole.data(), whole.size());
  } while (written < 0 && errno == EINTR);
  if (written >= 0) errno = ENOSPC;  // what takes only a part
  tell(written == static_cast<ssize_t>(whole.size()));
  reopen_where_asked();
}

void LineFile::reopen_where_asked() {
  if (!is_reopening_asked_.exchange(false)) return;
  const Status reopened = reopen_locked();
  if (!reopened.ok() && lost_) lost_(reopened);
}

// REQUIRES: where it is not written, errno says why
void LineFile::tell(bool is_written) {
  const int reason = errno;
  const bool was_losing = std::exchange(is_losing_, !is_written);
  if (is_written || was_losing || !lost_) return;
  lost_(
      internal_error("lines of the access log '" + path_ + "' are lost: " + std::strerror(reason)));
}

// Where the file cannot be moved, lines go on into it. Other processes may write into it as well,
// so its size is asked of the system; and they, or logrotate, may have moved it, and what lies
// there now is a younger one, which would take the place of all that the old one holds.
void LineFile::make_room(std::size_t bytes) {
  if (most_bytes_ == 0 || !may_move_) return;
  const std::int64_t size = size_of(file_);
  if (size == 0 || size + static_cast<std::int64_t>(bytes) <= most_bytes_) return;
  // Between the look and the move nobody else may move it. Who has the lock does that now; a file
  // system without locks gets none.
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
  const bool is_gone =
      !lies_at(path_, file_) || std::rename(path_.c_str(), (path_ + ".1").c_str()) == 0;
  ::flock(file_, LOCK_UN);
  if (is_gone) (void)reopen_locked();
}

Status LineFile::reopen() {
  is_reopening_asked_ = true;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !is_reopening_asked_.exchange(false)) return Status();
  return reopen_locked();
}

Status LineFile::reopen_locked() {
  OUTRIDER_ASSIGN_OR_RETURN(const int file, open_file(path_));
  close_file(file_);
  file_ = file;
  may_move_ = is_file(path_);
  return Status();
}

std::string access_line(const AccessEntry& entry, const CallRecord& record) {
  json::Json line = {{"time", entry.time},  {"remote", entry.remote}, {"method", entry.method},
                     {"path", entry.path},  {"status", entry.status}, {"ms", rounded(entry.ms)},
                     {"bytes", entry.bytes}};
  if (record.key > 0) line["key"] = record.key;
  if (!record.model.empty()) line["model"] = record.model;
  if (record.completions > 0) {
    line["prompt_tokens"] = record.prompt_tokens;
    line["completion_tokens"] = record.completion_tokens;
    line["drafted"] = record.drafted;
    line["accepted"] = record.accepted;
    line["model_ms"] = rounded(record.model_ms);
    line["first_token_ms"] =
        record.first_token_ms < 0.0 ? json::Json() : json::Json(rounded(record.first_token_ms));
    line["finish"] = std::string(record.finish);
  }
  return json::encode(line);
}

std::string utc_now() {
  using std::chrono::milliseconds;
  using std::chrono::system_clock;
  const system_clock::time_point now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  const auto ms =
      std::chrono::duration_cast<milliseconds>(now - system_clock::from_time_t(seconds)).count();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + size, text.size() - size, ".%03dZ", static_cast<int>(ms));
  return text.data();
}

}  // namespace outrider::http
