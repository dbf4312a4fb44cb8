// What a callback that does not keep up gets.
#include "serve/events.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace outrider {
namespace {

// Takes its first event and then nothing until it is let go.
class SlowListener {
 public:
  void operator()(const RuntimeEvent& event) {
    std::unique_lock<std::mutex> lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
    changed_.wait(lock, [this] { return free_; });
  }

  void wait_for_first() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !events_.empty(); });
  }

  void let_go() {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }

  std::size_t n_events() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return events_.size();
  }
  // REQUIRES: no further ones come
  const std::vector<RuntimeEvent>& events() const { return events_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RuntimeEvent> events_;
  bool free_ = false;
};

RuntimeEvent said(CompletionId id, Token token) {
  RuntimeEvent event;
  event.completion.emplace();
  event.completion->id = id;
  event.completion->tokens.emplace_back();
  event.completion->tokens.back().id = token;
  return event;
}

RuntimeEvent ended(CompletionId id) {
  RuntimeEvent event;
  event.completion.emplace();
  event.completion->id = id;
  event.completion->result = std::make_shared<const CompletionResult>();
  return event;
}

RuntimeEvent model(ModelState state, double progress, std::string path = "a.gguf") {
  RuntimeEvent event;
  event.model.emplace();
  event.model->status.state = state;
  event.model->status.progress = progress;
  event.model->status.path = std::move(path);
  return event;
}

std::vector<RuntimeEvent> heard_late(std::vector<RuntimeEvent> events) {
  SlowListener listener;
  {
    EventThread thread;
    thread.subscribe([&](const RuntimeEvent& event) { listener(event); });
    thread.post(model(ModelState::kAbsent, 0.0, "first"));
    listener.wait_for_first();
    for (RuntimeEvent& event : events) thread.post(std::move(event));
    listener.let_go();
  }  // gives out what waits
  return {listener.events().begin() + 1, listener.events().end()};
}

TEST(Events, OfACompletionAreJoinedInTheirOrder) {
  std::vector<RuntimeEvent> events;
  for (Token token = 0; token < 1000; ++token) {
    events.push_back(said(1, token));
    events.push_back(said(2, 5000 + token));
  }
  events.push_back(ended(2));
  const std::vector<RuntimeEvent> heard = heard_late(events);
  ASSERT_EQ(heard.size(), 2U);
  for (const RuntimeEvent& event : heard) {
    const CompletionEvent& completion = *event.completion;
    ASSERT_EQ(completion.tokens.size(), 1000U);
    for (std::size_t i = 0; i < completion.tokens.size(); ++i) {
      EXPECT_EQ(completion.tokens[i].id, static_cast<Token>(i) + (completion.id == 2 ? 5000 : 0));
    }
    EXPECT_EQ(completion.result != nullptr, completion.id == 2);
  }
}

// A copy has no more room than it needs, so that this looks at what is handed out.
TEST(Events, JoiningATokenDoesNotMoveAllThatWait) {
  SlowListener listener;
  std::size_t room = 0;
  {
    EventThread thread;
    thread.subscribe([&](const RuntimeEvent& event) {
      if (event.completion) room = event.completion->tokens.capacity();
      listener(event);
    });
    thread.post(model(ModelState::kAbsent, 0.0, "first"));
    listener.wait_for_first();
    for (Token token = 0; token < 1000; ++token) thread.post(said(1, token));
    listener.let_go();
  }
  ASSERT_EQ(listener.n_events(), 2U);
  EXPECT_EQ(listener.events()[1].completion->tokens.size(), 1000U);
  EXPECT_GT(room, 1000U) << "room for more than what came";
}

TEST(Events, OfModelsAreJoinedOnlyWhileOneLoads) {
  const std::vector<RuntimeEvent> heard = heard_late({
      model(ModelState::kLoading, 0.1),
      model(ModelState::kLoading, 0.9),
      model(ModelState::kFailed, 0.9),
      model(ModelState::kFailed, 0.0),
      model(ModelState::kLoading, 0.2),
      model(ModelState::kLoading, 0.3, "b.gguf"),
  });
  ASSERT_EQ(heard.size(), 5U);
  EXPECT_EQ(heard[0].model->status.progress, 0.9);
  EXPECT_EQ(heard[1].model->status.state, ModelState::kFailed);
  EXPECT_EQ(heard[2].model->status.state, ModelState::kFailed);
  EXPECT_EQ(heard[4].model->status.path, "b.gguf");
}

TEST(Events, OfACompletionAreNotJoinedPastOneOfAModel) {
  const std::vector<RuntimeEvent> heard =
      heard_late({said(1, 1), said(1, 2), model(ModelState::kReady, 1.0), said(1, 3), said(1, 4)});
  ASSERT_EQ(heard.size(), 3U);
  EXPECT_EQ(heard[0].completion->tokens.size(), 2U);
  EXPECT_TRUE(heard[1].model.has_value());
  EXPECT_EQ(heard[2].completion->tokens.size(), 2U);
}

// Their makers fail while the listener is busy; one that listens later did not miss them.
TEST(Events, ForWhichThereIsNoMemoryAreToldOfAsOneWithoutAnything) {
  SlowListener listener;
  std::vector<RuntimeEvent> later;
  {
    EventThread thread;
    const auto lose = [&thread] { thread.tell([]() -> RuntimeEvent { throw std::bad_alloc(); }); };
    lose();  // nobody listens
    thread.subscribe([&](const RuntimeEvent& event) { listener(event); });
    thread.post(model(ModelState::kAbsent, 0.0, "first"));
    listener.wait_for_first();
    thread.post(said(1, 1));
    lose();
    lose();
    listener.let_go();
    while (listener.n_events() < 3) std::this_thread::yield();
    thread.subscribe([&](const RuntimeEvent& event) { later.push_back(event); });
    thread.post(said(2, 1));
  }
  ASSERT_EQ(listener.events().size(), 3U);
  const RuntimeEvent& lost = listener.events()[1];
  EXPECT_FALSE(lost.model || lost.drafter || lost.completion);
  EXPECT_EQ(listener.events()[2].completion->tokens.size(), 1U);
  ASSERT_EQ(later.size(), 1U);
  EXPECT_EQ(later[0].completion->id, 2);
}

}  // namespace
}  // namespace outrider
