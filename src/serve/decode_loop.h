// DecodeLoop: the decode thread, from the constructor to join(). A turn is a list of passes:
//
//   install   drafts and drafters' files that were loaded or are to go: between two steps
//   admit     waiting requests into free slots, in order of arrival
//   step      one engine step for each station; what it says goes to the jobs
//   expire    results that nobody fetched
//   release   stations that nobody needs any more
//   lend      the current target to a client's own work (serve/idle_work.h), once it runs nothing
//
// After install nobody uses a draft that was taken away. After step every finished completion has
// its result.
//
// The engines, the drafters and the models of all stations are this thread's alone; it uses them
// without the mutex, and takes the mutex to read and write the other parts. The queue of waiting
// requests may change whenever it lets go.
//
// Out of memory, or an exception out of a step, ends that station's running requests and gives it a
// new engine. Between two steps it costs a turn, in which nothing is left half done.
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/request.h"
#include "serve/drafter_notes.h"
#include "serve/file_loads.h"
#include "serve/idle_work.h"
#include "serve/jobs.h"
#include "serve/model_loads.h"
#include "serve/runtime_shared.h"
#include "serve/stations.h"

namespace outrider {

class DecodeLoop {
 public:
  // All must outlive this. May throw std::system_error.
  DecodeLoop(RuntimeShared& shared, Jobs& jobs, Stations& stations, ModelLoads& models,
             FileLoads& files, DrafterNotes& drafters, IdleWork& idle_work);

  // REQUIRES: RuntimeShared::stop, without the mutex
  void join() { thread_.join(); }

 private:
  using Lock = RuntimeShared::Lock;

  void run();
  bool has_work() const;
  bool wait_for_work();

  // The passes.
  void install();
  void admit();
  void step();
  void expire();
  void release();
  void lend();

  void install_draft(StationChange change);
  void add_file(const StationChange& change);
  void remove_file(StationChange change);
  Status lend(Station& station, const IdleWork::Work& work);
  bool may_admit(const Job& job) const;
  // Why a request that asks for speculation gets no guesses from a drafter that it names or, where
  // it names none, from one of the default drafters that the operator wanted loaded, for its
  // result. Empty: none is missing. With the mutex; the next two are parts of it.
  std::string why_without(const Job& job) const;
  std::string why_without_loaded(const Job& job) const;
  std::string why_no_draft(const Job& job) const;
  void add_to_engine(Job& job, Request request, Lock& lock);
  void publish(Station& station, std::vector<Update> updates);
  void publish(Station& station, Update update);
  std::optional<Remembered> remember(Station& station, const Job& job,
                                     const Completion& completion) const;
  void note_drafters(const Station& station);
  void note_progress(const Station& station);
  void restart(Station& station);

  RuntimeShared& shared_;
  Jobs& jobs_;
  Stations& stations_;
  ModelLoads& models_;
  FileLoads& files_;
  DrafterNotes& drafters_;
  IdleWork& idle_work_;
  std::thread thread_;
};

}  // namespace outrider
