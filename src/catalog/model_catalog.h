// ModelCatalog: the Catalog of create().
//
// One mutex guards the models; one thread, the opener, opens and closes models (close_idle and
// release only hand a runtime to it, as ending one takes a while). It works outside of the mutex;
// what it publishes to them it does under it.
//
// The class is in three files: what callers ask and when a model counts as used in
// model_catalog.cc, the opener in model_catalog_opener.cc, and what is told of models in
// model_catalog_status.cc.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "catalog/catalog.h"

namespace outrider {

class ModelCatalog : public Catalog {
 public:
  // REQUIRES: as create() checks them
  ModelCatalog(std::vector<CatalogEntry> entries, CatalogOptions options, ModelLoader& loader);
  ~ModelCatalog() override;
  void start();  // makes the thread; may throw std::system_error

  Result<std::shared_ptr<Runtime>> acquire(std::string_view name,
                                           const std::function<bool()>& give_up) override;
  std::shared_ptr<Runtime> find_open(std::string_view name) override;
  Result<std::shared_ptr<Runtime>> look(std::string_view name) override;
  Status load_target(std::string_view name, ModelOptions target) override;
  Status preload(std::string_view name) override;
  Status unload(std::string_view name) override;
  std::vector<CatalogStatus> status() const override;
  std::optional<CatalogStatus> status_of(std::string_view name) const override;
  void shut_down() override;
  std::string check_integrity() const override;

 private:
  enum class State { kAbsent, kQueued, kOpening, kReady, kFailed };

  // Invariants: check_integrity().
  struct Model {
    CatalogEntry entry;  // immutable
    // What it is opened with: the entry's, or what was loaded in its place.
    std::shared_ptr<const ModelOptions> target;
    State state = State::kAbsent;
    std::shared_ptr<Runtime> runtime;  // the catalog's own reference; leases are others
    RuntimeTotals ended;               // of the runtimes that it had before
    std::int64_t leases = 0;
    std::int64_t waiting = 0;       // calls of acquire(); they count as a use
    std::uint64_t last_use = 0;     // of uses_
    std::uint64_t loads_ended = 0;  // in any way
    // Its last load that nobody called off opened it, or found no room, and the target was not lost
    // since.
    bool is_sound = false;
    Status outcome;  // of the last of these, and when it ended
    double ended_ms = 0.0;
    std::uint64_t n_lost = 0;  // targets that ended by themselves; and why the last did
    Status lost;
    int n_reopened = 0;                  // by reopen_default(), since the last acquire()
    Status no_memory;                    // see spares_others()
    std::optional<std::uint64_t> bytes;  // of `target` and the draft, estimated
    bool unwanted = false;               // unload() came while it was opened or in use
    bool wanted_again = false;           // and then somebody who asks for it, while it was opened
  };
  using Lock = std::unique_lock<std::mutex>;

  // With the mutex held.
  Model* find(std::string_view name) const;
  static CatalogStatus told(const Model& model);
  static std::optional<Status> loss_of(const Model& model);
  Status no_model(std::string_view name) const;
  Status check_queue(const Model& model) const;
  static bool serves(const Model& model);
  bool is_refused(const Model& model) const;
  static bool idle(const Model& model) { return model.leases == 0 && model.waiting == 0; }
  // A completion may run without a lease: who started it (by /rpc) polls for it.
  static bool may_close(const Model& model) {
    return model.state == State::kReady && idle(model) && model.runtime->is_idle();
  }
  // Its last load closed all that was idle and found too little memory still (`no_memory` says so),
  // and nobody has asked for it since: nothing is closed for it again.
  static bool spares_others(const Model& model) {
    return !model.no_memory.ok() && model.waiting == 0;
  }
  static void follow(Model& model);
  void enqueue(Model& model);
  void reopen_default();
  void close(Model& model);
  void hand_to_opener(Model& model);
  void close_if_unwanted(Model& model);
  void wait_for_work(Lock& lock);
  void end_load(Model& model, Status outcome);
  std::uint64_t open_bytes() const;
  std::size_t n_open() const;
  std::string names_in_use(const Model& but) const;
  Model* oldest_idle(const Model& but) const;

  // Makes a lease of what acquire() and find_open() counted.
  std::shared_ptr<Runtime> lease(Model& model, Runtime* runtime);
  void give_back(Model& model);

  // The opener.
  void run_opener();
  void open(Model& model);
  Status try_open(Model& model);
  Status estimate(Model& model);
  Status make_room(Model& model);
  Status why_no_room(const Model& model, std::uint64_t limit) const;
  Status load(Model& model);
  Result<std::shared_ptr<Runtime>> begin_load(Model& model);
  void wait_for_rest(Model& model, const std::shared_ptr<Runtime>& runtime);
  void end_closed();

  const CatalogOptions options_;
  ModelLoader& loader_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Model>> models_;  // in the order of the entries; never changed
  std::unordered_map<std::string, Model*> by_name_;
  // With room for each model, so that a load that is asked for needs no memory.
  std::vector<Model*> queue_;
  // For the opener to end: it swaps both. Both have room for a runtime of each model, so that
  // handing one over needs no memory; a model gets another one from the opener only.
  std::vector<std::shared_ptr<Runtime>> closed_;
  std::vector<std::shared_ptr<Runtime>> ended_;  // the opener's
  std::uint64_t uses_ = 0;
  bool ending_ = false;

  std::mutex joining_;
  std::thread opener_;
};

}  // namespace outrider
