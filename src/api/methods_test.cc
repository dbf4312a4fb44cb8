// Every method over models of hand-written numbers.
#include "api/methods.h"

#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "testing/fake_service.h"

namespace outrider::api {
namespace {

using json::Json;
using testing::ask;
using testing::endless;
using testing::FakeService;
using testing::keys;

TEST(Methods, TheListNamesEveryMethodWithItsParameters) {
  FakeService fake;
  const Json list = fake.result("system.methods", Json::object())["methods"];
  std::set<std::string> names;
  for (const Json& method : list) {
    names.insert(method["name"].get<std::string>());
    EXPECT_NE(method["help"], "");
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"system.status", "system.methods", "model.load", "model.unload",
                                   "model.cancel_load", "tokenize", "detokenize",
                                   "completion.start", "completion.poll", "completion.cancel",
                                   "completion.run", "drafters.list", "stats"}));
}

TEST(Methods, ParametersThatAreListedAreKnownAndOthersAreRefused) {
  FakeService fake;
  fake.load("target", "target");
  for (const Method& method : methods()) {
    const std::string name(method.name);
    EXPECT_EQ(fake.error(name, {{"no_such_parameter", 1}})["code"], -32602) << name;
    for (const Parameter& parameter : method.parameters) {
      // No field takes a list of lists.
      Json params;
      if (name.rfind("completion.", 0) == 0 && parameter.name != "prompt") params["prompt"] = "a";
      if (method.parameters.front().name == "id") params = {{"id", 1}};
      if (method.parameters.front().name == "role") params = {{"role", "target"}};
      if (name == "model.load") params["path"] = "a";
      if (name == "tokenize") params["text"] = "a";
      if (name == "detokenize") params["tokens"] = {1};
      params[std::string(parameter.name)] = Json::array({Json::array()});
      const Json error = fake.error(name, params);
      EXPECT_EQ(error["code"], -32602) << name << " " << params;
      EXPECT_EQ(error["data"]["field"].get<std::string>().rfind(parameter.name, 0), 0U)
          << name << " " << parameter.name << ": " << error;
    }
  }
}

