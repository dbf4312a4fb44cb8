// The C functions' work over models of hand-written numbers: every state, every thread, bad input.
#include "capi/boundary.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "capi/instances.h"
#include "capi/log.h"
#include "testing/fake_loader.h"

namespace outrider::capi {
namespace {

using json::Json;
using testing::FakeLoader;

std::unique_ptr<FakeLoader> loader() {
  std::unique_ptr<FakeLoader> made = std::make_unique<FakeLoader>();
  made->add("target", {.seed = 1});
  made->add("draft", {.seed = 1, .noise = 0.5f});
  made->add("slow", {.seed = 1, .load_steps = testing::kEndlessLoad});
  made->add("broken", {.failure = internal_error("'broken' is broken")});
  return made;
}

Instance* open(const char* config) {
  char* error = nullptr;
  Instance* const instance = create(config, &error, loader());
  EXPECT_NE(instance, nullptr) << error;
  EXPECT_EQ(error, nullptr);
  return instance;
}

Json ask(Instance* instance, const std::string& method, const Json& params) {
  const Json request = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}};
  char* const text = call(instance, json::encode(request).c_str());
  EXPECT_NE(text, nullptr);
  json::Parsed parsed = json::parse(text == nullptr ? "" : text);
  EXPECT_TRUE(parsed.ok());
  free_string(text);
  return parsed.ok() ? *parsed.value : Json();
}

// A completion whose text has no end: a full context is shifted. It runs until somebody ends it,
// however long that takes.
Json endless() { return {{"prompt", "abc"}, {"max_tokens", -1}, {"temp", 1}, {"shift_keep", 0}}; }

