// Memory for destructors that need some, when there is none.
#pragma once

#include <cstddef>

namespace outrider::json {

// Memory of at least `bytes`, for a short time: from operator new; else from
// a reserve of kReserveBytes for the whole process; else waits until one of them has it. Never
// throws. Any thread.
void* allocate_in_destructor(std::size_t bytes) noexcept;
void deallocate_in_destructor(void* memory) noexcept;

inline constexpr std::size_t kReserveBytes = std::size_t{64} << 10;

}  // namespace outrider::json
