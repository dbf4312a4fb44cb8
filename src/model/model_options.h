// The options of a model that is to be opened.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/field.h"
#include "base/log.h"
#include "model/exactness.h"
#include "model/kernel_use.h"

namespace outrider {

enum class FlashAttention { kAuto, kOn, kOff };

enum class HeadChoice { kAuto, kOff };  // used where there is one, or not

// What a target is opened for where nobody says otherwise, and so when the planner chooses widths.
// Measured costs are kept for it.
inline constexpr std::int32_t kOpenedWidth = 16;

struct ModelOptions {
  std::string path;                // of a GGUF file
  std::int32_t n_ctx = 4096;       // tokens of one sequence; 0: what the model was trained with
  std::int32_t n_sequences = 1;    // sequences at once, 1 to kMaxSequences
  std::int32_t n_batch = 512;      // most tokens of one evaluation, at least 1
  std::int32_t n_threads = 0;      // 0: the processor's physical cores
  std::int32_t n_gpu_layers = -1;  // -1: all
  std::string cache_type_k;        // "f16", "q8_0", ...; empty: by the exactness rule
  std::string cache_type_v;
  FlashAttention flash_attention = FlashAttention::kAuto;  // kAuto: by the exactness rule
  ExactMode exact = ExactMode::kAuto;
  KernelChoice kernels = KernelChoice::kAuto;

  // Of the file and its devices. What is not given is as the file and llama.cpp have it.
  std::vector<float> tensor_split;  // share of each GPU, >= 0; empty: by their free memory
  std::vector<std::string> lora;    // LoRA adapters (GGUF), each at full strength
  bool use_mmap = true;             // false: read the file instead of mapping it
  bool use_mlock = false;           // keep the weights from being swapped out
  float rope_freq_base = 0.0f;      // >= 0; 0: the file's
  float rope_freq_scale = 0.0f;     // likewise

  // A target's only: where it runs.
  std::vector<std::string> workers;  // "host:port" of ggml RPC servers that hold its layers
  bool isolate = false;  // in a child process, whose crash is an error; workers imply it
  // With workers: how long one call of the target may go without a word of its process, which waits
  // for them, before the target is given up; 0: for ever.
  std::int32_t worker_timeout_s = 300;

  // A target's only: what the settings of ExactMode::kOn and the probe depend on. The same with and
  // without speculation, so that the text is.
  std::int32_t widest = kOpenedWidth;  // most tokens of one sequence in a step, 1 to kMaxStepWidth

  // A target's only: the file of a trained head (EAGLE-3, DFlash) that will be its draft. The
  // target is opened with the hidden states that it reads; empty, or a file that is no head:
  // without. Not in another process.
  std::string head;

  // A target's only: where its file has prediction layers, they are loaded and guess (drafter mtp).
  // Not in another process, nor beside a head in a file of its own, which reads other states.
  HeadChoice mtp = HeadChoice::kAuto;

  friend bool operator==(const ModelOptions&, const ModelOptions&) = default;
};

// What interfaces let users set of it, each with its name, range and help. Static storage.
std::span<const Field<ModelOptions>> model_fields();

// Every range of these. Errors: kInvalidArgument, about the field.
Status validate(const ModelOptions& options);

// Loading's progress and end. Called from the loading thread.
struct LoadHooks {
  std::function<void(double fraction)> progress;  // 0 to 1; may be empty
  const std::atomic<bool>* cancel = nullptr;      // raised: loading ends with kCancelled
  LogSink log;                                    // llama.cpp's own lines; may be empty
};

}  // namespace outrider
