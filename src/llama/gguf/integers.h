// Whole numbers of a GGUF file's metadata. Files differ in the type that they give a number, so all
// eight integer types are taken; ggml's own readers abort where it is not the one they are for.
// Tested by integers_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct gguf_context;

namespace outrider::gguf {

// The key's integers, in order; a single one is a list of one. Empty: no such key, or other values
// (strings, floats, booleans). What is above the range of 64 bits with a sign becomes its largest.
std::vector<std::int64_t> integers(const gguf_context* gguf, const std::string& key);

// The key's single integer. Empty also for a list.
std::optional<std::int64_t> integer(const gguf_context* gguf, const std::string& key);

// The nearest number of 32 bits.
std::int32_t in_32_bits(std::int64_t value);

}  // namespace outrider::gguf
