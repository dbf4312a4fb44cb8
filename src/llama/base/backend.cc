#include "llama/base/backend.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <mutex>
#include <string_view>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#endif

#include "base/machine_memory.h"
#include "base/usable_processors.h"
#include "common.h"
#include "ggml-backend.h"
#include "jinja/value.h"
#include "llama.h"
#include "llama/kernels/own_kernels.h"
#include "log.h"

namespace outrider::llama {
namespace {

// llama.cpp's callback has no place for a caller's context that differs per thread.
LogCapture*& innermost_capture() {
  static thread_local LogCapture* capture = nullptr;
  return capture;
}

LogLevel level_of(ggml_log_level level) {
  switch (level) {
    case GGML_LOG_LEVEL_ERROR:
      return LogLevel::kError;
    case GGML_LOG_LEVEL_WARN:
      return LogLevel::kWarning;
    case GGML_LOG_LEVEL_DEBUG:
      return LogLevel::kDebug;
    default:
      return LogLevel::kInfo;
  }
}

// Called by C code, so nothing may be thrown; a line that cannot be stored is lost.
void on_log(ggml_log_level level, const char* text, void* /*user*/) noexcept {
  LogCapture* capture = innermost_capture();
  if (capture == nullptr || text == nullptr) return;
  try {
    capture->add(level_of(level), level == GGML_LOG_LEVEL_CONT, text);
  } catch (const std::exception&) {
  }
}

// "llama_model_load: error loading model: no vocabulary" -> "no vocabulary"
std::string_view without_function_names(std::string_view line) {
  constexpr std::string_view kNoise = "error loading model: ";
  while (true) {
    if (line.starts_with(kNoise)) {
      line.remove_prefix(kNoise.size());
      continue;
    }
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) return line;
    const std::string_view word = line.substr(0, colon);
    const bool is_function =
        word.find('_') != std::string_view::npos &&
        std::all_of(word.begin(), word.end(), [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
        });
    if (!is_function) return line;
    line.remove_prefix(colon + 2);
  }
}

// The layouts that the processor's backend has beside the file's: buffer types, null at the end;
// null where there are none.
ggml_backend_buffer_type_t* extra_layouts() {
  const ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr) return nullptr;
  void* const found = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu),
                                                        "ggml_backend_dev_get_extra_bufts");
  if (found == nullptr) return nullptr;
  return reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(found)(cpu);
}

// ggml makes this table when a first model is loaded, and looks into it with every operation. Made
// here, it also outlives whatever is registered for the process's end from now on: a decode thread
// that an exit handler ends would otherwise compute without it (a crash, in two of three exits).
void make_tables() { (void)extra_layouts(); }

// The same for llama-common's tables of a template's functions, which are made when the first
// template is rendered: a load that goes on when the process ends renders one.
void make_template_tables() {
  (void)jinja::global_builtins();
  (void)jinja::value_int_t(0).get_builtins();
  (void)jinja::value_float_t(0.0).get_builtins();
  (void)jinja::value_string_t().get_builtins();
  (void)jinja::value_bool_t(false).get_builtins();
  (void)jinja::value_array_t().get_builtins();
  (void)jinja::value_object_t().get_builtins();
  (void)jinja::value_none_t().get_builtins();
  (void)jinja::value_undefined_t().get_builtins();
}

// As llama.cpp asks it, which then counts the faster ones only.
bool has_two_kinds_of_cores() {
#if defined(__x86_64__) && defined(__linux__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1U << 15)) != 0;
#else
  return false;
#endif
}

}  // namespace

void take_over_log() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(on_log, nullptr);
    // llama-common has a log of its own, a thread that writes to stdout and stderr.
    common_log_set_verbosity_thold(-1);
  });
}

void ensure_backend() {
  take_over_log();
  static std::once_flag once;
  std::call_once(once, [] {
    register_own_kernels();  // before ggml's devices are asked for anything
    llama_backend_init();
    make_tables();
    make_template_tables();
  });
}

LogCapture::LogCapture(const LogSink& sink) : sink_(sink), outer_(innermost_capture()) {
  innermost_capture() = this;
}

LogCapture::~LogCapture() { innermost_capture() = outer_; }

void LogCapture::add(LogLevel level, bool continues, std::string_view text) {
  if (!continues) {
    if (!line_.empty()) end_line();
    level_ = level;
  }
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    line_ += text.substr(0, newline);
    if (newline == std::string_view::npos) return;
    text.remove_prefix(newline + 1);
    end_line();
  }
}

void LogCapture::end_line() {
  const std::string line = std::move(line_);
  line_.clear();
  if (line.empty()) return;
  if (level_ == LogLevel::kError && first_error_.empty()) first_error_ = line;
  if (level_ == LogLevel::kWarning) last_warning_ = line;
  if (sink_) sink_(level_, line);
}

std::string LogCapture::reason() const {
  return std::string(without_function_names(first_error_.empty() ? last_warning_ : first_error_));
}

std::string LogCapture::because() const {
  const std::string text = reason();
  return text.empty() ? "" : ": " + text;
}

bool is_want_of_memory(std::string_view reason) {
  // "unable to allocate CUDA0 buffer", "allocating 17000.00 MiB on device 0: cudaMalloc failed: out
  // of memory", "Device memory allocation of size 17825792000 failed", "std::bad_alloc"
  constexpr std::array<std::string_view, 3> kWords{"allocat", "bad_alloc", "out of memory"};
  return std::any_of(kWords.begin(), kWords.end(), [reason](std::string_view word) {
    return reason.find(word) != std::string_view::npos;
  });
}

std::int32_t physical_cores() {
  // llama.cpp counts the cores of the machine, whichever this process may run on, and stops at the
  // first processor that is offline.
  std::int32_t cores = usable_cores();
  if (cores == 0) {
    cores = common_cpu_get_num_math();
  } else if (has_two_kinds_of_cores()) {
    cores = std::min(cores, common_cpu_get_num_math());  // those that compute alike
  }
  return std::clamp(cores, 1, usable_processors());
}

std::int32_t threads_of(std::int32_t asked) { return asked > 0 ? asked : physical_cores(); }

bool has_other_device() {
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const enum ggml_backend_dev_type type = ggml_backend_dev_type(ggml_backend_dev_get(i));
    if (type != GGML_BACKEND_DEVICE_TYPE_CPU && type != GGML_BACKEND_DEVICE_TYPE_ACCEL) return true;
  }
  return false;
}

bool has_amx_layout() {
  ggml_backend_buffer_type_t* layout = extra_layouts();
  if (layout == nullptr) return false;
  for (; *layout != nullptr; ++layout) {
    if (std::string_view(ggml_backend_buft_name(*layout)) == "AMX") return true;
  }
  return false;
}

std::uint64_t memory_limit() {
  std::uint64_t limit = 0;
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_size > 0) {
    limit = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_size);
  }
#endif
  const std::uint64_t group = control_group_limit();
  if (group > 0) limit = limit == 0 ? group : std::min(limit, group);
  return limit;
}

}  // namespace outrider::llama
