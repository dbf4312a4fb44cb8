#include "llama/files/adapters.h"

#include <exception>

#include "llama.h"
#include "llama/base/backend.h"
#include "llama/files/gguf_header.h"

namespace outrider::llama {

Result<Adapters> Adapters::load(llama_model* model, const std::vector<std::string>& paths) {
  Adapters adapters;
  for (const std::string& path : paths) {
    // Says more than llama.cpp, which would answer with a null pointer.
    const Result<GgufHeader> header = read_gguf_header(path);
    if (!header.ok()) return header.status().with_context("the adapter");
    if (header->kind != "adapter") {
      return invalid_argument("'" + path + "' is not an adapter (general.type is '" + header->kind +
                              "'); give a LoRA adapter as GGUF");
    }
    const LogSink no_sink;
    const LogCapture log(no_sink);
    llama_adapter_lora* handle = nullptr;
    std::string thrown;
    try {
      handle = llama_adapter_lora_init(model, path.c_str());
    } catch (const std::exception& error) {
      thrown = std::string(": ") + error.what();
    }
    if (handle == nullptr) {
      return invalid_argument("the adapter '" + path + "' does not fit the model" +
                              (thrown.empty() ? log.because() : thrown));
    }
    if (llama_adapter_get_alora_n_invocation_tokens(handle) > 0) {
      return unsupported(
          "the adapter '" + path +
          "' is an activated one (aLoRA), which is not supported; give a plain LoRA");
    }
    adapters.handles_.push_back(handle);
  }
  return adapters;
}

Status Adapters::apply(llama_context* context) const {
  if (handles_.empty()) return Status();
  std::vector<llama_adapter_lora*> handles = handles_;
  std::vector<float> scales(handles.size(), 1.0f);
  try {
    if (llama_set_adapters_lora(context, handles.data(), handles.size(), scales.data()) == 0) {
      return Status();
    }
  } catch (const std::exception& error) {
    return internal_error(std::string("llama.cpp cannot use the adapter: ") + error.what());
  }
  return internal_error("llama.cpp cannot use the adapter");
}

}  // namespace outrider::llama
