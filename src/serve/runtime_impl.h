// What is behind Runtime. Implemented in runtime.cc (clients' calls), runtime_loop.cc (the decode
// thread), runtime_load.cc (the loading thread), runtime_drafters.cc (drafters' files).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "serve/events.h"
#include "serve/job.h"
#include "serve/runtime.h"
#include "serve/station.h"

namespace outrider {

class Runtime::Impl {
 public:
  Impl(const RuntimeOptions& options, ModelLoader& loader);
  ~Impl();

  // runtime_load.cc
  void shut_down();
  Status load(ModelRole role, ModelOptions options);
  Status cancel_load(ModelRole role);
  Status unload(ModelRole role, bool at_once);
  RuntimeStatus status();
  Status attach(DrafterFile file);         // runtime_drafters.cc
  Status detach(const DrafterFile& file);  // runtime_drafters.cc
  bool wait_loaded(std::int64_t wait_ms);

  // runtime.cc
  std::shared_ptr<const Target> target();
  Result<StartedCompletion> start(CompletionRequest request);
  Result<PolledCompletion> poll(CompletionId id, std::int64_t wait_ms);
  Status cancel(CompletionId id);
  std::string check_integrity();

  const RuntimeOptions options;
  EventThread events;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using JobPtr = std::shared_ptr<Job>;

  // An order for a model, from load() until it is done.
  struct Order {
    ModelOptions options;
    std::atomic<bool> cancel{false};
    bool active = false;  // the loading thread has it
  };
  using OrderPtr = std::shared_ptr<Order>;

  struct Role {
    OrderPtr order;        // null: none that is not done
    ModelOptions serving;  // of the one at work
    ModelStatus status;
  };

  // A drafter's file, from attach() until detach().
  struct FileEntry {
    DrafterFile file;
    std::uint64_t order = 0;  // number of the order that is not done; 0: none
    bool active = false;      // the loading thread has it
    ModelState state = ModelState::kLoading;
    Status error;
    std::optional<OpenedDrafterFile> opened;  // the one at work
  };

  // What is on its way to the decode thread: a draft (null: take away the one that is there), a
  // file that was opened, or one that is to go.
  struct Change {
    std::shared_ptr<Station> station;  // null: all
    std::variant<std::unique_ptr<Draft>, OpenedDrafterFile, DrafterFile> what;
    std::string reason;  // for the requests that lose something
  };

  // runtime_drafters.cc
  FileEntry* find_file(const DrafterFile& file);
  Status free_tier(const DrafterFile& file);
  FileEntry* next_file();
  void open_file(Lock& lock);
  void order_file(FileEntry& entry);
  void set_file_state(FileEntry& entry, ModelState state, Status error);
  void announce(const FileEntry& entry, bool attached);
  bool file_orders_wait() const;
  void reorder_files();
  void drop_files();
  DrafterFileStatus status_of(const FileEntry& entry) const;
  std::vector<DrafterStatus> drafter_statuses() const;

  // The loading thread.
  void load_loop();
  std::optional<ModelRole> next_order() const;
  void carry_out(ModelRole role, const OrderPtr& order, Lock& lock);
  Status open_target(const Order& order, const LoadHooks& hooks, Lock& lock);
  Status open_draft(const Order& order, const LoadHooks& hooks, Lock& lock);
  void end_requests_of(const Station& station);
  void take_out_of_service();
  void order(ModelRole role, ModelOptions options);
  LoadHooks hooks_for(ModelRole role, const OrderPtr& order);
  void set_status(ModelRole role, ModelState state, Status error);
  void announce(ModelRole role);
  Role& role_of(ModelRole role) { return role == ModelRole::kTarget ? target_role_ : draft_role_; }

  // Who shuts down.
  void join_threads();

  // The deadlines' thread: a step that does not return keeps nobody waiting.
  void deadline_loop();

  // The decode thread: one turn is these passes.
  void decode_loop();
  void install();
  void admit();
  void step();
  void expire();
  void release_stations();
  bool has_work() const;
  void end_all();
  std::optional<Job::Clock::time_point> next_expiry() const;
  void add_to_engine(Job& job, Request request, Lock& lock);
  void install_draft(Change change);
  void install_file(Change change);
  std::vector<std::string_view> drafters_with_files() const;
  std::string why_without_ordered(const Job& job) const;
  std::string why_without(const Job& job) const;
  std::string why_no_draft(const Job& job) const;
  void publish(Station& station, std::vector<Update> updates);
  JobPtr running_job(const Station& station, RequestId id) const;
  std::optional<Remembered> remember(Station& station, const Job& job,
                                     const Completion& completion) const;
  void note_progress(const Station& station);
  void note_idle(const Station& station);
  void note_drafters(const Station& station);
  void no_drafters();
  void restart(Station& station);
  void lose_target(const Station& station, const Status& why);

  // Both.
  void finish(Job& job);
  void fail(Job& job, Status why);
  void end(Job& job, EndedBy by);
  void give_out(Job& job, std::vector<SaidToken> tokens);
  void post(const Job& job, const std::vector<SaidToken>& tokens);
  void count(const Completion& completion);
  Status no_target() const;
  static Status is_shut_down() { return cancelled("the runtime is shut down"); }
  // Of a wait that a client wishes for: 11 days at most, more would overflow the clock.
  static std::chrono::milliseconds wait_time(std::int64_t ms) {
    return std::chrono::milliseconds(std::min<std::int64_t>(ms, 1'000'000'000));
  }
  std::size_t waiting_jobs(const Station& station) const;

  ModelLoader& loader_;

  mutable std::mutex mutex_;
  std::condition_variable decode_work_;  // something for the decode thread
  std::condition_variable load_work_;    // something for the loading thread
  std::condition_variable loaded_;       // an order is done
  std::condition_variable deadline_set_;
  bool stop_ = false;
  std::once_flag shut_down_;
  int polls_ = 0;                    // calls of poll() that are waiting
  std::condition_variable no_poll_;  // polls_ is 0

  Role target_role_;
  Role draft_role_;

  std::deque<Change> changes_;
  std::vector<FileEntry> files_;  // in order of attach()
  std::uint64_t next_file_order_ = 1;

  std::shared_ptr<Station> current_;                // new requests get it; may be null
  std::vector<std::shared_ptr<Station>> stations_;  // all that are at work, current_ last
  // What the idle sequences of current_ hold, as of its last change. For PromptStats.
  IdleTexts idle_;

  std::vector<std::string_view> drafter_names_;  // kDrafterNames, then the added ones
  // Of a drafter, by its place in drafter_names_.
  struct DrafterNote {
    bool attached = false;           // to current_
    std::uint64_t memory_bytes = 0;  // as of its last change, as is the next one
    std::optional<MemoryStatus> memory;
    DrafterStats totals;
  };
  std::vector<DrafterNote> drafters_;  // one more than names: any other name
  DrafterNote& note_of(std::string_view drafter) {
    return drafters_[static_cast<std::size_t>(
        std::find(drafter_names_.begin(), drafter_names_.end(), drafter) - drafter_names_.begin())];
  }

  std::deque<JobPtr> queue_;             // waiting, in order of arrival
  std::vector<JobPtr> running_;          // in order of admission
  std::map<CompletionId, JobPtr> jobs_;  // all that are known to clients
  CompletionId next_id_ = 1;
  RuntimeStatus totals_;  // only its counters

  std::thread loading_thread_;
  std::thread decode_thread_;
  std::thread deadline_thread_;
};

}  // namespace outrider
