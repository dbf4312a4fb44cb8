// ModelLoads: the target and the draft model that clients want loaded, and those at work.
//
// Each is a LoadTask (serve/load_task.h). A target can be opened at any time; a draft is opened for
// the current station, and waits while there is none. What happens when targets come and go:
//
//   another target comes    the draft at work was the old one's: the same file is asked for anew,
//                           unless a newer load waits. So are all drafters' files, those too that
//                           the last target refused.
//   the target is unloaded  the draft and the files at work go with it; loads wait
//   the target is lost      the draft and the files at work are asked for anew, and wait
//
// What is opening just then waits for the next target, whether its opening ends well or not.
//
// Any thread; REQUIRES throughout: the runtime's mutex. The loading thread calls next() to
// failed(), the decode thread target_lost() and draft_not_installed(), clients the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model_options.h"
#include "serve/drafter_notes.h"
#include "serve/file_loads.h"
#include "serve/load_task.h"
#include "serve/loader.h"
#include "serve/runtime_shared.h"
#include "serve/runtime_status.h"
#include "serve/stations.h"

namespace outrider {

class ModelLoads {
 public:
  ModelLoads(RuntimeShared& shared, Stations& stations, FileLoads& files, DrafterNotes& drafters)
      : shared_(shared), stations_(stations), files_(files), drafters_(drafters) {}

  // See Runtime::load, cancel_load and unload. Of an unloaded target's requests nothing is done.
  void load(ModelRole role, ModelOptions options);
  Status cancel(ModelRole role);
  Status unload(ModelRole role);
  // At the runtime's end: what is opening ends soon.
  void interrupt();

  // What is to be opened next, the target first, so that a draft finds the one that it is for.
  std::optional<ModelRole> next() const;
  struct Opening {
    std::shared_ptr<const ModelOptions> options;
    LoadTask::Opening task;
  };
  // REQUIRES: next() is `role`
  Opening begin(ModelRole role);
  // What a target's load opens: for the draft that follows to it, or that waits for it, where it
  // names no head itself.
  ModelOptions target_options(const Opening& opening) const;
  // A load that was called off or replaced is passed over, here and in failed().
  void note_progress(ModelRole role, const LoadTask::Opening& opening, double fraction);
  // It is open, and at work from now on. May throw std::bad_alloc, with nothing changed.
  // REQUIRES: the load is_current()
  void target_opened(const Opening& opening, StationPtr station);
  // The same for a draft of the current station, which `change` brings there, with the load's
  // number.
  void draft_opened(const Opening& opening, StationChange&& change);
  // Its target has gone while it was opened. REQUIRES: the load is_current()
  void draft_waits_again(const Opening& opening);
  void failed(ModelRole role, const LoadTask::Opening& opening, Status why);
  // Whether anything is being worked on.
  bool busy() const;
  // Nobody opens any more: what is pending has failed, and whoever waits for it is told.
  void end_everything();

  // The process that ran it is gone: new requests are refused. May throw std::bad_alloc, with
  // nothing changed.
  void target_lost(const Station& station, const Status& why);
  // The draft of that load (StationChange::load) could not be put to work. No effect where a newer
  // one has taken its place.
  void draft_not_installed(std::uint64_t load, Status why);

  ModelStatus status(ModelRole role) const;
  const LoadTask& task(ModelRole role) const { return of(role).task; }
  // Of the target that is being loaded, else of the one that was at work last; null: of neither.
  std::shared_ptr<const ModelOptions> latest_target() const {
    return target_.task.pending() ? target_.wanted : target_.served;
  }
  // Why there is no target for a new request.
  Status no_target() const;

  std::string check_integrity() const;

 private:
  struct Model {
    LoadTask task;
    std::shared_ptr<const ModelOptions> wanted;   // of the newest load
    std::shared_ptr<const ModelOptions> served;   // of the last that was at work
    std::shared_ptr<const ModelOptions> serving;  // of the one at work, as are the next three
    std::uint64_t serving_load = 0;               // LoadTask::number()
    std::optional<ModelInfo> info;
    std::vector<std::string> notes;
  };
  Model& of(ModelRole role) { return role == ModelRole::kTarget ? target_ : draft_; }
  const Model& of(ModelRole role) const { return role == ModelRole::kTarget ? target_ : draft_; }

  void ask(ModelRole role, std::shared_ptr<const ModelOptions> options);
  void serves(Model& model, const Opening& opening, ModelInfo info, std::vector<std::string> notes);
  // Whether the draft at work is loaded again behind a new target.
  bool draft_follows() const { return draft_.task.serving() && !draft_.task.pending(); }
  void take_out_of_service();
  void changed(ModelRole role);
  void announce(ModelRole role);

  RuntimeShared& shared_;
  Stations& stations_;
  FileLoads& files_;
  DrafterNotes& drafters_;
  Model target_;
  Model draft_;
  std::uint64_t next_number_ = 1;
};

}  // namespace outrider
