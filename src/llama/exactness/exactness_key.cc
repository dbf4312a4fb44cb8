#include "llama/exactness/exactness_key.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "base/random.h"
#include "build-info.h"
#include "ggml-backend.h"
#include "llama.h"
#include "llama/base/backend.h"
#include "llama/exactness/source_hash.h"
#include "llama/files/gguf_header.h"

namespace outrider::llama {
namespace {

constexpr std::uint64_t kHeadBytes = 64 * 1024;
constexpr std::uint64_t kSampleBytes = 4096;
constexpr std::uint64_t kSamples = 256;

std::string line(std::string_view name, std::string_view value) {
  std::string text(name);
  text += ": ";
  text += value;
  text += '\n';
  std::replace(text.begin(), text.end() - 1, '\n', ' ');
  return text;
}

// What the kernel says about the first processor, where it says it in a file.
std::string cpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  for (std::string row; std::getline(file, row) && !row.empty();) {
    for (const std::string_view wanted : {"model name", "flags", "Features", "CPU part"}) {
      if (row.starts_with(wanted)) text += row.substr(row.find(':') + 1) + ';';
    }
  }
  return text;
}

}  // namespace

void Fingerprint::add(std::string_view bytes) {
  const std::uint64_t size = bytes.size();
  a_ = mix64(a_ ^ size);
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), n);
    a_ = mix64(a_ ^ word);
    b_ = mix64(b_ + word * 0xd1342543de82ef95ULL) ^ (a_ >> 7);
    bytes.remove_prefix(n);
  }
}

std::string Fingerprint::hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(mix64(a_)),
                static_cast<unsigned long long>(mix64(b_)));
  return text;
}

Result<std::string> fingerprint_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read '" + path + "'");
  file.seekg(0, std::ios::end);
  const std::uint64_t size = static_cast<std::uint64_t>(std::max<std::streamoff>(0, file.tellg()));
  Fingerprint fingerprint;
  fingerprint.add(std::to_string(size));
  std::vector<char> buffer(kHeadBytes);
  const auto add_at = [&](std::uint64_t offset, std::uint64_t n) {
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(buffer.data(), static_cast<std::streamsize>(n));
    fingerprint.add({buffer.data(), static_cast<std::size_t>(file.gcount())});
    return file.good();
  };
  bool good = add_at(0, std::min(size, kHeadBytes));
  if (size > kHeadBytes + kSampleBytes) {
    const std::uint64_t span = size - kHeadBytes - kSampleBytes;
    for (std::uint64_t i = 0; good && i < kSamples; ++i) {
      good = add_at(kHeadBytes + span * i / (kSamples - 1), kSampleBytes);
    }
  }
  if (!good) return internal_error("cannot read '" + path + "'");
  return fingerprint.hex();
}

Result<std::string> fingerprint_model(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::vector<std::string> files, files_of_model(path));
  std::string text;
  for (const std::string& file : files) {
    OUTRIDER_ASSIGN_OR_RETURN(const std::string fingerprint, fingerprint_file(file));
    text += (text.empty() ? "" : " ") + fingerprint;
  }
  if (files.size() == 1) return text;
  Fingerprint all;  // of some models there are a hundred files
  all.add(text);
  return all.hex();
}

std::string build_identity() {
  // Asked once: llama.cpp writes it into one string of the process, and two instances may open
  // their targets at once.
  static const std::string kSystem = llama_print_system_info();
  std::string text = "llama.cpp " + std::string(llama_commit()) + ", " + llama_compiler() + ", " +
                     llama_build_target() + ", " + kSystem;
#if defined(OUTRIDER_VERSION)
  text += ", outrider " OUTRIDER_VERSION;
#endif
#if defined(OUTRIDER_BUILD)
  text += ", " OUTRIDER_BUILD;
#endif
#if defined(OUTRIDER_MACHINE)
  text += ", machine " + std::to_string(OUTRIDER_MACHINE);
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  text += ", sanitized";
#endif
  return text + ", sources " + std::string(source_hash());
}

std::string machine_identity(bool on_cpu) {
  ensure_backend();
  std::string text;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    const bool is_cpu = ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
    if (on_cpu && !is_cpu) continue;
    text += std::string(ggml_backend_dev_name(device)) + " " +
            ggml_backend_dev_description(device) + "; ";
  }
  Fingerprint features;
  features.add(cpuinfo());
  return text + features.hex();
}

Result<std::string> exactness_key(const ModelFile& file, const ModelOptions& options,
                                  const LoadPlan& plan, std::int32_t n_threads,
                                  const std::vector<std::int32_t>& starts) {
  const ModelFacts& facts = file.facts();
  const Result<std::string> content = fingerprint_model(facts.path);
  if (!content.ok()) return content.status();
  Fingerprint metadata;
  for (const std::pair<std::string, std::string>& entry : file.metadata()) {
    metadata.add(entry.first);
    metadata.add(entry.second);
  }
  std::string places;
  for (const std::int32_t start : starts) places += std::to_string(start) + " ";
  std::string adapters;
  for (const std::string& path : options.lora) {
    const Result<std::string> adapter = fingerprint_file(path);
    if (!adapter.ok()) return adapter.status();
    adapters += ", adapter " + *adapter;
  }
  std::string shares;
  for (const float share : options.tensor_split) shares += " " + std::to_string(share);
  const ContextSettings& context = plan.context;
  const std::string hidden = context.hidden.text();
  return line("model", facts.description + ", " + std::to_string(facts.size_bytes) + " bytes, " +
                           *content + ", " + metadata.hex() + adapters) +
         line("build", build_identity()) + line("machine", machine_identity(facts.all_on_cpu)) +
         line("gpu layers",
              facts.all_on_cpu ? "0" : std::to_string(options.n_gpu_layers) + shares) +
         line("threads", std::to_string(n_threads)) +
         line("batch", std::to_string(std::min(options.n_batch, 512))) +
         line("sequences", std::to_string(std::clamp(options.n_sequences, 1, 3))) +
         line("starts", places) + line("buffers", plan.extra_bufts ? "extra" : "plain") +
         line("kernels", facts.kernels.own ? facts.kernels.instruction_set : "stock") +
         line("flash attention", context.flash_attention ? "on" : "off") +
         line("cache", context.type_k + "/" + context.type_v) +
         (hidden.empty() ? "" : line("hidden states", hidden));
}

}  // namespace outrider::llama
