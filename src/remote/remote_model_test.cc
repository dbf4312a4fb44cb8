// A hand-written model behind the channel, served by a thread of this process: it must be the same
// as without, call for call, and every end of the other side must be an error. With real processes:
// tests/isolated_target_test.cc.
#include "remote/remote_model.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "remote/model_host.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

using testing::FakeModel;
using testing::random_rows;

constexpr std::int32_t kVocab = 12;

Capabilities capabilities() {
  return {.n_vocab = kVocab,
          .n_ctx = 64,
          .n_batch = 24,
          .n_sequences = 3,
          .rollback = Rollback::kAny,
          .max_leaves = 8,
          .max_width = 8,
          .rollback_reason = "a reason",
          .branches_reason = ""};
}

OpenReport report() {
  OpenReport report;
  report.exactness = {
      .kind = Exactness::Kind::kUpToWidth, .width = 3, .coverage = "by hand", .reason = "because"};
  report.notes = {"one", "two"};
  report.architecture = "fake";
  report.name = "by hand";
  report.description = "fake 1K";
  report.n_params = 1000;
  report.size_bytes = 4000;
  report.n_ctx_train = 64;
  report.has_chat_template = true;
  return report;
}

OpenOrder order() {
  OpenOrder order;
  order.model.path = "a.gguf";
  order.model.n_batch = 24;
  order.model.cache_type_k = "bf16";
  order.model.exact = ExactMode::kOn;
  order.model.workers = {"a:1", "b:2"};
  order.speculation = false;
  order.probe_budget_ms = 12.5;
  order.cache_folder = "";
  return order;
}

// A model that says what its interrupt flag is.
class FlaggedModel : public FakeModel {
 public:
  using FakeModel::FakeModel;
  void set_interrupt(const std::atomic<bool>* flag) override {
    flag_ = flag;
    FakeModel::set_interrupt(flag);
  }
  void wait_for_flag() const {
    while (!flag_->load()) std::this_thread::yield();
  }

 private:
  const std::atomic<bool>* flag_ = nullptr;
};

