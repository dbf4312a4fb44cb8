#include "backend/target_costs.h"

#include <chrono>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <limits>
#include <locale>
#include <sstream>
#include <system_error>

#include "llama/base/backend.h"
#include "llama/exactness/exactness_cache.h"
#include "llama/exactness/exactness_key.h"
#include "llama/files/gguf_header.h"
#include "llama/files/rope_factors.h"
#include "llama/kernels/compute_threads.h"
#include "llama/kernels/own_kernels.h"
#include "model/measure_costs.h"
#include "store/cache_folder.h"

namespace outrider {
namespace {

constexpr const char* kHead = "outrider costs 2";
constexpr std::size_t kMostPoints = 64;

// Empty: there is nothing that can be used.
PassCosts load(const std::filesystem::path& path, const std::string& key) {
  std::ifstream file(path);
  file.imbue(std::locale::classic());  // the app's may read other decimal points
  std::string head;
  std::string written_for;
  std::getline(file, head);
  std::getline(file, written_for);
  if (!file || head != kHead || written_for != key) return {};
  PassCosts costs;
  file >> costs.rebuild_ms;
  if (!file || !(costs.rebuild_ms >= 0.0) || !std::isfinite(costs.rebuild_ms)) return {};
  CostPoint point;
  while (costs.points.size() < kMostPoints && file >> point.width >> point.ms) {
    const bool possible = point.width >= 1 && point.ms > 0.0 && std::isfinite(point.ms);
    if (!possible) return {};
    costs.points.push_back(point);
  }
  return file.eof() ? costs : PassCosts();
}

Status save(const std::filesystem::path& path, const std::string& key, const PassCosts& costs) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << kHead << '\n' << key << '\n' << costs.rebuild_ms << '\n';
  for (const CostPoint& point : costs.points) text << point.width << ' ' << point.ms << '\n';
  return write_cache_file(path, text.str());
}

void tell(const LoadHooks& hooks, const std::string& text) {
  if (hooks.log) hooks.log(LogLevel::kWarning, text);
}

}  // namespace

std::string times_key(const Capabilities& capabilities, const ModelOptions& o) {
  const Result<std::string> file = llama::fingerprint_model(o.path);
  if (!file.ok()) return "";
  std::ostringstream key;
  key.imbue(std::locale::classic());
  key << *file << " | " << llama::build_identity() << " | "
      << llama::machine_identity(/*on_cpu=*/false) << " | threads "
      << llama::threads_of(o.n_threads) << " | batch " << capabilities.n_batch << " | widest "
      << capabilities.max_width << " | gpu layers " << o.n_gpu_layers << " | cache "
      << o.cache_type_k << ' ' << o.cache_type_v << " | flash "
      << static_cast<int>(o.flash_attention) << " | exact " << static_cast<int>(o.exact)
      << " | isolated " << o.isolate << " | kernels "
      << (o.kernels == KernelChoice::kAuto ? llama::own_kernels().instruction_set : "");
  if (capabilities.n_hidden > 0) key << " | hidden " << capabilities.n_hidden;
  for (const std::string& worker : o.workers) key << " | " << worker;
  for (const float share : o.tensor_split) key << " | share " << share;
  for (const std::string& path : o.lora) {
    const Result<std::string> adapter = llama::fingerprint_file(path);
    if (!adapter.ok()) return "";
    key << " | adapter " << *adapter;
  }
  if (o.rope_freq_base > 0.0F || o.rope_freq_scale > 0.0F) {
    // With all digits: bases that differ in the seventh turn keys differently.
    key << std::setprecision(std::numeric_limits<float>::max_digits10) << " | rope "
        << o.rope_freq_base << ' ' << o.rope_freq_scale;
  }
  return key.str();
}

std::string state_key(const std::string& key, const ModelOptions& options) {
  if (key.empty()) return "";
  const Result<llama::GgufHeader> header = llama::read_gguf_header(options.path);
  if (!header.ok()) return "";
  std::vector<std::string> files = llama::split_files(options.path, header->n_splits);
  files.insert(files.end(), options.lora.begin(), options.lora.end());
  llama::Fingerprint state;
  for (const std::string& file : files) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file, error);
    if (error) return "";
    const std::filesystem::file_time_type changed = std::filesystem::last_write_time(file, error);
    if (error) return "";
    const auto ticks =
        std::chrono::duration_cast<std::chrono::nanoseconds>(changed.time_since_epoch());
    state.add(std::to_string(bytes) + ' ' + std::to_string(ticks.count()));
  }
  // Keys that were turned by one set of factors are no keys for queries that the other turns.
  const bool short_factors = llama::takes_short_factors(*header, options.n_ctx);
  const char* factors = header->short_context == 0 ? "" : short_factors ? " | short" : " | long";
  return key + " | files " + state.hex() + factors;
}

Result<PassCosts> target_costs(LanguageModel& model, const std::string& key,
                               const std::filesystem::path& folder, bool refresh,
                               const LoadHooks& hooks) {
  const bool kept = !folder.empty();
  const std::filesystem::path file = llama::cache_file(folder, "costs", key, ".txt");
  if (kept && !refresh) {
    PassCosts known = load(file, key);
    OUTRIDER_ASSIGN_OR_RETURN(const bool hold, costs_hold(model, known, {.cancel = hooks.cancel}));
    if (hold) return known;
  }
  const std::int64_t fewer = llama::graphs_on_fewer_threads();
  Result<PassCosts> measured =
      measure_costs(model, {.progress = hooks.progress, .cancel = hooks.cancel});
  if (measured.status().code() == StatusCode::kCancelled) return measured.status();
  if (!measured.ok()) {
    tell(hooks, "what steps take could not be measured, and is found out while running: " +
                    measured.status().message());
    return PassCosts();
  }
  // What steps take beside another program on fewer threads is not what they take here.
  if (kept && !measured->points.empty() && llama::graphs_on_fewer_threads() == fewer) {
    const Status saved = save(file, key, *measured);
    if (!saved.ok()) tell(hooks, "the measured costs cannot be kept: " + saved.message());
  }
  return measured;
}

}  // namespace outrider
