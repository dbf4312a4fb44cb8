#include "remote/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

namespace outrider {
namespace {

// A multiple of the page size of every machine known.
constexpr std::size_t kFlagBytes = 64 * 1024;

static_assert(std::atomic<bool>::is_always_lock_free, "the flag is shared between processes");

std::string reason() { return std::strerror(errno); }

}  // namespace

Result<FileDescriptor> make_nameless_file(const char* what) {
#if defined(__linux__)
  FileDescriptor file(memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.valid()) return file;
#endif
  const char* folder = std::getenv("TMPDIR");
  std::string path = folder != nullptr && *folder != 0 ? folder : "/tmp";
  path += std::string("/") + what + "-XXXXXX";
  FileDescriptor named(mkstemp(path.data()));
  if (!named.valid()) {
    return resource_exhausted("cannot make the temporary file '" + path + "': " + reason());
  }
  unlink(path.c_str());
  fcntl(named.get(), F_SETFD, FD_CLOEXEC);
  return named;
}

Result<SharedMemory> SharedMemory::create() {
  Result<FileDescriptor> file = make_nameless_file("outrider-rows");
  if (!file.ok()) return file.status();
  SharedMemory memory;
  memory.memory_ = std::move(*file);
  if (ftruncate(memory.memory_.get(), kFlagBytes) != 0) {
    return resource_exhausted("cannot make shared memory: " + reason());
  }
  OUTRIDER_RETURN_IF_ERROR(memory.map_flag());
  new (memory.flag_memory_) std::atomic<bool>(false);
  return memory;
}

Result<SharedMemory> SharedMemory::open(FileDescriptor file) {
  struct stat facts = {};
  if (fstat(file.get(), &facts) != 0 || facts.st_size < static_cast<off_t>(kFlagBytes)) {
    return internal_error("the shared memory is missing");
  }
  SharedMemory memory;
  memory.memory_ = std::move(file);
  OUTRIDER_RETURN_IF_ERROR(memory.map_flag());
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : memory_(std::move(other.memory_)),
      flag_memory_(std::exchange(other.flag_memory_, nullptr)),
      rows_(std::exchange(other.rows_, nullptr)),
      n_floats_(std::exchange(other.n_floats_, 0)) {}

SharedMemory::~SharedMemory() {
  if (rows_ != nullptr) munmap(rows_, n_floats_ * sizeof(float));
  if (flag_memory_ != nullptr) munmap(flag_memory_, kFlagBytes);
}

std::atomic<bool>& SharedMemory::flag() const {
  return *std::launder(reinterpret_cast<std::atomic<bool>*>(flag_memory_));
}

Result<FileDescriptor> SharedMemory::duplicate() const {
  FileDescriptor copy(fcntl(memory_.get(), F_DUPFD_CLOEXEC, 0));
  if (copy.valid()) return copy;
  return resource_exhausted("cannot share memory: " + reason());
}

Status SharedMemory::map_flag() {
  void* address =
      mmap(nullptr, kFlagBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), /*offset=*/0);
  if (address == MAP_FAILED) return resource_exhausted("cannot map shared memory: " + reason());
  flag_memory_ = address;
  return Status();
}

Status SharedMemory::make_rows(std::uint64_t n_floats) {
  const std::uint64_t most =
      (static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()) - kFlagBytes) / sizeof(float);
  const off_t size =
      n_floats > most ? -1 : static_cast<off_t>(kFlagBytes + n_floats * sizeof(float));
  if (size < 0 || ftruncate(memory_.get(), size) != 0) {
    return resource_exhausted("cannot make shared memory for " + std::to_string(n_floats) +
                              " logits");
  }
#if defined(F_ADD_SEALS)
  // Not possible for a file on a disk, which is then merely not sealed.
  static_cast<void>(fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
#endif
  return map_rows(n_floats);
}

Status SharedMemory::map_rows(std::uint64_t n_floats) {
  struct stat facts = {};
  const bool fits =
      fstat(memory_.get(), &facts) == 0 && n_floats > 0 &&
      n_floats <= (static_cast<std::uint64_t>(facts.st_size) - kFlagBytes) / sizeof(float);
  if (!fits) return internal_error("the shared memory is too small for the logits");
  void* address = mmap(nullptr, n_floats * sizeof(float), PROT_READ | PROT_WRITE, MAP_SHARED,
                       memory_.get(), static_cast<off_t>(kFlagBytes));
  if (address == MAP_FAILED) return resource_exhausted("cannot map shared memory: " + reason());
  rows_ = static_cast<float*>(address);
  n_floats_ = n_floats;
  return Status();
}

}  // namespace outrider
