// AtomicFile: a file that appears whole, or not at all.
//
// Idea. What is written for F goes to a new file beside it ("F.<process>-<n>.part"). commit()
// brings it to the disk (fsync), gives it F's name (rename, which replaces the old file
// atomically), and brings the folder to the disk. Whoever opens F at any time, after a crash, a
// kill or a power failure too, finds the old file or the new one, never a mixture and never half of
// one.
//
// A killed process leaves its part file behind, which nobody reads; the next that saves F removes
// it (store/part_files.h).
//
// Source: the usual order, e.g. Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014.
// Tested by atomic_file_test.cc, with every call failing, short writes, and kills at random points.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/file_ops.h"

namespace outrider {

// The file that saving `path` replaces: where a symbolic link leads, so that the link stays a link,
// else `path`. It need not exist. Whoever locks what is read, changed and replaced (file_lock.h)
// goes by this name: others may reach the file by another. Error: kInvalidArgument (a folder, no
// regular file, or an empty name).
Result<std::string> file_to_replace(const std::string& path);

// Movable, one thread at a time; several (in several processes) may save the same file: the last
// one to commit wins.
class AtomicFile {
 public:
  // Begins a new content for `path`, which need not exist; a symbolic link is followed. What killed
  // processes left of earlier contents is removed. `ops` must outlive the file. Errors name `path`:
  // kNotFound (no such folder), kInvalidArgument (as file_to_replace()), kInternal.
  static Result<AtomicFile> create(const std::string& path, FileOps& ops);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Without commit() the part file is removed.
  ~AtomicFile();

  // Appends all of `bytes`. Errors: kResourceExhausted (the disk is full), kInternal; then nothing
  // can be saved any more: the old file stays.
  Status write(std::span<const std::byte> bytes);

  // Makes what was written the file's content. Call once. On error the old file stays, with one
  // exception that the message names: when only the folder could not be synced, the new file is in
  // place but may be the old one again after a power failure.
  Status commit();

 private:
  AtomicFile(FileOps& ops, std::string path, std::string part, int file, int lock);
  Status failure(const char* what, int reason);
  void abandon();

  FileOps* ops_;
  std::string path_;
  std::string part_;
  int file_ = -1;       // -1: closed
  int lock_ = -1;       // a copy of it, so that the file is held until it has its name
  bool exists_ = true;  // the part file
};

// A whole file at once. Errors: those of create(), write() and commit().
Status write_whole_file(const std::string& path, std::string_view contents);
Status write_whole_file(const std::string& path, std::string_view contents, FileOps& ops);

// Whether that can begin, so that a mistake in a name is found before hours of work are. The file
// stays as it is.
Status check_writable(const std::string& path);

}  // namespace outrider
