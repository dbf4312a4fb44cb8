#include "json/last_resort.h"

#include <chrono>
#include <cstddef>
#include <mutex>
#include <new>
#include <thread>

namespace outrider::json {
namespace {

// Blocks are given out one behind the other; the room is free again when all have come back, which
// is soon: a destructor holds two at most.
class Reserve {
 public:
  void* allocate(std::size_t bytes) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > sizeof(room_) - used_) return nullptr;
    void* const memory = room_ + used_;
    used_ += bytes;
    ++blocks_;
    return memory;
  }

  // False when it is not from here.
  bool deallocate(const void* memory) {
    const unsigned char* const byte = static_cast<const unsigned char*>(memory);
    if (byte < room_ || byte >= room_ + sizeof(room_)) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--blocks_ == 0) used_ = 0;
    return true;
  }

 private:
  static constexpr std::size_t kAlignment = alignof(std::max_align_t);

  std::mutex mutex_;
  std::size_t used_ = 0;
  std::size_t blocks_ = 0;
  alignas(kAlignment) unsigned char room_[kReserveBytes];
};

// For the whole process, since there is one heap; it must be there before it is needed.
Reserve& reserve() {
  static Reserve room;
  return room;
}

}  // namespace

void* allocate_in_destructor(std::size_t bytes) noexcept {
  for (;;) {
    if (void* const memory = ::operator new(bytes, std::nothrow)) return memory;
    if (void* const memory = reserve().allocate(bytes)) return memory;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void deallocate_in_destructor(void* memory) noexcept {
  if (!reserve().deallocate(memory)) ::operator delete(memory);
}

}  // namespace outrider::json
