// Station: one target at work, with the draft that was loaded for it.
//
// The decode thread's, except for what is said to be for any thread. A station that new requests no
// longer get (`retired`) stays until its last request has ended.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "serve/loader.h"
#include "serve/runtime.h"

namespace outrider {

class Station {
 public:
  Station(std::shared_ptr<Target> target, const RuntimeOptions& options);
  ~Station();
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  // Immutable; any thread.
  const std::shared_ptr<Target>& target() const { return target_; }

  // engine().cancel() is for any thread that keeps restart() from running meanwhile.
  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  const Draft* draft() const { return draft_.get(); }

  // Puts `draft` (may be null: none) in the place of the one that is there. Requests that the old
  // one guessed for go on plain and say `reason`.
  void set_draft(std::unique_ptr<Draft> draft, const std::string& reason);

  // After an exception out of the engine: its requests are gone, models and draft are as new.
  void restart();

 private:
  void make_engine();

  const EngineOptions options_;
  const std::shared_ptr<Target> target_;
  std::unique_ptr<Draft> draft_;
  std::unique_ptr<Engine> engine_;  // ends before what it uses
};

}  // namespace outrider
