#include "testing/requantize.h"

#include <strings.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "llama.h"
#include "testing/gguf_file.h"

namespace outrider::testing {
namespace {

struct NamedType {
  const char* name;
  llama_ftype type;
};

constexpr NamedType kTypes[] = {
    {"Q1_0", LLAMA_FTYPE_MOSTLY_Q1_0},           {"Q2_0", LLAMA_FTYPE_MOSTLY_Q2_0},
    {"Q4_0", LLAMA_FTYPE_MOSTLY_Q4_0},           {"Q4_1", LLAMA_FTYPE_MOSTLY_Q4_1},
    {"MXFP4_MOE", LLAMA_FTYPE_MOSTLY_MXFP4_MOE}, {"Q5_0", LLAMA_FTYPE_MOSTLY_Q5_0},
    {"Q5_1", LLAMA_FTYPE_MOSTLY_Q5_1},           {"IQ2_XXS", LLAMA_FTYPE_MOSTLY_IQ2_XXS},
    {"IQ2_XS", LLAMA_FTYPE_MOSTLY_IQ2_XS},       {"IQ2_S", LLAMA_FTYPE_MOSTLY_IQ2_S},
    {"IQ2_M", LLAMA_FTYPE_MOSTLY_IQ2_M},         {"IQ1_S", LLAMA_FTYPE_MOSTLY_IQ1_S},
    {"IQ1_M", LLAMA_FTYPE_MOSTLY_IQ1_M},         {"TQ1_0", LLAMA_FTYPE_MOSTLY_TQ1_0},
    {"TQ2_0", LLAMA_FTYPE_MOSTLY_TQ2_0},         {"Q2_K", LLAMA_FTYPE_MOSTLY_Q2_K},
    {"Q2_K_S", LLAMA_FTYPE_MOSTLY_Q2_K_S},       {"IQ3_XXS", LLAMA_FTYPE_MOSTLY_IQ3_XXS},
    {"IQ3_S", LLAMA_FTYPE_MOSTLY_IQ3_S},         {"IQ3_M", LLAMA_FTYPE_MOSTLY_IQ3_M},
    {"Q3_K", LLAMA_FTYPE_MOSTLY_Q3_K_M},         {"IQ3_XS", LLAMA_FTYPE_MOSTLY_IQ3_XS},
    {"Q3_K_S", LLAMA_FTYPE_MOSTLY_Q3_K_S},       {"Q3_K_M", LLAMA_FTYPE_MOSTLY_Q3_K_M},
    {"Q3_K_L", LLAMA_FTYPE_MOSTLY_Q3_K_L},       {"IQ4_NL", LLAMA_FTYPE_MOSTLY_IQ4_NL},
    {"IQ4_XS", LLAMA_FTYPE_MOSTLY_IQ4_XS},       {"Q4_K", LLAMA_FTYPE_MOSTLY_Q4_K_M},
    {"Q4_K_S", LLAMA_FTYPE_MOSTLY_Q4_K_S},       {"Q4_K_M", LLAMA_FTYPE_MOSTLY_Q4_K_M},
    {"Q5_K", LLAMA_FTYPE_MOSTLY_Q5_K_M},         {"Q5_K_S", LLAMA_FTYPE_MOSTLY_Q5_K_S},
    {"Q5_K_M", LLAMA_FTYPE_MOSTLY_Q5_K_M},       {"Q6_K", LLAMA_FTYPE_MOSTLY_Q6_K},
    {"Q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},           {"F16", LLAMA_FTYPE_MOSTLY_F16},
    {"BF16", LLAMA_FTYPE_MOSTLY_BF16},           {"F32", LLAMA_FTYPE_ALL_F32},
};

const NamedType* find_type(const std::string& name) {
  for (const NamedType& type : kTypes) {
    if (strcasecmp(type.name, name.c_str()) == 0) return &type;
  }
  return nullptr;
}

// GGML_TYPE_COUNT: by the whole model's type, or no such name.
ggml_type find_matrix_type(const std::string& name) {
  for (int i = 0; i < GGML_TYPE_COUNT && !name.empty(); ++i) {
    const ggml_type type = static_cast<ggml_type>(i);
    const char* const known = ggml_type_name(type);
    if (known != nullptr && strcasecmp(known, name.c_str()) == 0) return type;
  }
  return GGML_TYPE_COUNT;
}

// Listens to llama.cpp's log while it is alive: remembers the last error and reports progress,
// which the quantiser announces as "[  12/ 272] name - ..." before each tensor.
class LogListener {
 public:
  explicit LogListener(const RequantizeProgress& progress) : progress_(progress) {
    llama_log_get(&old_callback_, &old_data_);
    llama_log_set(&LogListener::on_line, this);
  }
  ~LogListener() { llama_log_set(old_callback_, old_data_); }
  LogListener(const LogListener&) = delete;
  LogListener& operator=(const LogListener&) = delete;

  const std::string& last_error() const { return last_error_; }

 private:
  static void on_line(ggml_log_level level, const char* text, void* self) {
    LogListener& listener = *static_cast<LogListener*>(self);
    if (level == GGML_LOG_LEVEL_ERROR) {
      listener.last_error_ = text;
      while (!listener.last_error_.empty() && listener.last_error_.back() == '\n') {
        listener.last_error_.pop_back();
      }
      return;
    }
    int done = 0;
    int total = 0;
    if (listener.progress_ != nullptr && std::sscanf(text, "[%d/%d]", &done, &total) == 2) {
      listener.progress_(done, total);
    }
  }

  const RequantizeProgress& progress_;
  std::string last_error_;
  ggml_log_callback old_callback_ = nullptr;
  void* old_data_ = nullptr;
};

// llama_model_quantize catches what it throws itself; this catches what it does not.
bool quantize(const std::string& input, const std::string& output,
              const llama_model_quantize_params& params, std::string& error) {
  try {
    return llama_model_quantize(input.c_str(), output.c_str(), &params) == 0;
  } catch (const std::exception& exception) {
    error = exception.what();
    return false;
  }
}

}  // namespace

std::vector<std::string> requantize_types() {
  std::vector<std::string> names;
  for (const NamedType& type : kTypes) names.push_back(type.name);
  return names;
}

Status requantize_gguf(const std::string& input, const std::string& output,
                       const RequantizeOptions& options, const RequantizeProgress& progress) {
  const NamedType* type = find_type(options.type);
  if (type == nullptr) {
    std::string names;
    for (const NamedType& known : kTypes) names += std::string(" ") + known.name;
    return invalid_argument("unknown type '" + options.type + "'; give one of" + names);
  }
  const ggml_type output_type = find_matrix_type(options.output_type);
  if (!options.output_type.empty() && output_type == GGML_TYPE_COUNT) {
    return invalid_argument("unknown type '" + options.output_type +
                            "' of the output; give one of ggml's, as q4_0 or q8_0");
  }
  if (options.n_threads < 0) return invalid_argument("the number of threads is negative");
  if (input == output || same_file(input, output)) {
    return invalid_argument("input and output are the same file '" + input +
                            "'; give another name for the output");
  }
  // Checks the input in words of our own, before llama.cpp sees it.
  const Result<GgufReader> reader = GgufReader::open(input);
  if (!reader.ok()) return reader.status();
  Result<AtomicFile> file = AtomicFile::create(output);
  if (!file.ok()) return file.status();

  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = options.n_threads;
  params.ftype = type->type;
  params.allow_requantize = true;
  params.pure = options.pure;
  params.output_tensor_type = output_type;
  params.token_embedding_type = output_type;
  LogListener listener(progress);
  std::string error;
  if (!quantize(input, file->temporary_path(), params, error)) {
    if (error.empty()) error = listener.last_error();
    return internal_error("'" + input + "' cannot be converted to " + type->name + ": " +
                          (error.empty() ? "llama.cpp gave no reason" : error));
  }
  // A short write that the quantiser did not notice shows here.
  const Result<GgufReader> written = GgufReader::open(file->temporary_path());
  if (!written.ok()) return written.status().with_context("after writing");
  return file->commit(/*durable=*/true);
}

}  // namespace outrider::testing
