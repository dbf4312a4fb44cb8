// outrider rpc: the methods over standard input and output.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <string>

#include "api/json_rpc.h"
#include "api/service.h"
#include "api/update_json.h"
#include "backend/llama_loader.h"
#include "draft/suffix/suffix_memory.h"
#include "tools/call_pool.h"
#include "tools/command.h"
#include "tools/line_reader.h"
#include "tools/model_options.h"
#include "tools/options.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/speculation_options.h"
#include "tools/text_output.h"
#include "tools/usage.h"

namespace outrider::tools {
namespace {

constexpr std::int64_t kMaxInt32 = 2147483647;

constexpr const char* kRpcDetails =
    "One JSON-RPC 2.0 message a line on standard input, one answer a line on standard output; "
    "'system.methods' lists what can be asked. Lines are worked on at once, so answers may come in "
    "another order than their questions: they carry the ids. The end of the input is waited for, "
    "and then for the answers (with --events, for all completions); Ctrl-C ends what runs with "
    "what there is.\n"
    "Example: echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion.run\",\"params\":"
    "{\"prompt\":\"Hello\"}}' | outrider rpc -m target.gguf";

class RpcCommand : public Command {
 public:
  std::string name() const override { return "rpc"; }
  std::string summary() const override { return "serve JSON-RPC 2.0 on stdin and stdout"; }
  std::string details() const override { return kRpcDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  int load_models(Runtime& runtime, const SignalWatch& signals) const;
  Status load_one(Runtime& runtime, ModelRole role, const SignalWatch& signals) const;
  std::vector<DrafterFile> drafter_files() const;
  Status attach_files(Runtime& runtime) const;
  void read_lines(api::Service& service, LineReader& reader, CallPool& pool);
  void wait_for_results(const Runtime& runtime, const SignalWatch& signals);
  void say(const std::string& line);
  void answer(api::Service& service, const std::string& line) noexcept;
  void tell(const RuntimeEvent& event) noexcept;
  bool output_failed();

  ModelArguments model_;
  RuntimeOptions runtime_;
  std::vector<std::string> suffix_stores_;
  NgramArguments ngrams_;
  std::int32_t calls_ = 64;
  bool events_ = false;
  std::atomic<std::int64_t> results_told_{0};  // events that hold a completion's result

  std::mutex output_mutex_;
  TextOutput output_{STDOUT_FILENO, /*color=*/false};
  std::atomic<LineReader*> reader_{nullptr};
};

void RpcCommand::add_options(CLI::App& app) {
  add_model_options(app, model_);
  add_exact_option(app, "Model", model_);
  OptionGroup speculation(app, "Speculation");
  add_suffix_store_option(speculation, suffix_stores_);
  add_ngram_options(app, ngrams_, "Speculation",
                    "ngram-cache: what earlier texts held; is only read");
  speculation.add_integer(
      "--remember-tokens", runtime_.remember_tokens, 0, SuffixMemory::kMostTokens,
      "tokens of finished texts that the drafter suffix remembers, a quarter of them for one "
      "namespace at most; 0 (none), or at least 1024. A completion's text is remembered for later "
      "ones with the same \"speculative\":{\"namespace\":...}, and for no others");
  OptionGroup serving(app, "Serving");
  serving.add_integer("--slots", runtime_.slots, 1, 64, "completions that run at once");
  serving.add_integer("--max-queue", runtime_.max_queue, 0, kMaxInt32,
                      "completions that wait, at most");
  serving.add_integer("--prompt-chunk", runtime_.prompt_chunk, 1, kMaxInt32,
                      "prompt tokens of a step while other texts go on");
  serving.add_integer("--retention-ms", runtime_.retention_ms, 0, RuntimeOptions::kMaxRetentionMs,
                      "milliseconds that a finished result waits to be polled");
  serving.add_integer("--calls", calls_, 1, 1024,
                      "calls that may wait for text and are worked on at once; further ones "
                      "wait, others are answered at once. 1: one after the other, in order");
  serving.add_switch("--events", events_,
                     "also write what happens unasked: {\"jsonrpc\":\"2.0\",\"method\":\"event\","
                     "\"params\":{...}}");
}

void RpcCommand::check() {
  if (model_.model) require_model(model_);
  if (runtime_.remember_tokens > 0 &&
      static_cast<std::size_t>(runtime_.remember_tokens) < SuffixMemory::kLeastTokens) {
    throw UsageError("--remember-tokens is " + std::to_string(runtime_.remember_tokens) +
                     ", but must be 0 (nothing is remembered), or at least " +
                     std::to_string(SuffixMemory::kLeastTokens));
  }
  if (model_.draft_model && !model_.model) {
    throw UsageError("--draft-model is given, but no --model",
                     "give the target with -m FILE, or load both with model.load");
  }
  for (const auto& [option, given] :
       {std::pair("--suffix-store", !suffix_stores_.empty()),
        std::pair("--ngram-static", ngrams_.static_file.has_value()),
        std::pair("--ngram-dynamic", ngrams_.dynamic_file.has_value())}) {
    if (!given || model_.model) continue;
    throw UsageError(std::string(option) + " is given, but no --model",
                     "give the target with -m FILE, or load both with model.load");
  }
}

void RpcCommand::say(const std::string& line) {
  const std::lock_guard<std::mutex> lock(output_mutex_);
  output_.write(line + "\n");
  LineReader* const reader = reader_.load();
  if (output_.failed() && reader != nullptr) reader->interrupt();  // nobody listens any more
}

bool RpcCommand::output_failed() {
  const std::lock_guard<std::mutex> lock(output_mutex_);
  return output_.failed();
}

void RpcCommand::answer(api::Service& service, const std::string& line) noexcept {
  try {
    const std::string text = service.call(line);
    if (!text.empty()) say(text);
  } catch (const std::bad_alloc&) {
    const std::lock_guard<std::mutex> lock(output_mutex_);
    output_.write(
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32003,\"message\":\"out of memory\","
        "\"data\":{\"code\":\"resource_exhausted\",\"field\":null}}}\n");
  }
}

void RpcCommand::tell(const RuntimeEvent& event) noexcept {
  try {
    say(api::json_rpc_notification("event", api::event_json(event)));
  } catch (const std::bad_alloc&) {
    const std::lock_guard<std::mutex> lock(output_mutex_);
    output_.write("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"event\":\"lost\"}}\n");
  }
  if (event.completion && event.completion->result) ++results_told_;
}

Status RpcCommand::load_one(Runtime& runtime, ModelRole role, const SignalWatch& signals) const {
  const bool target = role == ModelRole::kTarget;
  OUTRIDER_RETURN_IF_ERROR(
      runtime.load(role, target ? target_options(model_) : draft_options(model_)));
  ProgressBar progress;
  bool cancelled = false;
  while (!runtime.wait_loaded(100)) {
    const RuntimeStatus status = runtime.status();
    const ModelStatus& loading = target ? status.target : status.draft;
    progress.update("loading " + loading.path, loading.progress);
    if (!signals.raised() || cancelled) continue;
    (void)runtime.cancel_load(role);  // not found: it is done already
    cancelled = true;
  }
  progress.clear();
  const RuntimeStatus status = runtime.status();
  const ModelStatus& loaded = target ? status.target : status.draft;
  for (const std::string& note : loaded.notes) {
    print_warning("'" + loaded.serving_path + "': " + note);
  }
  return loaded.error;
}

std::vector<DrafterFile> RpcCommand::drafter_files() const {
  std::vector<DrafterFile> files;
  for (const std::string& path : suffix_stores_) files.push_back({"suffix", path});
  if (ngrams_.static_file) files.push_back({"ngram-cache", *ngrams_.static_file, "static"});
  if (ngrams_.dynamic_file) files.push_back({"ngram-cache", *ngrams_.dynamic_file, "dynamic"});
  return files;
}

Status RpcCommand::attach_files(Runtime& runtime) const {
  for (const DrafterFile& file : drafter_files()) OUTRIDER_RETURN_IF_ERROR(runtime.attach(file));
  (void)runtime.wait_loaded(-1);
  for (const DrafterStatus& drafter : runtime.status().drafters) {
    for (const DrafterFileStatus& file : drafter.files) {
      if (!file.error.ok()) return file.error;
    }
  }
  return Status();
}

// Before the first line is read, so that it finds them.
int RpcCommand::load_models(Runtime& runtime, const SignalWatch& signals) const {
  Status status;
  if (model_.model) status = load_one(runtime, ModelRole::kTarget, signals);
  if (status.ok() && model_.draft_model) status = load_one(runtime, ModelRole::kDraft, signals);
  if (status.ok()) status = attach_files(runtime);
  if (status.ok()) return kDone;
  return signals.raised() ? signals.exit_code() : fail(status);
}

// Whether answering a line may take as long as a text. The others (status, cancels, ...) are
// answered by the reader, whatever the pool is busy with. A line that hides it (by escapes) only
// holds up those behind it.
bool may_wait(const std::string& line) {
  return line.find("completion.run") != std::string::npos ||
         line.find("wait_ms") != std::string::npos;
}

void RpcCommand::read_lines(api::Service& service, LineReader& reader, CallPool& pool) {
  std::string line;
  for (;;) {
    switch (reader.next(line)) {
      case LineReader::Kind::kEnd:
      case LineReader::Kind::kInterrupted:
        return;
      case LineReader::Kind::kTooLong:
        say(api::json_rpc_error(
            -32700, {.message = "the line is longer than " + std::to_string(api::kMaxRequestBytes) +
                                " bytes"}));
        break;
      case LineReader::Kind::kLine:
        if (line.find_first_not_of(" \t\r") == std::string::npos) break;
        if (calls_ > 1 && may_wait(line)) {
          pool.add(std::move(line));
        } else {
          answer(service, line);
        }
        break;
    }
  }
}

// Until every completion that was started has told its result. An event for which there was no
// memory never comes: so not for long once nothing runs any more.
void RpcCommand::wait_for_results(const Runtime& runtime, const SignalWatch& signals) {
  int idle_rounds = 0;
  while (!signals.raised() && !output_failed() && idle_rounds < 200) {
    const RuntimeStatus status = runtime.status();
    if (results_told_.load() >= status.started) return;
    idle_rounds = status.running + status.queued == 0 ? idle_rounds + 1 : 0;
    usleep(10'000);
  }
}

int RpcCommand::run() {
  SignalWatch signals;
  LlamaLoader loader;
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(runtime_, loader);
  if (!runtime.ok()) return fail(runtime.status());
  if (events_) (*runtime)->subscribe([this](const RuntimeEvent& event) { tell(event); });
  const int loaded = load_models(**runtime, signals);
  if (loaded != kDone) return loaded;

  api::Service service(**runtime);
  LineReader reader(STDIN_FILENO, api::kMaxRequestBytes);
  reader_.store(&reader);
  signals.on_signal([&] {
    service.stop();
    reader.interrupt();
  });
  {
    CallPool pool(static_cast<std::size_t>(calls_),
                  [&](const std::string& line) { answer(service, line); });
    read_lines(service, reader, pool);
    if (output_failed()) service.stop();
  }
  if (events_) wait_for_results(**runtime, signals);
  signals.on_signal({});
  reader_.store(nullptr);
  (*runtime)->subscribe({});
  runtime->reset();
  if (signals.raised()) return signals.exit_code();
  if (!reader.status().ok()) return fail(reader.status());
  return output_.status().ok() ? kDone : fail(output_.status());
}

}  // namespace

std::unique_ptr<Command> make_rpc_command() { return std::make_unique<RpcCommand>(); }

}  // namespace outrider::tools
