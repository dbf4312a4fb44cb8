// SharedMemory: what a process and the child that runs its model both see: a flag, and the rows of
// logits. It has no name, so nothing is left behind and nobody else finds it.
//
//      | flag ... | rows: [n_rows, n_vocab] floats |
//
// Made small, since the rows' size is known only once the model is loaded. The parent alone sets
// the size; where the system can (Linux), it is sealed against shrinking, so that a faulty
// child cannot remove pages that the parent reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "remote/file_descriptor.h"

namespace outrider {

class SharedMemory {
 public:
  // The parent's: a new one, with the flag lowered. Errors: kResourceExhausted.
  static Result<SharedMemory> create();

  // The child's: one that the parent made. Errors: kInternal when it is none.
  static Result<SharedMemory> open(FileDescriptor memory);

  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  // Stays where it is, whatever rows are made.
  std::atomic<bool>& flag() const;

  // The parent's, once: makes room for the rows. Errors: kResourceExhausted.
  Status make_rows(std::uint64_t n_floats);

  // The child's, once, after the parent's make_rows() of the same number. Errors: kInternal.
  Status map_rows(std::uint64_t n_floats);

  float* rows() const { return rows_; }                 // null before
  std::uint64_t n_floats() const { return n_floats_; }  // 0 before

  // Another descriptor of the same memory, closed on exec, for the child. Errors:
  // kResourceExhausted.
  Result<FileDescriptor> duplicate() const;

 private:
  SharedMemory() = default;
  Status map_flag();

  FileDescriptor memory_;
  void* flag_memory_ = nullptr;
  float* rows_ = nullptr;
  std::uint64_t n_floats_ = 0;
};

// A file without a name, empty, closed on exec; on Linux in memory. `what` shows up in /proc.
// Errors: kResourceExhausted.
Result<FileDescriptor> make_nameless_file(const char* what);

}  // namespace outrider
