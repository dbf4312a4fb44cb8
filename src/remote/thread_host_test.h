// serve_model() on a thread of the test's process, with a hand-written model.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "remote/remote_model.h"
#include "remote/serve_model.h"
#include "testing/fake_model.h"
#include "testing/model_twins.h"

namespace outrider {

inline constexpr std::int32_t kHostVocab = 12;

inline Capabilities host_capabilities() {
  return {.n_vocab = kHostVocab,
          .n_ctx = 64,
          .n_batch = 24,
          .n_sequences = 3,
          .rollback = Rollback::kAny,
          .max_leaves = 8,
          .max_width = 8,
          .rollback_reason = "a reason",
          .branches_reason = "",
          .can_share = true};
}

inline OpenReport host_report() {
  OpenReport report;
  report.exactness = {
      .kind = Exactness::Kind::kUpToWidth, .width = 3, .coverage = "by hand", .reason = "because"};
  report.notes = {"one", "two"};
  report.info.architecture = "fake";
  report.info.name = "by hand";
  report.info.description = "fake 1K";
  report.info.n_params = 1000;
  report.info.size_bytes = 4000;
  report.info.n_ctx_train = 64;
  report.info.has_chat_template = true;
  return report;
}

inline OpenRequest host_request() {
  OpenRequest request;
  request.model.path = "a.gguf";
  request.model.n_batch = 24;
  request.model.cache_type_k = "bf16";
  request.model.exact = ExactMode::kOn;
  request.model.workers = {"a:1", "b:2"};
  request.speculation = false;
  request.probe_budget_ms = 12.5;
  request.cache_folder = "";
  return request;
}

// A model that says what its interrupt flag is.
class FlaggedModel : public testing::FakeModel {
 public:
  using testing::FakeModel::FakeModel;
  void set_interrupt(const std::atomic<bool>* flag) override {
    flag_ = flag;
    testing::FakeModel::set_interrupt(flag);
  }
  void wait_for_flag() const {
    while (!flag_->load()) std::this_thread::yield();
  }

 private:
  const std::atomic<bool>* flag_ = nullptr;
};

// serve_model() on a thread. Its model is the host's during a call, the test's between calls.
class ThreadHost {
 public:
  explicit ThreadHost(OpenHosted open) : open_(std::move(open)) {}
  ThreadHost()
      : ThreadHost([this](const OpenRequest&, const LoadHooks&,
                          const std::function<void(double)>&) { return make(); }) {}
  ~ThreadHost() { join(); }
  ThreadHost(const ThreadHost&) = delete;
  ThreadHost& operator=(const ThreadHost&) = delete;

  RemoteModel::StartHost starter() {
    return [this](RemoteModel::ChildEnds ends) -> Result<std::unique_ptr<ChildProcess>> {
      socket_ = ends.channel.get();
      thread_ = std::thread(
          [this, channel = std::move(ends.channel), memory = std::move(ends.memory)]() mutable {
            result_ = serve_model(std::move(channel), std::move(memory), open_);
          });
      return std::unique_ptr<ChildProcess>();
    };
  }

  Result<HostedModel> make() {
    std::unique_ptr<FlaggedModel> model = std::make_unique<FlaggedModel>(
        host_capabilities(), testing::random_rows(kHostVocab, 7, 3.0f));
    fake_ = model.get();
    HostedModel hosted;
    hosted.report = host_report();
    hosted.model = std::move(model);
    return hosted;
  }

  Result<std::unique_ptr<RemoteModel>> open(const LoadHooks& hooks = {}) {
    return RemoteModel::open(starter(), host_request(), hooks, {});
  }

  void join() {
    if (thread_.joinable()) thread_.join();
  }
  // As if the process had died.
  void vanish() const { shutdown(socket_, SHUT_RDWR); }
  FlaggedModel& fake() { return *fake_; }
  const Status& result() const { return result_; }  // after join()

 private:
  OpenHosted open_;
  std::thread thread_;
  int socket_ = -1;
  FlaggedModel* fake_ = nullptr;
  Status result_;
};

}  // namespace outrider
