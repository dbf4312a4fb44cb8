#include "llama/files/gguf_family.h"

#include <exception>
#include <string_view>

#include "base/fnv.h"
#include "llama/base/backend.h"
#include "llama/base/handles.h"
#include "llama/files/gguf_header.h"

namespace outrider::llama {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";

std::string text_of(const gguf_context* gguf, const char* key) {
  const std::int64_t id = gguf_find_key(gguf, key);
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return "";
  return gguf_get_val_str(gguf, id);
}

// With each token's length, so that no two lists run together.
std::uint64_t tokens_hash(const gguf_context* gguf) {
  const std::int64_t id = gguf_find_key(gguf, kTokens);
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(gguf, id) != GGUF_TYPE_STRING) {
    return 0;
  }
  Fnv1a hash;
  for (std::size_t i = 0; i < gguf_get_arr_n(gguf, id); ++i) {
    const std::string_view token = gguf_get_arr_str(gguf, id, i);
    hash.add(static_cast<std::uint32_t>(token.size()));
    hash.add(token);
  }
  return hash.value() == 0 ? 1 : hash.value();
}

std::uint64_t parameters_of(const gguf_context* gguf) {
  std::uint64_t n = 0;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
    const ggml_type type = gguf_get_tensor_type(gguf, i);
    n += gguf_get_tensor_size(gguf, i) / ggml_type_size(type) *
         static_cast<std::uint64_t>(ggml_blck_size(type));
  }
  return n;
}

Result<GgufHandle> open(const std::string& path) {
  const LogSink no_sink;
  const LogCapture log(no_sink);
  try {
    GgufHandle gguf(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
    if (gguf) return gguf;
    return data_loss("'" + path + "' cannot be read" + log.because());
  } catch (const std::exception& error) {
    return data_loss("'" + path + "' is damaged: " + error.what());
  }
}

}  // namespace

Result<GgufFamily> read_gguf_family(const std::string& path) {
  const Result<GgufHeader> header = read_gguf_header(path);
  if (!header.ok()) return header.status();
  OUTRIDER_RETURN_IF_ERROR(check_is_model(path, *header));
  GgufFamily family{.architecture = header->architecture, .file_bytes = header->file_bytes};
  for (const std::string& part : split_files(path, header->n_splits)) {
    if (part != path) {
      OUTRIDER_ASSIGN_OR_RETURN(const GgufHeader other, read_gguf_header(part));
      family.file_bytes += other.file_bytes;
    }
    const Result<GgufHandle> gguf = open(part);
    if (!gguf.ok()) return gguf.status();
    family.n_parameters += parameters_of(gguf->get());
    if (part != path) continue;
    family.basename = text_of(gguf->get(), "general.basename");
    family.tokenizer = tokens_hash(gguf->get());
  }
  return family;
}

bool could_draft(const GgufFamily& draft, const GgufFamily& target) {
  const bool is_family = draft.architecture == target.architecture ||
                         (!draft.basename.empty() && draft.basename == target.basename);
  return is_family && target.tokenizer != 0 && draft.tokenizer == target.tokenizer &&
         draft.n_parameters > 0 && draft.n_parameters <= target.n_parameters / 3;
}

}  // namespace outrider::llama
