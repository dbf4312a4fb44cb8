// Which sources of ours compute: what is kept of other ones is not taken for theirs.
#pragma once

#include <string_view>

namespace outrider::llama {

// 16 hexadecimal digits over the kernels, the adapter and the probe, as CMakeLists.txt lists them
// (outrider_hash_sources), tests left out. Made when this is built (cmake/source_hash.cmake).
// Static storage, any thread. Tested by tests/source_hash_test.py.
std::string_view source_hash() noexcept;

}  // namespace outrider::llama