TEST(Methods, StatusSaysWhatIsLoadedAndWhatFailed) {
  FakeService fake;
  Json status = fake.result("system.status", Json::object());
  EXPECT_EQ(keys(status),
            (std::set<std::string>{"version", "commit", "target", "draft", "exactness", "n_ctx",
                                   "slots", "running", "queued", "drafters", "not_kept"}));
  EXPECT_EQ(status["commit"], Json()) << "only what is installed says so";
  EXPECT_EQ(status["target"]["state"], "absent");
  EXPECT_EQ(status["exactness"], Json());
  EXPECT_EQ(status["not_kept"], Json::array());
  fake.load("target", "target");
  fake.load("draft", "broken");
  status = fake.result("system.status", {{"wait_ms", 60'000}});
  EXPECT_EQ(status["target"]["state"], "ready");
  EXPECT_EQ(status["target"]["serving_path"], "target");
  EXPECT_EQ(status["target"]["info"]["architecture"], "fake");
  EXPECT_EQ(status["exactness"]["verdict"], "exact");
  EXPECT_EQ(status["draft"]["state"], "failed");
  EXPECT_EQ(status["draft"]["error"]["code"], "internal");
  EXPECT_EQ(status["draft"]["error"]["message"], "'--broken' is broken");
  EXPECT_EQ(status["drafters"], fake.result("drafters.list", Json::object())["drafters"]);
}

TEST(Methods, ALoadIsWaitedForOrCancelled) {
  FakeService fake;
  EXPECT_EQ(fake.error("model.cancel_load", {{"role", "target"}})["code"], -32001);
  fake.result("model.load", {{"role", "target"}, {"path", "slow"}});
  // A wait whose time is over. The load has no end, so it does not matter how long it is.
  EXPECT_EQ(fake.result("system.status", {{"wait_ms", 1}})["target"]["state"], "loading");
  EXPECT_EQ(fake.error("completion.start", ask("abc", 5))["data"]["code"], "not_found");
  fake.result("model.cancel_load", {{"role", "target"}});
  const Json status = fake.result("system.status", {{"wait_ms", 60'000}});
  EXPECT_EQ(status["target"]["state"], "failed");
  EXPECT_EQ(status["target"]["error"]["code"], "cancelled");
}

TEST(Methods, ModelsAreUnloaded) {
  FakeService fake;
  EXPECT_EQ(fake.error("model.unload", {{"role", "draft"}})["data"],
            Json({{"code", "not_found"}, {"field", "role"}}));
  EXPECT_EQ(fake.error("model.unload", {{"role", "drfat"}})["data"]["field"], "role");
  EXPECT_EQ(fake.error("model.unload", Json::object())["data"]["field"], "role");
  fake.load("target", "target");
  fake.result("model.unload", {{"role", "target"}, {"at_once", true}});
  EXPECT_EQ(fake.error("tokenize", {{"text", "a"}})["code"], -32001);
}

TEST(Methods, TextsAndTokensThereAndBack) {
  FakeService fake;
  EXPECT_EQ(fake.error("tokenize", {{"text", "a"}})["data"]["code"], "not_found");
  fake.load("target", "target");
  EXPECT_EQ(fake.result("tokenize", {{"text", "abc"}}),
            Json({{"tokens", {0, 1, 2}}, {"count", 3}}));
  EXPECT_EQ(fake.result("tokenize", {{"text", "ab"}, {"with_pieces", true}})["pieces"],
            Json({"a", "b"}));
  EXPECT_EQ(fake.result("detokenize", {{"tokens", {2, 1}}}), Json({{"text", "cb"}}));
  EXPECT_EQ(fake.error("tokenize", {{"text", "ABC"}})["data"]["field"], "text");
  EXPECT_EQ(fake.error("tokenize", Json::object())["data"]["field"], "text");
  EXPECT_EQ(fake.error("detokenize", {{"tokens", {1, -1}}})["data"]["field"], "tokens[1]");
  EXPECT_EQ(fake.error("detokenize", {{"tokens", {1, 1e308}}})["data"]["field"], "tokens[1]");
  EXPECT_EQ(fake.error("detokenize", {{"tokens", "a"}})["data"]["field"], "tokens");
  const std::string many(kMaxListed + 1, 'a');
  EXPECT_EQ(fake.result("tokenize", {{"text", many}})["count"], kMaxListed + 1);
  EXPECT_EQ(fake.error("tokenize", {{"text", many}, {"with_pieces", true}})["data"]["field"],
            "text");
  EXPECT_EQ(fake.error("detokenize",
                       {{"tokens", std::vector<Token>(kMaxListed + 1, 0)}})["data"]["field"],
            "tokens");
}

TEST(Methods, NoTokenIsLostOnTheWayToTextsAndBack) {
  FakeService fake;
  testing::FakeFile file;
  file.pieces = {{0, "a"}, {1, "\xC3"}, {2, ""}};
  fake.loader().add("bytes", file);
  fake.load("target", "bytes");
  EXPECT_EQ(fake.result("tokenize", {{"text", "abc"}, {"with_pieces", true}})["pieces"],
            Json::array({"a", Json::array({0xC3}), "<2>"}));
  EXPECT_EQ(fake.result("detokenize", {{"tokens", {0, 2}}})["text"], "a");
  EXPECT_EQ(fake.result("detokenize", {{"tokens", {0, 2}}, {"special", true}})["text"], "a<2>");
}

TEST(Methods, ACompletionIsStartedPolledAndGone) {
  FakeService fake;
  fake.load("target", "target");
  fake.load("draft", "draft");
  const Json started = fake.result("completion.start", ask("abc", 20));
  EXPECT_EQ(keys(started), (std::set<std::string>{"id", "prompt_stats"}));
  EXPECT_EQ(started["prompt_stats"]["prompt_tokens"], 3);
  const Json poll = {{"id", started["id"]}, {"wait_ms", 60'000}};
  Json tokens = Json::array();
  std::string text;
  Json polled;
  do {
    polled = fake.result("completion.poll", poll);
    for (const Json& update : polled["updates"]) {
      text += update["text"].get<std::string>();
      for (const Json& token : update["tokens"]) tokens.push_back(token["id"]);
    }
  } while (!polled["finished"]);
  EXPECT_EQ(polled["result"]["text"], text);
  EXPECT_EQ(polled["result"]["tokens"], tokens);
  EXPECT_EQ(polled["result"]["ended_by"], "itself");
  EXPECT_EQ(polled["result"]["model"], "target");
  EXPECT_GT(polled["result"]["speculation"]["accepted"], 0);
  EXPECT_EQ(fake.error("completion.poll", poll)["data"],
            Json({{"code", "not_found"}, {"field", "id"}}));
}

TEST(Methods, ARunIsTheSameTextWithSpeculationOnAndOff) {
  FakeService fake;
  fake.load("target", "target");
  fake.load("draft", "draft");
  Json off = ask("abc", 30);
  off["speculative"] = false;
  const Json plain = fake.result("completion.run", off);
  const Json fast = fake.result("completion.run", ask("abc", 30));
  EXPECT_EQ(plain["tokens"], fast["tokens"]);
  EXPECT_EQ(plain["speculation"]["enabled"], false);
  EXPECT_EQ(fast["speculation"]["enabled"], true);
  EXPECT_LT(fast["speculation"]["steps"], plain["speculation"]["steps"]);
}

TEST(Methods, ACancelledCompletionGivesWhatItHas) {
  FakeService fake;
  fake.load("target", "target");
  const Json started = fake.result("completion.start", endless("abc"));
  EXPECT_EQ(fake.result("completion.cancel", {{"id", started["id"]}}),
            Json({{"id", started["id"]}}));
  Json polled;
  do {
    polled = fake.result("completion.poll", {{"id", started["id"]}, {"wait_ms", 60'000}});
  } while (!polled["finished"]);
  EXPECT_EQ(polled["result"]["finish_reason"], "cancelled");
  EXPECT_EQ(polled["result"]["ended_by"], "client");
  EXPECT_EQ(fake.error("completion.cancel", {{"id", 999}})["data"],
            Json({{"code", "not_found"}, {"field", "id"}}));
}

TEST(Methods, ARequestThatCannotRunIsRefusedByItsField) {
  FakeService fake;
  fake.load("target", "target");
  EXPECT_EQ(fake.error("completion.start", {{"prompt", ""}})["data"]["field"], "prompt");
  EXPECT_EQ(fake.error("completion.start", {{"prompt", Json::array({99})}})["data"]["field"],
            "prompt");
  EXPECT_EQ(fake.error("completion.start", {{"prompt", std::string(200, 'a')}})["data"]["field"],
            "prompt")
      << "too long";
  const Json message = {{"role", "user"}, {"content", "a"}};
  EXPECT_EQ(fake.error("completion.run", {{"messages", Json::array({message})}})["data"]["code"],
            "unsupported")
      << "no chat template";
  Json unknown = ask("abc", 3);
  unknown["speculative"] = {{"drafters", {"nobody"}}};
  EXPECT_EQ(fake.error("completion.run", unknown)["data"]["field"].get<std::string>().rfind(
                "speculative.drafters", 0),
            0U);
}

// Whatever is refused, by whichever layer: the client is told which field it is.
TEST(Methods, EveryRefusalNamesItsField) {
  FakeService fake;
  fake.load("target", "target");
  const Json message = {{"role", "user"}, {"content", "a"}};
  const std::vector<std::pair<std::string, Json>> cases = {
      {"prompt", {{"prompt", Json::array()}}},
      {"prompt", {{"prompt", ""}}},
      {"prompt", {{"prompt", Json::array({""})}}},
      {"prompt", {{"prompt", Json::array({99})}}},
      {"prompt", {{"prompt", "ABC"}}},
      {"prompt", {{"prompt", std::string(5000, 'a')}}},
      {"prompt", {{"prompt", Json::array({Json::object()})}}},
      {"prompt", Json::object()},
      {"messages", {{"messages", Json::array()}}},
      {"messages", {{"messages", Json::array({message})}}},  // no chat template
      {"prompt", {{"prompt", Json::array()}, {"messages", Json::array({message})}}},
      {"stop", {{"prompt", "a"}, {"stop", ""}}},
      {"temp", {{"prompt", "a"}, {"temp", -1}}},
      {"top_p", {{"prompt", "a"}, {"top_p", 2}}},
      {"width", {{"prompt", "a"}, {"width", 0}}},
      {"branches", {{"prompt", "a"}, {"rule", "block"}, {"branches", 2}}},
      {"drafter", {{"prompt", "a"}, {"drafter", "suffix,suffix"}}},
      {"drafter", {{"prompt", "a"}, {"drafter", ","}}},
      {"speculative.drafters", {{"prompt", "a"}, {"speculative", {{"drafters", Json::array()}}}}},
      {"speculative.drafters", {{"prompt", "a"}, {"speculative", {{"drafters", {"a/"}}}}}},
      {"timeout_ms", {{"prompt", "a"}, {"timeout_ms", -1}}},
      {"logit_bias", {{"prompt", "a"}, {"logit_bias", {{"x", 1}}}}},
  };
  for (const char* method : {"completion.start", "completion.run"}) {
    for (const auto& [field, params] : cases) {
      const Json error = fake.error(method, params);
      const Json told = error["data"]["field"];
      ASSERT_TRUE(told.is_string()) << params << " -> " << error;
      EXPECT_EQ(told.get<std::string>().rfind(field, 0), 0U) << params << " -> " << error;
    }
  }
}

TEST(Service, StoppingEndsRunsWithWhatTheyHaveAndRefusesMore) {
  FakeService fake;
  fake.load("target", "target");
  Json result;
  std::thread runner([&] { result = fake.result("completion.run", endless("abc")); });
  while (fake.runtime().status().running == 0) std::this_thread::yield();
  fake.service().stop();
  runner.join();
  fake.service().wait_idle();
  EXPECT_EQ(result["finish_reason"], "cancelled");
  EXPECT_EQ(fake.error("stats", Json::object())["data"]["code"], "cancelled");
}

// Nobody can see whether the other thread's call waits already. One that is not yet inside when
// stop() comes is refused; that is right, too, and says nothing about waits. So it is tried again
// with more and more time, until three calls were let in. On a slow machine that takes more tries,
// and cannot fail.
TEST(Service, StoppingEndsWaits) {
  int ended = 0;
  for (std::int64_t head_start_ms = 0; ended < 3; head_start_ms = 2 * head_start_ms + 1) {
    FakeService fake;
    fake.result("model.load", {{"role", "target"}, {"path", "slow"}});
    Json answer;
    std::thread waiter([&] { answer = fake.call("system.status", {{"wait_ms", kMaxWaitMs}}); });
    EXPECT_FALSE(fake.runtime().wait_loaded(head_start_ms));
    fake.service().stop();
    waiter.join();
    if (answer.contains("error")) {
      EXPECT_EQ(answer["error"]["data"]["code"], "cancelled");
      continue;
    }
    EXPECT_EQ(answer["result"]["target"]["state"], "loading");
    ++ended;
  }
}

TEST(Service, WaitsForWhatUsesTheRuntimeBesideItsCalls) {
  FakeService fake;
  std::optional<Service::Use> use(std::in_place, fake.service());
  std::atomic<bool> waits{false};
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    waits = true;
    fake.service().wait_idle();
    EXPECT_TRUE(ended.load());
  });
  while (!waits.load()) std::this_thread::yield();
  std::this_thread::yield();
  ended = true;
  use.reset();
  waiter.join();
}

}  // namespace
}  // namespace outrider::api
