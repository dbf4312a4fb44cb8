// LoadingThread: opens what clients want loaded, from the constructor to join(), one thing at a
// time: the target, the draft model, then drafters' files, the oldest load request first.
//
// It opens without the mutex and then, with it, hands what it has to ModelLoads or FileLoads, which
// know whether it is still wanted. What these need no more it frees, without the mutex, too. Out of
// memory at any place is a load that failed.
#pragma once

#include <thread>

#include "serve/decoders.h"
#include "serve/loader.h"

namespace outrider {

class LoadingThread {
 public:
  // All must outlive this. May throw std::system_error.
  LoadingThread(RuntimeParts& parts, ModelLoader& loader, Decoders& decoders)
      : parts_(parts), loader_(loader), decoders_(decoders), thread_([this] { run(); }) {}
  // REQUIRES: RuntimeShared::stop, without the mutex
  void join() { thread_.join(); }

 private:
  using Lock = RuntimeShared::Lock;

  void run();
  void open_model(ModelRole role, Lock& lock);
  Status open_target(const ModelLoads::Opening& opening, Lock& lock);
  Status open_draft(const ModelLoads::Opening& opening, Lock& lock);
  LoadHooks hooks_for(ModelRole role, const LoadTask::Opening& opening);
  void open_file(Lock& lock);
  void free_unused(Lock& lock);

  RuntimeParts& parts_;
  ModelLoader& loader_;
  Decoders& decoders_;
  std::thread thread_;
};

}  // namespace outrider
