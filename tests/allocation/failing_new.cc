#include "tests/allocation/failing_new.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

namespace failing_new = outrider::failing_new;

void* allocate(std::size_t size) noexcept {
  if (failing_new::left_here > 0 && --failing_new::left_here == 0) {
    ++failing_new::failed;
    return nullptr;
  }
  return std::malloc(size == 0 ? 1 : size);
}

void* allocate_or_throw(std::size_t size) {
  void* const memory = allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t n) { return allocate_or_throw(n); }
void* operator new[](std::size_t n) {
  if (!failing_new::no_arrays) return allocate_or_throw(n);
  ++failing_new::refused_arrays;
  throw std::bad_alloc();
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
