// outrider rpc: the methods over standard input and output.
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>
#include <string>

#include "api/completion_json.h"
#include "api/json_rpc.h"
#include "api/service.h"
#include "tools/call_pool.h"
#include "tools/command.h"
#include "tools/line_reader.h"
#include "tools/local_runtime.h"
#include "tools/options/drafter_files.h"
#include "tools/options/field_options.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"
#include "tools/report.h"
#include "tools/text_output.h"

namespace outrider::tools {
namespace {

constexpr const char* kRpcDetails =
    "One JSON-RPC 2.0 message a line on standard input, one answer a line on standard output; "
    "'system.methods' lists what can be asked. Lines are worked on at once, so answers may come in "
    "another order than their questions: they carry the ids. The end of the input is waited for, "
    "and then for the answers (with --events, for all completions); Ctrl-C ends what runs with "
    "what there is.\n\n"
    "Example:\n"
    "  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion.run\",' \\\n"
    "    '\"params\":{\"prompt\":\"Hello\"}}' | outrider rpc -m target.gguf";

class RpcCommand : public Command {
 public:
  RpcCommand() : Command("rpc", "serve JSON-RPC 2.0 on stdin and stdout", kRpcDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  ModelArguments* models() override { return &model_; }
  Result<int> run() override;

 private:
  void read_lines(api::Service& service, LineReader& reader, CallPool& pool);
  void wait_for_results(const Runtime& runtime, const SignalWatch& signals);
  void say(const std::string& line);
  void answer(api::Service& service, const std::string& line) noexcept;
  void tell(const RuntimeEvent& event) noexcept;
  bool output_failed();

  ModelArguments model_;
  RuntimeOptions runtime_;
  std::vector<DrafterFile> files_;
  std::int32_t calls_ = 64;
  bool events_ = false;
  std::atomic<std::int64_t> results_told_{0};  // events that hold a completion's result

  std::mutex output_mutex_;
  TextOutput lines_{STDOUT_FILENO, /*color=*/false};
  std::atomic<LineReader*> reader_{nullptr};
};

void RpcCommand::add_options(CLI::App& app) {
  add_model_options(app, model_);
  add_exact_option(app, "Model", model_);
  OptionGroup speculation(app, "Speculation");
  add_drafter_files(speculation, files_, /*grows=*/false);
  OptionGroup serving(app, "Serving");
  add_fields(serving, runtime_fields(), runtime_, {"reuse_prefix"});
  serving.add_integer("--calls", calls_, {1, 1024},
                      "calls that may wait for text and are worked on at once; further ones "
                      "wait, others are answered at once. 1: one after the other, in order");
  serving.add_switch("--events", events_,
                     "also write what happens unasked: {\"jsonrpc\":\"2.0\",\"method\":\"event\","
                     "\"params\":{...}}");
}

void RpcCommand::check() {
  if (has_target(model_)) require_model(model_);
  require_ok(validate(runtime_));
  if (has_target(model_) || (!has_draft(model_) && files_.empty())) return;
  throw UsageError((has_draft(model_) ? "--draft-model" : file_option(files_.front())) +
                       " is given, but no --model",
                   "give the target with -m FILE, or load both with model.load");
}

void RpcCommand::say(const std::string& line) {
  const std::lock_guard<std::mutex> lock(output_mutex_);
  lines_.write(line + "\n");
  LineReader* const reader = reader_.load();
  if (lines_.failed() && reader != nullptr) reader->interrupt();  // nobody listens any more
}

bool RpcCommand::output_failed() {
  const std::lock_guard<std::mutex> lock(output_mutex_);
  return lines_.failed();
}

void RpcCommand::answer(api::Service& service, const std::string& line) noexcept {
  try {
    const std::string text = service.call(line);
    if (!text.empty()) say(text);
  } catch (const std::bad_alloc&) {
    const std::lock_guard<std::mutex> lock(output_mutex_);
    lines_.write(
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32003,\"message\":\"out of memory\","
        "\"data\":{\"code\":\"resource_exhausted\",\"field\":null}}}\n");
  }
}

void RpcCommand::tell(const RuntimeEvent& event) noexcept {
  try {
    say(api::json_rpc_notification("event", api::event_json(event)));
  } catch (const std::bad_alloc&) {
    const std::lock_guard<std::mutex> lock(output_mutex_);
    lines_.write("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"event\":\"lost\"}}\n");
  }
  if (event.completion && event.completion->result) ++results_told_;
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
            -32700, invalid_argument("the line is longer than " +
                                     std::to_string(api::kMaxRequestBytes) + " bytes")));
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

Result<int> RpcCommand::run() {
  Terminal& terminal = watch();
  SignalWatch& signals = terminal.signals;
  // Everything, before the first line is read, so that it finds them.
  LocalSetup setup{.runtime = runtime_, .files = files_};
  if (model_.model) setup.target = target_options(model_);
  if (model_.draft_model) setup.draft = draft_options(model_);
  Result<std::unique_ptr<LocalRuntime>> local =
      LocalRuntime::open(setup, terminal, [this](Runtime& runtime) {
        if (events_) runtime.subscribe([this](const RuntimeEvent& event) { tell(event); });
      });
  if (!local.ok() && signals.raised()) return signals.exit_code();
  OUTRIDER_RETURN_IF_ERROR(local.status());
  (*local)->print_warnings();
  Runtime& runtime = (*local)->runtime();

  api::Service service(runtime);
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
  if (events_) wait_for_results(runtime, signals);
  signals.on_signal({});
  reader_.store(nullptr);
  runtime.subscribe({});
  local->reset();
  if (signals.raised()) return signals.exit_code();
  OUTRIDER_RETURN_IF_ERROR(reader.status());
  OUTRIDER_RETURN_IF_ERROR(lines_.status());
  return kDone;
}

}  // namespace

std::unique_ptr<Command> make_rpc_command() { return std::make_unique<RpcCommand>(); }

}  // namespace outrider::tools