// Until no load is going on.
Json wait(Instance* instance) {
  return ask(instance, "system.status", {{"wait_ms", 60'000}})["result"];
}

std::string refusal(const char* config) {
  char* error = nullptr;
  Instance* const instance = create(config, &error, loader());
  EXPECT_EQ(instance, nullptr) << config;
  const std::string text = error == nullptr ? "" : error;
  free_string(error);
  destroy(instance);
  return text;
}

TEST(Create, AConfigIsReadStrictlyAndItsErrorNamesTheField) {
  for (const char* right :
       {(const char*)nullptr, "", " \n", "{}", R"({"slots":2,"max_queue":0})"}) {
    destroy(open(right));
  }
  EXPECT_EQ(refusal(R"({"slots":0})"), "slots is 0, but must be a whole number from 1 to 64");
  EXPECT_NE(refusal(R"({"slot":1})").find("did you mean slots?"), std::string::npos);
  EXPECT_NE(refusal(R"({"model":{"path":"target","ctx":-1}})").find("model.ctx is -1"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"draft":{}})").find("draft.path is missing"), std::string::npos);
  EXPECT_NE(refusal(R"({"draft":5})").find("draft is 5"), std::string::npos);
  EXPECT_NE(refusal(R"({"suffix_store":[""]})").find("suffix_store is "), std::string::npos);
  std::string stores;
  for (int i = 0; i < 64; ++i) stores += "\"s" + std::to_string(i) + "\",";
  const std::string many = R"({"ngram_static":"n","suffix_store":[)" + stores + "\"last\"]}";
  EXPECT_NE(refusal(many.c_str()).find("are 66 together, at most 64 can be"), std::string::npos)
      << refusal(many.c_str());
  EXPECT_NE(refusal(R"({"suffix_store":[5]})").find("suffix_store[0] is 5"), std::string::npos);
  EXPECT_NE(refusal(R"({"remember_tokens":5})").find("remember_tokens is 5"), std::string::npos);
  EXPECT_NE(refusal(R"({"ngram_static":""})").find("ngram_static is "), std::string::npos);
  EXPECT_NE(refusal(R"({"ngram_dynamic":[]})").find("ngram_dynamic is "), std::string::npos);
  EXPECT_EQ(refusal("[]"), "the config is an array, but must be an object");
  EXPECT_NE(refusal("{").find("line 1, column"), std::string::npos);
  EXPECT_NE(refusal("{\"slots\":\xFF}"), "");
  EXPECT_EQ(create("{", nullptr, loader()), nullptr) << "the reason is not asked for";
}

TEST(Create, ModelsOfTheConfigAreLoaded) {
  Instance* const instance =
      open(R"({"model":{"path":"target","ctx":64},"draft":{"path":"draft","ctx":64}})");
  const Json status = wait(instance);
  EXPECT_EQ(status["target"]["state"], "ready");
  EXPECT_EQ(status["draft"]["state"], "ready");
  destroy(instance);
}

TEST(Create, StoresOfTheConfigAreAttachedOnceThereIsATarget) {
  Instance* const instance =
      open(R"({"model":{"path":"target","ctx":64},"suffix_store":"no-such-store"})");
  const Json status = wait(instance);
  EXPECT_EQ(status["target"]["state"], "ready");
  const Json& file = status["drafters"][1]["files"][0];
  EXPECT_EQ(file["state"], "failed");
  EXPECT_EQ(file["error"]["code"], "not_found");
  destroy(instance);
  destroy(open(R"({"suffix_store":["a","b"]})"));  // they wait for a target
  destroy(open(R"({"remember_tokens":65536})"));
  destroy(open(R"({"ngram_static":"a","ngram_dynamic":"a"})"));
}

TEST(Call, WhatIsNotThereIsAnError) {
  char* answer = call(nullptr, "{}");
  EXPECT_NE(std::string(answer).find("-32600"), std::string::npos);
  free_string(answer);
  Instance* const instance = open(nullptr);
  answer = call(instance, nullptr);
  EXPECT_NE(std::string(answer).find("-32600"), std::string::npos);
  free_string(answer);
  EXPECT_EQ(subscribe(nullptr, nullptr, nullptr), EINVAL);
  destroy(nullptr);
  free_string(nullptr);
  destroy(instance);
}

TEST(Call, ANotificationGetsAnEmptyText) {
  Instance* const instance = open(nullptr);
  char* const answer = call(instance, R"({"jsonrpc":"2.0","method":"stats"})");
  EXPECT_STREQ(answer, "");
  free_string(answer);
  destroy(instance);
}

TEST(Destroy, WorksInEveryState) {
  destroy(open(nullptr));                          // nothing loaded
  destroy(open(R"({"model":{"path":"slow"}})"));   // loading
  destroy(open(R"({"draft":{"path":"draft"}})"));  // a draft that waits for its target
  Instance* instance = open(R"({"model":{"path":"broken"}})");
  EXPECT_EQ(wait(instance)["target"]["state"], "failed");
  destroy(instance);
  for (const bool poll : {false, true}) {  // running and queued
    instance = open(R"({"slots":2,"model":{"path":"target","ctx":64}})");
    wait(instance);
    const Json id = ask(instance, "completion.start", endless())["result"]["id"];
    for (int i = 0; i < 5; ++i) ask(instance, "completion.start", endless());
    if (poll) {
      const Json polled = ask(instance, "completion.poll", {{"id", id}, {"wait_ms", 60'000}});
      EXPECT_EQ(polled["result"]["finished"], false) << polled;
    }
    destroy(instance);
  }
  instance = open(R"({"model":{"path":"target","ctx":64}})");  // finished, never polled
  wait(instance);
  ask(instance, "completion.start", {{"prompt", "abc"}, {"max_tokens", 3}});
  while (ask(instance, "stats", Json::object())["result"]["finished"] != 1) {
    std::this_thread::yield();
  }
  destroy(instance);
}

TEST(Destroy, CallsThatWaitReturn) {
  Instance* const instance = open(R"({"slots":1,"model":{"path":"target","ctx":64}})");
  wait(instance);
  const Json id = ask(instance, "completion.start", endless())["result"]["id"];
  std::vector<std::thread> threads;
  std::atomic<int> begun{0};
  Json run;
  Json status;
  threads.emplace_back([&] {
    ++begun;
    run = ask(instance, "completion.run", endless());
  });
  threads.emplace_back([&] {
    ++begun;
    while (!ask(instance, "completion.poll", {{"id", id}, {"wait_ms", 60'000}}).contains("error")) {
    }
  });
  // The calls have begun when the queue has the run; destroy may only come then.
  while (begun.load() < 2 || ask(instance, "stats", Json::object())["result"]["started"] != 2) {
    std::this_thread::yield();
  }
  // The poller goes round and may not begin a call once destroy has: so it is stopped first.
  instance->close();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(run["result"]["finish_reason"], "cancelled") << run;
  destroy(instance);
}

// What a callback does, and a place to wait for it.
struct Listener {
  std::function<void(const Json&)> on_event;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;

  static void receive(void* user, const char* text) {
    Listener& self = *static_cast<Listener*>(user);
    const json::Parsed parsed = json::parse(text);
    ASSERT_TRUE(parsed.ok()) << text;
    self.on_event(*parsed.value);
  }
  void finish() {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
    changed.notify_all();
  }
  bool wait_done() {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [this] { return done; });
  }
};

TEST(Events, TellOfModelsAndTextInOrder) {
  Instance* const instance = open(nullptr);
  Listener listener;
  std::string text;
  std::vector<std::string> states;
  listener.on_event = [&](const Json& event) {
    if (event["event"] == "model") states.push_back(event["state"].get<std::string>());
    if (event["event"] != "completion") return;
    for (const Json& update : event["updates"]) text += update["text"].get<std::string>();
    if (!event["finished"].get<bool>()) return;
    EXPECT_EQ(event["result"]["text"], text);
    listener.finish();
  };
  ASSERT_EQ(subscribe(instance, &Listener::receive, &listener), 0);
  ask(instance, "model.load", {{"role", "target"}, {"path", "target"}, {"ctx", 64}});
  wait(instance);
  ask(instance, "completion.start", {{"prompt", "abc"}, {"max_tokens", 10}});
  EXPECT_TRUE(listener.wait_done());
  destroy(instance);
  ASSERT_FALSE(states.empty());
  EXPECT_EQ(states.front(), "loading");
  EXPECT_EQ(states.back(), "ready");
}

TEST(Events, ACallbackMayStartCancelAndSubscribe) {
  Instance* const instance = open(R"({"model":{"path":"target","ctx":64}})");
  wait(instance);
  Listener second;
  second.on_event = [&](const Json& event) {
    if (event["event"] == "completion" && event["finished"].get<bool>()) {
      EXPECT_EQ(event["result"]["ended_by"], "client");
      second.finish();
    }
  };
  Listener first;
  first.on_event = [&](const Json& event) {
    if (event["event"] != "completion") return;
    const Json started = ask(instance, "completion.start", endless());
    EXPECT_TRUE(started.contains("result")) << started;
    EXPECT_EQ(subscribe(instance, &Listener::receive, &second), 0);
    EXPECT_TRUE(ask(instance, "completion.cancel", {{"id", event["id"]}}).contains("result"));
    EXPECT_TRUE(
        ask(instance, "completion.cancel", {{"id", started["result"]["id"]}}).contains("result"));
  };
  ASSERT_EQ(subscribe(instance, &Listener::receive, &first), 0);
  ask(instance, "completion.start", endless());
  EXPECT_TRUE(second.wait_done());
  destroy(instance);
}

TEST(Events, ACallbackMayDestroyItsInstance) {
  for (int round = 0; round < 20; ++round) {
    Instance* const instance = open(R"({"model":{"path":"target","ctx":64}})");
    Listener listener;
    int events = 0;
    listener.on_event = [&](const Json&) {
      EXPECT_EQ(++events, 1) << "no event comes after the instance is destroyed";
      destroy(instance);
      listener.finish();
    };
    wait(instance);
    ASSERT_EQ(subscribe(instance, &Listener::receive, &listener), 0);
    // The answer may be that everything is being ended; but the call itself has begun before.
    ask(instance, "completion.start", endless());
    EXPECT_TRUE(listener.wait_done());
  }
  finish_background();
}

TEST(Events, WhatACallbackThrowsStaysThere) {
  Instance* const instance = open(nullptr);
  const EventFunction throwing = [](void*, const char*) { throw 7; };
  ASSERT_EQ(subscribe(instance, throwing, nullptr), 0);
  ask(instance, "model.load", {{"role", "target"}, {"path", "target"}, {"ctx", 64}});
  EXPECT_EQ(wait(instance)["target"]["state"], "ready");
  destroy(instance);
}

struct Lines {
  std::mutex mutex;
  std::vector<std::string> all;

  static void receive(void* user, int level, const char* text) {
    Lines& self = *static_cast<Lines*>(user);
    const std::lock_guard<std::mutex> lock(self.mutex);
    self.all.push_back(std::to_string(level) + " " + text);
  }
};

TEST(Log, SaysWhatIsLoadedAndWhatFailed) {
  Lines lines;
  set_log(&Lines::receive, &lines);
  Instance* const instance = open(R"({"model":{"path":"broken"}})");
  wait(instance);
  set_log(nullptr, nullptr);
  ask(instance, "model.load", {{"role", "target"}, {"path", "target"}, {"ctx", 64}});
  wait(instance);
  destroy(instance);
  EXPECT_EQ(lines.all,
            (std::vector<std::string>{"1 loading the target 'broken'",
                                      "3 loading the target 'broken' failed: 'broken' is broken"}));
}

TEST(Log, LinesAreUtf8AlsoWhereACharacterWasCut) {
  Lines lines;
  set_log(&Lines::receive, &lines);
  log_line(LogLevel::kInfo, "\xC3\xA9 \xEF...");
  set_log(nullptr, nullptr);
  EXPECT_EQ(lines.all, std::vector<std::string>{"1 \xC3\xA9 \xEF\xBF\xBD..."});
}

// Destroys an instance with the first line.
struct DestroyingLog {
  Instance* instance = nullptr;
  Lines lines;
  std::atomic<bool> destroyed{false};

  static void receive(void* user, int level, const char* text) {
    DestroyingLog& self = *static_cast<DestroyingLog*>(user);
    Lines::receive(&self.lines, level, text);
    Instance* const instance = std::exchange(self.instance, nullptr);
    if (instance == nullptr) return;
    destroy(instance);
    self.destroyed.store(true);
  }
};

// On the thread that loads: to wait for the load there would be to wait for ever.
TEST(Log, ACallbackMayDestroyAnInstanceWhoseLoadGoesOnUntilTheCallbackHasReturned) {
  DestroyingLog log;
  Instance* const instance = log.instance = open(nullptr);
  set_log(&DestroyingLog::receive, &log);
  // No call may begin once destroy() has, but this one had.
  const Json answer = ask(instance, "model.load", {{"role", "target"}, {"path", "slow"}});
  EXPECT_TRUE(answer.contains("result") || answer.contains("error")) << answer;
  while (!log.destroyed.load()) std::this_thread::yield();
  finish_background();
  set_log(nullptr, nullptr);
  EXPECT_EQ(log.lines.all,
            (std::vector<std::string>{"1 loading the target 'slow'",
                                      "3 loading the target 'slow' failed: loading was cancelled"}))
      << "a load without end, which was still going on and which the end cancelled";
}

// Its threads are not in the child, which would wait for them for ever or end by a signal.
TEST(Boundary, AForkedChildIsToldThatTheInstanceIsNotItsOwn) {
  Instance* const instance = open(R"({"model":{"path":"target","ctx":64,"batch":24}})");
  wait(instance);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char* const answer = call(instance, R"({"jsonrpc":"2.0","id":1,"method":"stats"})");
    const bool told = answer != nullptr && std::strstr(answer, "was forked") != nullptr;
    free_string(answer);
    const bool refused = subscribe(instance, nullptr, nullptr) == EINVAL;
    destroy(instance);
    char* error = nullptr;
    const bool none = create(nullptr, &error, loader()) == nullptr && error != nullptr &&
                      std::strstr(error, "fork before the first instance") != nullptr;
    free_string(error);
    _exit(told && refused && none ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(ask(instance, "stats", Json::object()).contains("result"));
  destroy(instance);
}

}  // namespace
}  // namespace outrider::capi