// serve_model() on a thread. Its model is the host's during a call, the test's between calls.
class Host {
 public:
  explicit Host(OpenHosted open) : open_(std::move(open)) {}
  Host()
      : Host([this](const OpenOrder&, const LoadHooks&, const std::function<void(double)>&) {
          return make();
        }) {}
  ~Host() { join(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

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
    std::unique_ptr<FlaggedModel> model =
        std::make_unique<FlaggedModel>(capabilities(), random_rows(kVocab, 7, 3.0f));
    fake_ = model.get();
    HostedModel hosted;
    hosted.report = report();
    hosted.model = std::move(model);
    return hosted;
  }

  Result<std::unique_ptr<RemoteModel>> open(const LoadHooks& hooks = {}) {
    return RemoteModel::open(starter(), order(), hooks, {});
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

unsigned test_seed() {
  const char* text = std::getenv("OUTRIDER_TEST_SEED");
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 1234U;
}

// Two models that must stay the same, driven at random: new trees, grown trees, commits of a random
// path, truncations, errors.
class Twins {
 public:
  Twins(LanguageModel& a, LanguageModel& b, unsigned seed) : a_(a), b_(b), random_(seed) {}

  void act() {
    const int what = draw(10);
    const std::size_t i = static_cast<std::size_t>(draw(3));
    const SeqId seq = static_cast<SeqId>(i);
    if (what == 0) {
      const bool open = trees_[i].has_value() || prefix_only_[i];
      const Pos length = open ? 0 : draw(a_.length(seq) + 1);
      same(a_.truncate(seq, length), b_.truncate(seq, length));
      trees_[i].reset();
      prefix_only_[i] = false;
    } else if (trees_[i].has_value() && what < 4) {
      grow(i);
    } else if (trees_[i].has_value() || prefix_only_[i]) {
      commit(i);
    } else {
      evaluate();
    }
    for (SeqId s = 0; s < 3; ++s) {
      ASSERT_EQ(a_.length(s), b_.length(s));
      ASSERT_EQ(a_.room(s), b_.room(s));
    }
  }

 private:
  int draw(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Token token() { return draw(40) == 0 ? kVocab : draw(kVocab); }  // some are no tokens

  void same(const Status& a, const Status& b) {
    EXPECT_EQ(a.code(), b.code());
    EXPECT_EQ(a.message(), b.message());
  }

  void evaluate() {
    std::vector<std::vector<Token>> prefixes;
    std::vector<TokenTree> trees;
    std::vector<std::size_t> who;
    prefixes.reserve(3);
    trees.reserve(3);
    for (std::size_t i = 0; i < 3; ++i) {
      if (trees_[i].has_value() || prefix_only_[i] || draw(2) == 0) continue;
      who.push_back(i);
      prefixes.emplace_back();
      for (int n = draw(4); n > 0; --n) prefixes.back().push_back(token());
      trees.emplace_back(token());
      for (int n = draw(6); n > 0; --n) {
        trees.back().add(draw(trees.back().size()), token(), 1.0f, 1);
      }
    }
    if (who.empty()) return;
    std::vector<EvalItem> items;
    std::vector<bool> bare;
    for (std::size_t k = 0; k < who.size(); ++k) {
      bare.push_back(!prefixes[k].empty() && draw(4) == 0);
      items.push_back({.seq = static_cast<SeqId>(who[k]),
                       .prefix = prefixes[k],
                       .tree = bare[k] ? nullptr : &trees[k]});
    }
    if (!run(items)) return;
    for (std::size_t k = 0; k < who.size(); ++k) {
      prefix_only_[who[k]] = bare[k];
      if (!bare[k]) trees_[who[k]] = trees[k];
    }
  }

  void grow(std::size_t i) {
    TokenTree tree = *trees_[i];
    const NodeId before = tree.size();
    for (int n = 1 + draw(2); n > 0; --n) tree.add(draw(tree.size()), token(), 1.0f, 1);
    if (tree.size() == before) return;
    const EvalItem item{
        .seq = static_cast<SeqId>(i), .prefix = {}, .tree = &tree, .first_new = before};
    if (run({&item, 1})) trees_[i] = tree;
  }

  bool run(std::span<const EvalItem> items) {
    const Status a = a_.evaluate(items);
    const Status b = b_.evaluate(items);
    same(a, b);
    if (!a.ok() || !b.ok()) return false;
    for (std::size_t k = 0; k < items.size(); ++k) {
      const NodeId end = items[k].tree == nullptr ? 0 : items[k].tree->size();
      for (NodeId node = items[k].first_new; node < end; ++node) {
        const std::span<const float> x = a_.logits(k, node);
        const std::span<const float> y = b_.logits(k, node);
        EXPECT_EQ(x.size(), y.size());
        EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size_bytes()), 0);
        ++rows_;
      }
    }
    return true;
  }

  void commit(std::size_t i) {
    std::vector<NodeId> path;
    if (trees_[i]) {
      path = trees_[i]->path_to(draw(trees_[i]->size()));
      path.resize(static_cast<std::size_t>(draw(static_cast<int>(path.size()) + 1)));
    }
    const SeqId seq = static_cast<SeqId>(i);
    same(a_.commit(seq, path), b_.commit(seq, path));
    trees_[i].reset();
    prefix_only_[i] = false;
  }

  LanguageModel& a_;
  LanguageModel& b_;
  std::mt19937 random_;
  std::optional<TokenTree> trees_[3];
  bool prefix_only_[3] = {false, false, false};

 public:
  int rows_ = 0;
};

TEST(RemoteModel, IsTheSameModelCallForCall) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
  Host host;
  Result<std::unique_ptr<RemoteModel>> remote = host.open();
  ASSERT_TRUE(remote.ok()) << remote.status().message();
  FakeModel near(capabilities(), random_rows(kVocab, 7, 3.0f));
  Twins twins(**remote, near, seed);
  for (int i = 0; i < 3000 && !::testing::Test::HasFailure(); ++i) twins.act();
  EXPECT_GT(twins.rows_, 1000);
}

TEST(RemoteModel, WhatIsOrderedAndWhatIsReportedTravelWhole) {
  OpenOrder seen;
  Host host([&](const OpenOrder& order, const LoadHooks& hooks,
                const std::function<void(double)>& probing) -> Result<HostedModel> {
    seen = order;
    hooks.progress(0.5);
    hooks.log(LogLevel::kWarning, "a line");
    probing(0.25);
    return host.make();
  });
  std::vector<double> progress;
  std::vector<std::string> lines;
  double probed = 0.0;
  const LoadHooks hooks{.progress = [&](double fraction) { progress.push_back(fraction); },
                        .cancel = nullptr,
                        .log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); }};
  const Result<std::unique_ptr<RemoteModel>> model = RemoteModel::open(
      host.starter(), order(), hooks, [&](double fraction) { probed = fraction; });
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(progress, std::vector<double>{0.5});
  EXPECT_EQ(lines, std::vector<std::string>{"a line"});
  EXPECT_EQ(probed, 0.25);
  EXPECT_EQ(seen.model.path, "a.gguf");
  EXPECT_EQ(seen.model.cache_type_k, "bf16");
  EXPECT_EQ(seen.model.exact, ExactMode::kOn);
  EXPECT_EQ(seen.model.workers, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_FALSE(seen.speculation);
  EXPECT_EQ(seen.probe_budget_ms, 12.5);
  EXPECT_EQ(seen.cache_folder, "");
  const OpenReport& got = (*model)->report();
  EXPECT_EQ(got.exactness.verdict(), "exact up to width 3");
  EXPECT_EQ(got.exactness.reason, "because");
  EXPECT_EQ(got.notes, report().notes);
  EXPECT_EQ(got.description, "fake 1K");
  EXPECT_EQ(got.n_params, 1000U);
  EXPECT_TRUE(got.has_chat_template);
  EXPECT_EQ(got.capabilities.rollback_reason, "a reason");
  EXPECT_EQ((*model)->room(2), 64);
}

