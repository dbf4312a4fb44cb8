// The log of the whole process: a C callback, and a loader that sends llama.cpp's lines there.
//
// Process-wide because the C interface has it so (include/outrider.h) and llama.cpp has one log as
// well: the one state of this library that belongs to no instance.
#pragma once

#include <memory>
#include <string_view>

#include "base/log.h"
#include "serve/loader.h"

namespace outrider::capi {

using LogFunction = void (*)(void* user, int level, const char* text);

// See outrider_set_log. Any thread.
void set_log(LogFunction callback, void* user);

// From now on lines are dropped. Unlike set_log() it waits for nobody; for the process's end.
void end_log() noexcept;

// One line to the callback; dropped when there is none. Any thread; lines come one at a time. A
// line for which there is no memory is lost.
void log_line(LogLevel level, std::string_view line) noexcept;

// True on a thread that is inside one of the client's callbacks, for a log line or an event.
bool in_callback();

// The same, for a log line: the thread may be one that loads.
bool in_log_callback();

// While it lives, in_callback() is true on this thread. They nest.
class CallbackScope {
 public:
  CallbackScope();
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
};

// Opens models by another loader, and logs what it does and what llama.cpp says meanwhile.
class LoggingLoader : public ModelLoader {
 public:
  // REQUIRES: not null
  explicit LoggingLoader(std::unique_ptr<ModelLoader> loader) : loader_(std::move(loader)) {}

  Result<std::unique_ptr<Target>> load_target(const ModelOptions& options,
                                              const LoadHooks& hooks) override;
  Result<std::unique_ptr<Draft>> load_draft(const ModelOptions& options,
                                            std::shared_ptr<const Target> target,
                                            const LoadHooks& hooks) override;

 private:
  std::unique_ptr<ModelLoader> loader_;
};

}  // namespace outrider::capi
