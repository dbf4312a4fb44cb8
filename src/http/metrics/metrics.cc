#include "http/metrics/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

namespace outrider::http {
namespace {

constexpr double kMs = 0.001;

using Model = std::pair<std::string, RuntimeStatus>;

// One number of a model: what it has counted, or what its runtime says of now.
template <typename Of>
struct Value {
  std::string_view name;
  std::string_view help;
  double (*get)(const Of& of);
};

template <auto kMember, typename Of>
double value_of(const Of& of) {
  return static_cast<double>(of.*kMember);
}

constexpr Value<RuntimeTotals> kCounters[] = {
    {"outrider:prompt_tokens_total", "Prompt tokens that were evaluated.",
     value_of<&RuntimeTotals::prompt_tokens>},
    {"outrider:cached_tokens_total", "Prompt tokens that were taken from the cache.",
     value_of<&RuntimeTotals::cached_tokens>},
    {"outrider:generation_tokens_total", "Tokens that were generated.",
     value_of<&RuntimeTotals::generated_tokens>},
    {"outrider:completions_started_total", "Completions that were begun.",
     value_of<&RuntimeTotals::started>},
    {"outrider:completions_finished_total", "Completions that have ended in any way.",
     value_of<&RuntimeTotals::finished>},
    {"outrider:target_steps_total", "Target evaluations that gave text.",
     value_of<&RuntimeTotals::steps>},
    // A step that sent any guess sent one behind the text itself.
    {"outrider:spec_decode_num_drafts_total", "Target steps that checked guesses.",
     [](const RuntimeTotals& t) { return static_cast<double>(t.by_depth[0].tested); }},
    {"outrider:spec_decode_num_draft_tokens_total", "Guesses that were checked.",
     value_of<&RuntimeTotals::drafted_tokens>},
    {"outrider:spec_decode_num_accepted_tokens_total", "Guesses that were right.",
     value_of<&RuntimeTotals::accepted_tokens>},
};

constexpr Value<RuntimeStatus> kGauges[] = {
    {"outrider:requests_running", "Completions that are running.",
     value_of<&RuntimeStatus::running>},
    {"outrider:requests_queued", "Completions that wait for a slot.",
     value_of<&RuntimeStatus::queued>},
    {"outrider:slots", "Completions that can run at once.", value_of<&RuntimeStatus::slots>},
};

std::vector<Model> open_models(Catalog& catalog, const std::vector<CatalogStatus>& models) {
  std::vector<Model> open;
  for (const CatalogStatus& model : models) {
    const std::shared_ptr<Runtime> runtime = catalog.find_open(model.name);
    if (runtime != nullptr) open.emplace_back(model.name, runtime->status());
  }
  return open;
}

}  // namespace

void Metrics::note_request(std::string_view endpoint, int status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++requests_[{std::string(endpoint), status}];
}

void Metrics::note_model(const std::string& model, double model_ms) {
  const std::lock_guard<std::mutex> lock(mutex_);
  times_[model].model.add(kMs * model_ms);
}

void Metrics::note_result(const std::string& model, const CompletionResult& result,
                          double before_ms) {
  const Timings& t = result.completion.timings;
  const double slot_ms = before_ms + result.queued_ms;
  const std::lock_guard<std::mutex> lock(mutex_);
  Times& times = times_[model];
  times.queue.add(kMs * slot_ms);
  // Where no token came, what there was is reading.
  const double begun_ms = std::max(t.first_token_ms, t.prompt_ms);
  times.whole.add(kMs * (slot_ms + begun_ms + t.predicted_ms));
  if (result.completion.tokens.empty()) return;
  times.first_token.add(kMs * (slot_ms + t.first_token_ms));
  if (t.predicted_after_first <= 0) return;
  times.per_token.add(kMs * t.predicted_ms / static_cast<double>(t.predicted_after_first),
                      t.predicted_after_first);
}

void Metrics::write(Exposition& out) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  out.family("outrider:requests_total", "counter", "Requests by endpoint and status.");
  for (const auto& [what, count] : requests_) {
    const std::string status = std::to_string(what.second);
    out.sample({{"endpoint", what.first}, {"status", status}}, static_cast<double>(count));
  }
  const auto histogram = [&](std::string_view name, std::string_view help, Histogram Times::*of) {
    out.family(name, "histogram", help);
    for (const auto& [model, times] : times_) out.sample({{"model", model}}, times.*of);
  };
  histogram("outrider:model_wait_seconds",
            "What a request waited for its model to be open; part of the times to its slot and its "
            "tokens.",
            &Times::model);
  histogram("outrider:queue_time_seconds", "From a request to its slot.", &Times::queue);
  histogram("outrider:time_to_first_token_seconds", "From a request to its first token.",
            &Times::first_token);
  histogram("outrider:time_per_output_token_seconds",
            "Between tokens behind the first; of each completion the mean, once for each token.",
            &Times::per_token);
  histogram("outrider:request_time_seconds", "From a request to its last token.", &Times::whole);
}

void write_models(Catalog& catalog, Exposition& out) {
  const std::vector<CatalogStatus> models = catalog.status();
  for (const Value<RuntimeTotals>& value : kCounters) {
    out.family(value.name, "counter", value.help);
    for (const CatalogStatus& model : models) {
      out.sample({{"model", model.name}}, value.get(model.totals));
    }
  }
  out.family("outrider:spec_decode_num_accepted_tokens_per_pos_total", "counter",
             "Guesses that were right, by how many stood before them in the same step.");
  for (const CatalogStatus& model : models) {
    for (std::size_t i = 0; i < model.totals.by_depth.size(); ++i) {
      const std::string position = std::to_string(i);
      if (model.totals.by_depth[i].drafted == 0) continue;
      out.sample({{"model", model.name}, {"position", position}},
                 static_cast<double>(model.totals.by_depth[i].accepted));
    }
  }
  const std::vector<Model> open = open_models(catalog, models);
  for (const Value<RuntimeStatus>& value : kGauges) {
    out.family(value.name, "gauge", value.help);
    for (const auto& [name, status] : open) out.sample({{"model", name}}, value.get(status));
  }
  out.family("outrider:requests_waiting_for_model", "gauge",
             "Requests that wait until their model is open.");
  for (const CatalogStatus& model : models) {
    out.sample({{"model", model.name}}, static_cast<double>(model.waiting));
  }
  out.family("outrider:model_state", "gauge", "1 for the state that a model is in.");
  for (const CatalogStatus& model : models) {
    out.sample({{"model", model.name}, {"state", model_state_name(model.state)}}, 1.0);
  }
}

void write_process(Exposition& out) {
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  if (std::ifstream("/proc/self/statm") >> size >> resident) {
    const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
    out.family("process_resident_memory_bytes", "gauge", "Memory of the process in RAM.");
    out.sample({}, page * static_cast<double>(resident));
  }
  std::error_code error;
  std::filesystem::directory_iterator handles("/proc/self/fd", error);
  if (error) return;    // not on this system
  double count = -1.0;  // one is the iterator's own
  while (!error && handles != std::filesystem::directory_iterator()) {
    count += 1.0;
    handles.increment(error);
  }
  out.family("process_open_fds", "gauge", "Open files and connections.");
  out.sample({}, count);
}

}  // namespace outrider::http
