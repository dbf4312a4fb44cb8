// LoRA adapters: small files that change a model's matrices while it computes (llama.cpp's own).
//
// They belong to the file that they were loaded for (llama/files/model_file.h) and take part in
// every context of it, the probe's included, whose verdict is therefore the adapted model's.
//
// Tested by adapters_test.cc.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

struct llama_adapter_lora;
struct llama_context;
struct llama_model;

namespace outrider::llama {

class Adapters {
 public:
  // Loads the files at `paths` for `model`, which frees them with itself and must outlive this.
  // Errors, each naming the file: kNotFound; kInvalidArgument (no adapter, another model's);
  // kUnsupported (one that only works from a certain token on); kDataLoss.
  static Result<Adapters> load(llama_model* model, const std::vector<std::string>& paths);

  // Lets `context`, a fresh one of the model, compute with all of them at full strength.
  // Errors: kInternal.
  Status apply(llama_context* context) const;

 private:
  std::vector<llama_adapter_lora*> handles_;
};

}  // namespace outrider::llama
