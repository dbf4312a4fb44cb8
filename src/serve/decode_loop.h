// DecodeLoop: the decode thread of one station, from the constructor to join(). An iteration is a
// list of phases:
//
//   install   drafts and drafters' files that were loaded or are to go: between two steps
//   admit     its waiting requests into free slots, in order of arrival
//   step      one engine step; what it says goes to the jobs
//   lend      the target to a client's own work (serve/idle_work.h), once it runs nothing
//
// After install nobody uses a draft that was taken away. After step every finished completion has
// its result. When the station is no longer current and its last request has ended, it is released,
// and the thread ends. Since each station has its own, a target whose step does not return, for
// want of a worker's answer, holds nobody up but its own requests.
//
// The station's engine, its drafters and its models are this thread's alone; it uses them without
// the mutex, and takes the mutex to read and write the other parts. The queue of waiting requests
// may change whenever it lets go.
//
// Out of memory, or an exception out of a step, ends the station's running requests and gives it a
// new engine. Between two steps it costs an iteration, in which nothing is left half done.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/request.h"
#include "serve/runtime_parts.h"

namespace outrider {

class DecodeLoop {
 public:
  // `parts` must outlive this. May throw std::system_error. With the mutex or without: nothing is
  // done before it can be taken.
  DecodeLoop(RuntimeParts& parts, StationPtr station);

  // True: the thread is about to return, and join() waits for nothing.
  bool over() const { return over_.load(); }
  // REQUIRES: RuntimeShared::stop or over(), without the mutex unless over()
  void join() { thread_.join(); }

 private:
  using Lock = RuntimeShared::Lock;

  void loop();
  bool wait_for_work();
  bool release();
  void end_running();

  // The phases.
  void install();
  void admit();
  void step();
  void lend();

  void install_draft(StationChange change);
  void add_file(const StationChange& change);
  Status lend(const IdleWork::Work& work);
  Status note_loss();
  bool may_admit(const Job& job) const;
  void add_to_engine(Job& job, Request request, Lock& lock);
  void publish(std::vector<Update> updates);
  void publish(Update update);
  std::optional<Remembered> remember(const Job& job, const Completion& completion) const;
  void note_progress();
  void restart(const Status& why);
  bool is_current() const { return parts_.stations.current() == station_; }

  RuntimeParts& parts_;
  StationPtr station_;  // null when it was released
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace outrider
