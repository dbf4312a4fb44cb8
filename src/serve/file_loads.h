// FileLoads: the files of drafters, each from attach() until it is taken away.
//
// A file is a LoadTask (serve/load_task.h), opened for the current station's tokenizer. What
// becomes of it when targets come and go: serve/model_loads.h.
//
// Invariant: a file is serving exactly when it holds what was opened.
//
// Any thread; REQUIRES throughout: the runtime's mutex. The loading thread calls next() to done(),
// and take_unused(), the decode thread not_installed(), clients the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "draft/base/lookup_drafter.h"
#include "serve/load_task.h"
#include "serve/runtime_shared.h"
#include "serve/runtime_status.h"
#include "serve/stations.h"

namespace outrider {

class FileLoads {
 public:
  FileLoads(RuntimeShared& shared, Stations& stations) : shared_(shared), stations_(stations) {}

  // See Runtime::attach. `file`: its drafter and tier are right, its path is not empty.
  Status attach(DrafterFile file);
  // See Runtime::detach. `file`: its drafter and tier are right.
  Status detach(const DrafterFile& file);

  // Whether something is to be opened, the oldest load request first.
  bool has_next() const { return next().has_value(); }
  // REQUIRES: has_next()
  LoadTask::Opening begin_next();
  // The file of an opening that has just begun.
  const DrafterFile& name_of(const LoadTask::Opening& opening) { return find(opening)->file; }
  // It came to its end, `opened` (for `station`) or with why not. A load that was called
  // off or replaced is passed over. May throw std::bad_alloc, with nothing changed. `opened` is
  // copied, so that whoever calls can free what is not wanted without the mutex.
  void done(const LoadTask::Opening& opening, const StationPtr& station,
            const Result<OpenedDrafterFile>& opened);
  // Whether anything is being worked on.
  bool busy() const;
  // Nobody opens any more: what is pending has failed, and whoever waits for it is told.
  void end_everything();

  // It could not be put to work. No effect where a newer one of that name has taken its place.
  void not_installed(const OpenedDrafterFile& file, Status why);

  // A file's contents that no station will be given any more, to be freed without the mutex: they
  // may have gigabytes. Null: there are none. The loading thread frees them, before it opens what
  // comes next.
  std::shared_ptr<const LookupFile> take_unused();
  bool has_unused() const { return !unused_.empty(); }

  // Another target has come, or the one at work was lost: see above.
  void ask_again();
  // The target has gone.
  void drop();

  // The drafters that have files, also ones that are on their way: requests that run get them as
  // they come. Valid until the next change.
  std::vector<std::string_view> drafters_with_files() const;
  // Of a drafter, in the order in which they came.
  std::vector<DrafterFileStatus> statuses(std::string_view drafter) const;
  // "; "-joined, which files could not be used, of this drafter or, without a name, of all; empty:
  // none.
  std::string failures(std::string_view drafter = {}) const;

  std::string check_integrity() const;

 private:
  struct File {
    DrafterFile file;
    LoadTask task;
    std::optional<OpenedDrafterFile> opened;  // the one at work
  };

  File* find(const DrafterFile& file);
  File* find(const LoadTask::Opening& opening);
  std::optional<std::size_t> next() const;  // its place in files_
  Status free_tier(const DrafterFile& file);
  void let_go(File& file);
  void announce(const File& file, bool attached);
  static DrafterFileStatus status_of(const File& file);

  RuntimeShared& shared_;
  Stations& stations_;
  std::vector<File> files_;                                // in the order in which they came
  std::vector<std::shared_ptr<const LookupFile>> unused_;  // has room for all that are at work
  std::uint64_t next_number_ = 1;
};

}  // namespace outrider
