// ModelCatalog: the Catalog of create().
//
// One mutex guards the slots; one thread, the opener, opens and closes models (close_idle and
// release only hand a runtime to it, as ending one takes a while). It works outside of the mutex;
// what it publishes to the slots it does under it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
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
  Status preload(std::string_view name) override;
  Status unload(std::string_view name) override;
  std::vector<CatalogStatus> status() const override;
  void shut_down() override;
  std::string check_integrity() const override;

 private:
  enum class State { kAbsent, kQueued, kOpening, kReady, kFailed };

  // Invariants: check_integrity().
  struct Slot {
    CatalogEntry entry;  // immutable
    State state = State::kAbsent;
    std::shared_ptr<Runtime> runtime;  // the slot's own reference; leases are others
    std::int64_t leases = 0;
    std::int64_t waiting = 0;            // calls of acquire(); they count as a use
    std::uint64_t last_use = 0;          // of uses_
    std::uint64_t loads_ended = 0;       // in any way
    Status outcome;                      // of the last of these
    double failed_ms = 0.0;              // when that was
    std::optional<std::uint64_t> bytes;  // estimated
    bool unwanted = false;               // unload() came while it was opened or in use
  };
  using Lock = std::unique_lock<std::mutex>;

  // With the mutex held.
  Slot* find(std::string_view name);
  Status no_model(std::string_view name) const;
  static bool serves(const Slot& slot);
  static bool idle(const Slot& slot) { return slot.leases == 0 && slot.waiting == 0; }
  static bool may_close(const Slot& slot) { return slot.state == State::kReady && idle(slot); }
  void enqueue(Slot& slot);
  void close(Slot& slot);
  void hand_to_opener(Slot& slot);
  void close_if_unwanted(Slot& slot);
  void end_load(Slot& slot, Status outcome);
  std::uint64_t open_bytes() const;
  std::size_t n_open() const;
  std::string names_in_use(const Slot& but) const;

  // Makes a lease of what acquire() and find_open() counted.
  std::shared_ptr<Runtime> lease(Slot& slot, Runtime* runtime);
  void give_back(Slot& slot);

  // The opener.
  void run_opener();
  void open(Slot& slot);
  Status try_open(Slot& slot);
  Result<std::uint64_t> estimate(const CatalogEntry& entry) const;
  Status make_room(Slot& slot);
  Status why_no_room(const Slot& slot, std::uint64_t limit) const;
  bool close_oldest(const Slot& but);
  Status load(Slot& slot);
  Result<std::shared_ptr<Runtime>> begin_load(Slot& slot);
  void wait_for_rest(Slot& slot, const std::shared_ptr<Runtime>& runtime);
  void end_closed();

  const CatalogOptions options_;
  ModelLoader& loader_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Slot>> slots_;  // in the order of the entries; never changed
  std::unordered_map<std::string, Slot*> by_name_;
  std::deque<Slot*> queue_;
  std::vector<std::shared_ptr<Runtime>> closed_;  // for the opener to end
  std::uint64_t uses_ = 0;
  bool ending_ = false;

  std::mutex joining_;
  std::thread opener_;
};

}  // namespace outrider
