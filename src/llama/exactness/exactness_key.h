// What a verdict of the probe holds for: the same model, build, processor and settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "llama/exactness/exactness_rule.h"
#include "llama/files/model_file.h"
#include "model/model_options.h"

namespace outrider::llama {

// 128 bits of the bytes given so far. For telling files apart, not against an adversary.
class Fingerprint {
 public:
  void add(std::string_view bytes);
  std::string hex() const;  // 32 digits

 private:
  std::uint64_t a_ = 0x6f75747269646572ULL;
  std::uint64_t b_ = 0x9e3779b97f4a7c15ULL;
};

// A file by its content and not by its name: size, its first 64 KiB, and 256 samples of 4 KiB
// spread over it (about 1 ms when cached). Errors: kNotFound, kInternal when it cannot be read.
Result<std::string> fingerprint_file(const std::string& path);

// A model: its file, or all of them where it is split. Errors: fingerprint_file()'s; those of
// read_gguf_header() where it is split.
Result<std::string> fingerprint_model(const std::string& path);

// The build of llama.cpp and of this program, with the hash of the sources that compute
// (source_hash.h), one line.
std::string build_identity();

// The processor and its features, one line. Other devices are named when weights lie there.
std::string machine_identity(bool on_cpu);

// All that a verdict depends on, as lines "name: value". `n_threads` as in effect; `starts`: the
// places that are compared.
// Errors: fingerprint_model()'s.
Result<std::string> exactness_key(const ModelFile& file, const ModelOptions& options,
                                  const LoadPlan& plan, std::int32_t n_threads,
                                  const std::vector<std::int32_t>& starts);

}  // namespace outrider::llama
