// Facts about a model, as its file has them.
#pragma once

#include <cstdint>
#include <string>

#include "model/kernel_use.h"

namespace outrider {

struct ModelInfo {
  std::string path;          // as it was given
  std::string architecture;  // general.architecture: "llama", "gemma3", ...; may be empty
  std::string name;          // general.name, the file's own name for itself; may be empty
  std::string description;   // "llama 135M Q4_1"; may be empty
  std::uint64_t n_params = 0;
  std::uint64_t size_bytes = 0;  // of all tensors
  std::int32_t n_ctx_train = 0;
  bool has_chat_template = false;
  bool chat_tools = false;      // the template has tools, and calls of them in answers
  bool chat_reasoning = false;  // it has reasoning apart from content
  KernelUse kernels;
};

}  // namespace outrider