TEST(RemoteModel, AFailedOpeningIsTheOpenersOwnError) {
  Host host([](const OpenOrder&, const LoadHooks&,
               const std::function<void(double)>&) -> Result<HostedModel> {
    return unsupported("'a.gguf' is a cake");
  });
  const Status status = host.open().status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(), "'a.gguf' is a cake");
}

TEST(RemoteModel, ARaisedFlagEndsARunningEvaluationAndTheNextOneWorks) {
  Host host;
  Result<std::unique_ptr<RemoteModel>> model = host.open();
  ASSERT_TRUE(model.ok());
  std::atomic<bool> flag{false};
  (*model)->set_interrupt(&flag);
  FlaggedModel& fake = host.fake();
  fake.on_evaluate([&] {
    flag.store(true);  // while the parent waits
    fake.wait_for_flag();
  });
  const TokenTree root(1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  EXPECT_EQ((*model)->evaluate({&item, 1}).code(), StatusCode::kCancelled);
  flag.store(false);
  fake.on_evaluate({});
  EXPECT_TRUE((*model)->evaluate({&item, 1}).ok());
  flag.store(true);
  EXPECT_EQ((*model)->truncate(0, 0).code(), StatusCode::kOk) << "only evaluations are ended";
  EXPECT_EQ((*model)->evaluate({&item, 1}).code(), StatusCode::kCancelled) << "raised before";
  (*model)->set_interrupt(nullptr);
  EXPECT_TRUE((*model)->evaluate({&item, 1}).ok());
}

TEST(RemoteModel, ARaisedFlagEndsTheLoading) {
  std::atomic<bool> cancel{false};
  Host host([&](const OpenOrder&, const LoadHooks& hooks,
                const std::function<void(double)>&) -> Result<HostedModel> {
    cancel.store(true);
    while (!hooks.cancel->load()) std::this_thread::yield();
    return cancelled("the opener saw it");
  });
  EXPECT_EQ(host.open({.progress = {}, .cancel = &cancel, .log = {}}).status().code(),
            StatusCode::kCancelled);
}

TEST(RemoteModel, OnceTheOtherSideIsGoneEveryCallFailsAndNothingIsHeld) {
  Host host;
  Result<std::unique_ptr<RemoteModel>> model = host.open();
  ASSERT_TRUE(model.ok());
  const TokenTree root(1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  const std::vector<NodeId> path{0};
  ASSERT_TRUE((*model)->evaluate({&item, 1}).ok());
  ASSERT_TRUE((*model)->commit(0, path).ok());
  EXPECT_EQ((*model)->length(0), 1);
  host.fake().on_evaluate([&] { host.vanish(); });
  const Status first = (*model)->evaluate({&item, 1});
  EXPECT_EQ(first.code(), StatusCode::kInternal);
  EXPECT_EQ(first.message(), "'a.gguf' ran in a process of its own, which is gone");
  EXPECT_EQ((*model)->length(0), 0);
  EXPECT_EQ((*model)->room(0), 0);
  for (const Status& status :
       {(*model)->evaluate({&item, 1}), (*model)->commit(0, path), (*model)->truncate(0, 0)}) {
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_EQ(status.message(), first.message());
  }
  host.join();
  EXPECT_FALSE(host.result().ok());
}

TEST(RemoteModel, TheOtherSideMayVanishWhileItLoads) {
  Host host([&](const OpenOrder&, const LoadHooks& hooks,
                const std::function<void(double)>&) -> Result<HostedModel> {
    hooks.log(LogLevel::kError, "tensor 'x' is out of bounds");
    host.vanish();
    return not_found("never told");
  });
  const Status status = host.open().status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "'a.gguf' ran in a process of its own, which is gone: tensor 'x' is out of bounds");
}

TEST(RemoteModel, TheHostEndsWithTheModel) {
  Host host;
  Result<std::unique_ptr<RemoteModel>> model = host.open();
  ASSERT_TRUE(model.ok());
  model = not_found("freed");
  host.join();
  EXPECT_TRUE(host.result().ok()) << host.result().message();
}

}  // namespace
}  // namespace outrider
