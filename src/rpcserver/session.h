// Session: what exists from init to deinit. One runtime, what cmd said, and the completions whose
// updates the app has not fetched.
//
// The runtime loads and decodes; a session turns JSON texts into calls of it, and its results into
// JSON texts. All functions: any thread. init() and complete() wait, the others do not. After
// close() nothing starts any more.
//
// Tested by session_test.cc and session_load_test.cc (through Server), with models that are fakes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/json.h"
#include "rpcserver/init_command.h"
#include "rpcserver/request_options.h"
#include "rpcserver/responses.h"
#include "rpcserver/update_stream.h"
#include "serve/runtime.h"

namespace outrider::rpcserver {

inline constexpr std::size_t kFinishedKept = 64;  // completions whose end can still be polled

// What was said of models.
struct SessionState {
  InitCommand config;                       // of the target that serves, or of the first
  std::vector<std::string> draft_warnings;  // the newest draft's
  Status target_refusal;                    // of the newest cmd
  Status draft_refusal;
};

// What is known of completions over all sessions, and between them.
struct CompletionsSoFar {
  std::atomic<CompletionId> last_id{0};
  std::atomic<bool> asynchronous{false};  // one was started that can be polled
};

// poll_system_status's answer; all of it as new: nothing is loaded.
json::Json status_json(const SessionState& state, const RuntimeStatus& status);

// async_completion_poll's answer where there is no session: that of one without completions.
json::Json poll_without_session(const char* which, const CompletionsSoFar& so_far);

class Session {
 public:
  // Both must outlive the session. Completions get ids behind `so_far`, which it counts up: a
  // thread that still polls for one of an earlier session does not get another's. Errors:
  // Runtime::create's.
  static Result<std::unique_ptr<Session>> create(ModelLoader& loader, CompletionsSoFar& so_far);

  // Starts loading what `cmd` names; with `wait`, returns when it is there or has failed. True when
  // the target is there then (without `wait`: when the load was accepted).
  bool init(const char* cmd, bool draft_only, bool wait);

  json::Json status();
  json::Json tokenize(const char* request) const;
  json::Json complete(const char* request);  // get_completion
  json::Json start(const char* request);     // async_completion_init
  json::Json poll(const char* which);
  json::Json cancel(const char* which);

  // Ends what is running and loading; calls that wait return soon. Nothing starts afterwards.
  void close();

 private:
  // A request that was started, as its answers need it.
  struct Started {
    CompletionId id = 0;          // as the app knows it
    CompletionId runtime_id = 0;  // as the runtime does
    RequestOptions options;
    std::string model;  // the alias
    PromptStats prompt;
  };

  // An asynchronous completion.
  struct Completed {
    explicit Completed(Started s)
        : started(std::move(s)), stream(started.options.stream_tokens()) {}

    Started started;
    UpdateStream stream;
    std::vector<SaidToken> sent;  // with their probabilities, when these were asked for
    json::Json updates = json::Json::array();  // not fetched
    double prompt_progress = 0.0;
    bool finished = false;
    std::uint64_t ended = 0;  // its place among those that have, as collect() found them
  };

  Session(std::unique_ptr<Runtime> runtime, CompletionsSoFar& so_far)
      : runtime_(std::move(runtime)), so_far_(so_far) {}

  static Status shut_down();
  Status load(const char* cmd, bool draft_only);
  Status load_target(InitCommand command);
  Status load_draft(InitCommand command);
  bool has_target() const;
  void note_loaded(const RuntimeStatus& status);
  Result<Started> begin(const char* request);
  Result<Started> begin_with_config(const json::Json& parsed, std::uint64_t& config_number);
  void collect(Completed& completion);
  void forget_oldest();

  const std::unique_ptr<Runtime> runtime_;
  CompletionsSoFar& so_far_;

  mutable std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  std::uint64_t target_loads_ = 0;
  SessionState state_;
  std::optional<InitCommand> pending_;  // of a target that is being loaded
  std::uint64_t n_configs_ = 0;         // that state_.config was
  bool has_served_ = false;             // some target of this session
  std::map<CompletionId, Completed> completions_;
  CompletionId newest_ = 0;    // 0: there was none
  std::uint64_t n_ended_ = 0;  // of completions_, also of those that are forgotten
};

}  // namespace outrider::rpcserver
