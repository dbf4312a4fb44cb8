#include "capi/log.h"

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "base/on_exit.h"
#include "base/process_end.h"
#include "base/utf8.h"

namespace outrider::capi {
namespace {

struct LogState {
  // Held while a line is given out. Recursive: a callback may call a function that logs.
  std::recursive_mutex line;
  std::mutex mutex;  // guards what follows
  LogFunction callback = nullptr;
  void* user = nullptr;
  // That has given out lines: in a child of it one of the mutexes may be locked for ever.
  FirstProcess process;
};

// Never destroyed: threads may log while the process ends.
LogState& log_state() {
  static LogState& state = *new LogState();
  return state;
}

int& callback_depth() {
  static thread_local int depth = 0;
  return depth;
}

bool& giving_out_line() {
  static thread_local bool line = false;
  return line;
}

LoadHooks logged(const LoadHooks& hooks) {
  LoadHooks with_log = hooks;
  with_log.log = [inner = hooks.log](LogLevel level, std::string_view line) {
    if (inner) inner(level, line);
    log_line(level, line);
  };
  return with_log;
}

// What `load` gives, with a line before and lines behind. `notes`: the member that holds them.
template <typename Notes, typename Load>
auto log_load(const std::string& what, Notes notes, Load load) {
  log_line(LogLevel::kInfo, what);
  auto loaded = load();
  if (loaded.ok()) {
    log_line(LogLevel::kInfo, what + " is done");
    for (const std::string& note : std::invoke(notes, **loaded)) {
      log_line(LogLevel::kWarning, note);
    }
  } else {
    log_line(LogLevel::kError, what + " failed: " + loaded.status().message());
  }
  return loaded;
}

}  // namespace

void set_log(LogFunction callback, void* user) {
  LogState& state = log_state();
  if (state.process.is_another()) return;
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    state.callback = callback;
    state.user = user;
  }
  // The earlier one may be at work. A callback must not wait for another callback, which may be
  // waiting for it.
  if (!in_callback()) const std::lock_guard<std::recursive_mutex> wait(state.line);
}

void end_log() noexcept {
  LogState& state = log_state();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.callback = nullptr;
}

void log_line(LogLevel level, std::string_view line) noexcept {
  try {
    LogState& state = log_state();
    if (!state.process.may()) return;
    const std::lock_guard<std::recursive_mutex> one_at_a_time(state.line);
    LogFunction callback = nullptr;
    void* user = nullptr;
    {
      const std::lock_guard<std::mutex> lock(state.mutex);
      callback = state.callback;
      user = state.user;
    }
    if (callback == nullptr) return;
    // llama.cpp cuts what it shows of a model's metadata at a byte, also within a character.
    const std::string text = with_replacements(line);
    const CallbackScope scope;
    const bool outer = std::exchange(giving_out_line(), true);
    const OnExit restore([outer] { giving_out_line() = outer; });
    callback(user, static_cast<int>(level), text.c_str());
  } catch (...) {  // no memory, or what a C++ client's callback threw: the line is lost
  }
}

bool in_callback() { return callback_depth() > 0; }
bool in_log_callback() { return giving_out_line(); }

CallbackScope::CallbackScope() { ++callback_depth(); }
CallbackScope::~CallbackScope() { --callback_depth(); }

Result<std::unique_ptr<Target>> LoggingLoader::load_target(const ModelOptions& options,
                                                           const LoadHooks& hooks) {
  return log_load("loading the target '" + options.path + "'", &Target::notes,
                  [&] { return loader_->load_target(options, logged(hooks)); });
}

Result<std::unique_ptr<Draft>> LoggingLoader::load_draft(const ModelOptions& options,
                                                         std::shared_ptr<const Target> target,
                                                         const LoadHooks& hooks) {
  return log_load("loading the draft model '" + options.path + "'", &Draft::notes,
                  [&] { return loader_->load_draft(options, std::move(target), logged(hooks)); });
}

}  // namespace outrider::capi
