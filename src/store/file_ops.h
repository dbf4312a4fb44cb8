// FileOps: the system calls that saving a file makes, so that tests can make each of them fail.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

namespace outrider {

// Every method returns what the system call of its name returns, and on failure -1 with the reason
// in `errno`. The plain methods are the real calls (POSIX). Any thread.
class FileOps {
 public:
  virtual ~FileOps() = default;

  // A new file, which must not exist yet, open for writing; mode 0666 less the umask.
  virtual int create(const std::string& path);
  // Gives the new file the mode of the one that it replaces. Overridden by who decides the mode in
  // create().
  virtual int keep_mode(int file, mode_t old);
  virtual long write(int file, std::span<const std::byte> bytes);  // may write less
  virtual int sync(int file);                                      // to the disk itself
  virtual int close(int file);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int sync_folder(const std::string& folder);  // so that a rename in it lasts
  virtual int remove(const std::string& path);
};

// For texts: what is written by this is for nobody else to read, from its first byte on, also where
// the file that it replaces was for others (made by hand, copied, or of an earlier version).
class PrivateFileOps : public FileOps {
 public:
  int create(const std::string& path) override;
  int keep_mode(int file, mode_t old) override;
};

}  // namespace outrider
