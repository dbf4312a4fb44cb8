// Catalog: the models of a server by name, each with its draft and a runtime of its own.
//
// A model is opened when it is first asked for, and stays until another one needs its memory or its
// place: then those that nobody uses go, the one that was used longest ago first. A model that is
// in use is never unloaded; when nothing else makes room, asking for one more is an error that says
// so. In use is one that is leased or waited for, or on which a completion runs or waits, whose
// client may poll for it later; a result that waits to be fetched goes with its model. Nothing is
// unloaded for a model that would not fit anyway.
//
// The state of a model, as one thread of the catalog moves it on:
//
//             acquire, preload        its turn           target ready
//     absent ------------------> queued ------> opening --------------> ready
//       ^                          ^ |            | |                     |
//       |       acquire, preload   | | unload     | | failed              | unload, and no lease;
//       |   failed ----------------+ |            | +--------> failed     | room for another one
//       |     | unload               |            | unload, no room now   |
//       +-----+----------------------+------------+-----------------------+
//
// queued and opening are ModelState::kLoading. As many requests wait for one model as its runtime
// takes (slots and max_queue); further ones are refused at once. Models are opened one after
// another: how much memory is free is known between two loads, not during one. A target that was
// ready and is gone (its process died, somebody unloaded it through its runtime) is queued again by
// the next acquire(), in the runtime that it had. After a failed load, also for want of room,
// requests within `retry_ms` get its error; the next one tries again.
//
// The default model is also queued again by the catalog itself, where its target was lost or its
// load failed: a server that says so (/health) may be asked nothing more. `retry_ms` after the load
// at the earliest, and while that does not help and nobody gets it, after twice as long each time,
// up to a minute: a file that is broken is not read all the time.
//
// All functions: any thread. Only acquire() and shut_down() wait.
//
// Tested by catalog_test.cc, catalog_unload_test.cc, catalog_reopen_test.cc,
// catalog_target_test.cc, catalog_stress_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "draft/base/lookup_drafter.h"
#include "model/model_options.h"
#include "serve/loader.h"
#include "serve/runtime.h"

namespace outrider {

// One model that can be asked for.
struct CatalogEntry {
  std::string name;  // what clients call it; unique, 1 to 128 bytes of UTF-8, no control characters
  ModelOptions target;
  std::optional<ModelOptions> draft;
  std::vector<DrafterFile> files;
  std::vector<std::string> aliases = {};  // further names, likewise
  std::string offered_draft = {};  // a file that could be its draft, where it has none; for people
};

struct CatalogOptions {
  RuntimeOptions runtime;          // of each model; without last_id they share one
  std::uint64_t memory_bytes = 0;  // for all models together; 0: what free_memory says
  std::int32_t max_models = 0;     // open at once, at most; 0: any number

  double retry_ms = 1000;  // after a failed load, until the next one may begin

  // Bytes that another model could take now (base/machine_memory.h); empty, or 0: not known, and no
  // limit. Asked between two loads, by the catalog's thread.
  std::function<std::uint64_t()> free_memory;
  NowMs now = steady_ms;
};

struct CatalogStatus {
  std::string name;
  std::vector<std::string> aliases;
  std::string path;                        // of its target, or of what it is opened with
  std::string draft_path;                  // empty: none
  std::string offered_draft;               // CatalogEntry's
  ModelState state = ModelState::kAbsent;  // kAbsent: it is opened when it is first asked for
  double progress = 0.0;                   // of the target's load, 0 to 1
  // kLoading, but nothing is wrong with it: it was only closed, or found no room. Who asks for it
  // waits, as for one that is kAbsent.
  bool reopening = false;
  Status error;                       // when it failed; no want of room, which may pass
  std::int64_t in_use = 0;            // leases
  std::int64_t waiting = 0;           // calls of acquire() until it is open
  std::uint64_t estimated_bytes = 0;  // with the draft; 0: not known (yet); for tests alone
  RuntimeTotals totals = {};          // since the start, over all times that it was open

  // What whoever runs the server should hear of.
  bool complete = false;           // ready, and its draft and files are no longer being loaded
  std::vector<std::string> notes;  // of the target and the draft at work
  Status draft_error;              // of a draft whose load failed
  std::vector<DrafterFileStatus> failed_files = {};
  std::uint64_t loads_ended = 0;  // of the target, in any way; and how the last one did
  Status last_load = {};
  std::uint64_t n_lost = 0;  // targets that ended by themselves; and why the last one did
  Status lost = {};
};

class Catalog {
 public:
  // `loader` must outlive the catalog. The first entry is the default model; there may be none.
  // Errors: kInvalidArgument (a name twice or no name, options out of range); kResourceExhausted
  // when its thread cannot be made.
  static Result<std::unique_ptr<Catalog>> create(std::vector<CatalogEntry> entries,
                                                 CatalogOptions options, ModelLoader& loader);
  // shut_down(). REQUIRES: all leases have been given back
  virtual ~Catalog() = default;

  // The runtime of a model, with its target ready (a draft may still be coming): a lease, which is
  // given back when the pointer ends, and keeps the model from being unloaded. Opens the model
  // where needed, and waits for it; `give_up` (may be empty), asked every 50 ms on this thread,
  // ends the waiting with kCancelled (the load goes on). An empty name: the default model.
  // Begins one load at most. Errors: kNotFound (a name that is not there; the message lists some
  // that are); kResourceExhausted (no room now, because others are in use, or as many wait
  // already as its runtime takes: waiting may help);
  // kUnsupported (it is larger than all room, or finds none with nothing else in use); kCancelled
  // (also: unloaded while it was opened, shut down); the load's own.
  virtual Result<std::shared_ptr<Runtime>> acquire(std::string_view name,
                                                   const std::function<bool()>& give_up) = 0;

  // The same without opening or waiting; null: it is not open, or not there. Does not count as a
  // use when the one that was used longest ago is looked for.
  virtual std::shared_ptr<Runtime> find_open(std::string_view name) = 0;

  // Its runtime as it is, with nothing opened: one without models where it is not open. A lease.
  // Errors: kNotFound; kCancelled after a shut down; Runtime::create()'s.
  virtual Result<std::shared_ptr<Runtime>> look(std::string_view name) = 0;

  // Begins to load another target in the place of the model's own; returns at once. One that is at
  // work answers until the new one is ready, as Runtime::load() has it, and no room is made; else
  // it is opened as by preload(). Once it was at work, or where none was, it is what the model is
  // opened with from then on. Errors: kNotFound; kCancelled after a shut down; kInvalidArgument (an
  // empty path; an option out of range, about the field).
  virtual Status load_target(std::string_view name, ModelOptions target) = 0;

  // Begins to open it; returns at once. Fine when it is open: then an unload() that waits for its
  // users is taken back. Errors: kNotFound; kCancelled after a shut down.
  virtual Status preload(std::string_view name) = 0;
  // Closes it once it is not in use (those who wait for it get it first); from then on it is opened
  // when it is asked for again. A load that is not done ends. Fine when it is not open. Errors:
  // kNotFound.
  virtual Status unload(std::string_view name) = 0;

  virtual std::vector<CatalogStatus> status() const = 0;  // in the order of the entries
  // Of the one that acquire() finds under that name; nothing: there is none.
  virtual std::optional<CatalogStatus> status_of(std::string_view name) const = 0;

  // Every wait and every completion ends with what it has; nothing can be acquired from then on.
  // Leases stay valid.
  virtual void shut_down() = 0;

  // Empty, or which invariant is broken. For tests.
  virtual std::string check_integrity() const = 0;
};

}  // namespace outrider
