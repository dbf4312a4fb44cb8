#include "testing/faulty_file_ops.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace outrider::testing {

// True when the call that begins now is to fail; errno is set.
bool FaultyFileOps::fails() {
  const int call = calls_++;
  if (call == kill_at) (void)std::raise(SIGKILL);
  if (call != fail_at && !(stay_broken && call > fail_at)) return false;
  errno = reason;
  return true;
}

int FaultyFileOps::create(const std::string& path) { return fails() ? -1 : FileOps::create(path); }

long FaultyFileOps::write(int file, std::span<const std::byte> bytes) {
  if (calls_ == kill_at) (void)FileOps::write(file, bytes.first(bytes.size() / 2));
  if (fails()) return -1;
  return FileOps::write(file, bytes.first(std::min(bytes.size(), most_per_write)));
}

int FaultyFileOps::sync(int file) { return fails() ? -1 : FileOps::sync(file); }

int FaultyFileOps::close(int file) {
  const int result = FileOps::close(file);
  if (!fail_close) return result;
  errno = reason;
  return -1;
}

// A kill within a rename leaves it undone or done; done is the interesting one here.
int FaultyFileOps::rename(const std::string& from, const std::string& to) {
  if (calls_ == kill_at) (void)FileOps::rename(from, to);
  return fails() ? -1 : FileOps::rename(from, to);
}

int FaultyFileOps::sync_folder(const std::string& folder) {
  return fails() ? -1 : FileOps::sync_folder(folder);
}

}  // namespace outrider::testing
