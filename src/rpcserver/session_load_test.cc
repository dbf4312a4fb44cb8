// Loading: what the status says at each stage, drafts that come while requests run, deinit in every
// state.
#include <thread>

#include "rpcserver/server_harness_test.h"
#include "testing/step_gate.h"

namespace outrider::rpcserver {
namespace {

class SessionLoadTest : public ServerTest {
 protected:
  void wait_for(int init_success) {
    wait_until([&] { return status()["init_success"] == init_success; });
  }
  void wait_for_draft(const std::string& state) {
    wait_until([&] { return status()["draft"]["state"] == state; });
  }
};

TEST_F(SessionLoadTest, BeforeInitEveryFunctionAnswers) {
  expect_golden("status_before_init", status());
  expect_golden("async_init_before_init", start(R"({"prompt":"abc"})"));
  expect_golden("sync_before_init", complete(R"({"prompt":"abc"})"));
  expect_golden("poll_before_init", poll());
  expect_golden("cancel", cancel());
  EXPECT_EQ(parse(server_.tokenize(R"({"text":"abc"})"))["success"], false);
  server_.deinit();
}

TEST_F(SessionLoadTest, WhyNothingCanRunHereIsInTheStatus) {
  EXPECT_EQ(server_.refuse_init(unsupported("this processor has no AVX2")), 1);
  EXPECT_EQ(status()["init_success"], -1);
  EXPECT_EQ(status()["error"], "this processor has no AVX2");
  server_.deinit();
  EXPECT_EQ(status()["init_success"], 0);
}

TEST_F(SessionLoadTest, InitLoadsTheTargetAndTheDraftThatTheCmdNames) {
  EXPECT_EQ(
      server_.init(R"({"model":"target","model_draft":"draft","model_alias":"fake","fa":true})"),
      0);
  // The decode thread puts it to work between two steps.
  wait_until([&] { return status()["speculation"]["drafters"][0] == "draft-model"; });
  expect_golden("status_ready", status());
}

TEST_F(SessionLoadTest, TheCommandLineDoesTheSame) {
  EXPECT_EQ(server_.init("server -m target -md draft -a fake --fa"), 0);
  Json s = status();
  EXPECT_EQ(s["warnings"], Json::array({"'--fa' is not known and has no effect"}));
  EXPECT_EQ(s["draft"]["state"], "ready");
}

TEST_F(SessionLoadTest, AFailedInitSaysWhyAndWhatWasThereGoesOnServing) {
  EXPECT_EQ(server_.init(R"({"model":"broken"})"), 1);
  expect_golden("status_failed", status());
  EXPECT_EQ(start(R"({"prompt":"abc"})")["success"], false);
  EXPECT_EQ(server_.init(R"({"model":"throwing"})"), 1);
  EXPECT_EQ(server_.init(R"({"model":"missing"})"), 1);
  EXPECT_EQ(server_.init(R"({"model":"target"})"), 0);
  EXPECT_EQ(server_.init(R"({"model":"broken"})"), 1);
  EXPECT_EQ(status()["init_success"], -1);
  EXPECT_EQ(complete(R"({"prompt":"abc","n_predict":3})")["status"], 200);
  EXPECT_EQ(server_.init(nullptr), 1);
  EXPECT_EQ(server_.init(""), 1);
  EXPECT_EQ(server_.init("{}"), 1);
  EXPECT_EQ(status()["error"], "model is needed, the path of a GGUF file");
  EXPECT_EQ(server_.init(R"({"model":"target","n_ctx":-5})"), 1);
  EXPECT_NE(status()["error"].get<std::string>().find("n_ctx"), std::string::npos);
  EXPECT_EQ(server_.init(R"({"model":"other"})"), 0);
  EXPECT_EQ(status()["error"], nullptr);
}

TEST_F(SessionLoadTest, LoadingInTheBackgroundCanBeWatched) {
  loader_.hold(true);
  server_.init_async(R"({"model":"target"})", false);
  wait_until([&] { return loader_.loading(); });
  const Json s = status();
  expect_golden("status_loading", s);
  EXPECT_EQ(s["init_success"], 0);
  const Json answer = start(R"({"prompt":"abc"})");
  EXPECT_EQ(answer["success"], false);
  EXPECT_NE(answer["error"].get<std::string>().find("still loading"), std::string::npos);
  loader_.hold(false);
  wait_for(1);
  EXPECT_EQ(status()["loading_progress"], 1.0);
}

TEST_F(SessionLoadTest, TheSecondInitAttachesTheDraftWhileARequestRuns) {
  outrider::testing::StepGate gate;
  loader_.add("held", {.seed = 1, .on_evaluated = gate.hold()});
  server_.init_async(R"({"model":"held"})", false);
  wait_for(1);
  const auto request = [](int n) {
    return R"({"prompt":"abc","seed":1,"temperature":1,"speculative":{"width":4},"n_predict":)" +
           std::to_string(n) + "}";
  };
  const Json running = start(request(-1));
  gate.let(5);  // enough for its first tokens
  std::string text;
  wait_until([&] {  // it is admitted
    text += text_of(poll(running["id"])["completion_updates"]);
    return !text.empty();
  });
  server_.init_async(R"({"model":"draft"})", true);
  wait_for_draft("ready");
  const Json meanwhile = poll(running["id"]);
  EXPECT_EQ(meanwhile["finished"], false) << "it still runs";
  cancel(Json{{"id", running["id"]}}.dump().c_str());
  gate.open();
  const Json plain = updates_of(running["id"]);
  EXPECT_EQ(plain.back()["speculation"]["reason"], nullptr)
      << "none was being loaded when it began";
  text += text_of(meanwhile["completion_updates"]) + text_of(plain);
  const Json fast = complete(request(static_cast<int>(text.size())));
  EXPECT_EQ(fast["speculation"]["enabled"], true);
  EXPECT_EQ(status()["speculation"]["drafters"],
            Json::array({"draft-model", "suffix", "ngram-cache", "recycle"}));
  EXPECT_EQ(fast["content"], text);
}

TEST_F(SessionLoadTest, ARequestBeforeTheDraftIsReadyRunsWithoutItAndSaysSo) {
  ASSERT_EQ(server_.init(R"({"model":"target"})"), 0);
  server_.init_async(R"({"model":"slow draft"})", true);
  wait_for_draft("loading");
  for (const char* speculative : {"true", R"({"drafters":["draft-model"]})"}) {
    const Json answer = complete(R"({"prompt":"abc","n_predict":3,"speculative":)" +
                                 std::string(speculative) + "}");
    EXPECT_EQ(answer["speculation"]["enabled"], std::string(speculative) == "true") << "by others";
    EXPECT_EQ(answer["speculation"]["reason"],
              "the draft model was still loading when the request began");
  }
}

TEST_F(SessionLoadTest, ADraftThatFailsLeavesTheTargetServing) {
  ASSERT_EQ(server_.init(R"({"model":"target","model_draft":"broken"})"), 0);
  expect_golden("status_draft_failed", status());
  server_.init_async(R"({"model":"small"})", true);
  wait_for_draft("failed");
  EXPECT_EQ(complete(R"({"prompt":"abc","n_predict":3,"speculative":true})")["status"], 200);
  server_.init_async(R"({"n_ctx":"x"})", true);
  EXPECT_NE(status()["draft"]["error"].get<std::string>().find("n_ctx"), std::string::npos);
  EXPECT_EQ(status()["init_success"], 1);
  server_.init_async(R"({})", true);
  EXPECT_EQ(status()["draft"]["state"], "failed");
  server_.init_async(R"({"model_draft":"draft"})", true);
  wait_for_draft("ready");
}

TEST_F(SessionLoadTest, ADraftThatComesFirstWaitsForTheTarget) {
  server_.init_async(R"({"model_draft":"draft"})", true);
  const Json s = status();
  expect_golden("status_draft_waits", s);
  EXPECT_EQ(s["draft"]["waits_for_target"], true);
  EXPECT_EQ(server_.init(R"({"model":"target"})"), 0);
  wait_for_draft("ready");
  EXPECT_EQ(status()["draft"]["waits_for_target"], false);
}

TEST_F(SessionLoadTest, TrueFromABindingThatPassesOneArgumentLoadsTheTarget) {
  server_.init_async(R"({"model":"target"})", true);
  wait_for(1);
  EXPECT_EQ(status()["draft"]["state"], "absent");
  EXPECT_EQ(complete(R"({"prompt":"abc","n_predict":3})")["status"], 200);
}

TEST_F(SessionLoadTest, TheDraftsCmdMaySayHowToSpeculate) {
  ASSERT_EQ(server_.init(R"({"model":"target"})"), 0);
  server_.init_async(R"({"model":"draft","n_draft":5,"speculative":true})", true);
  wait_for_draft("ready");
  const Json answer = complete(R"({"prompt":"abc","n_predict":8,"seed":1})");
  EXPECT_EQ(answer["speculation"]["enabled"], true);
  EXPECT_EQ(answer["generation_settings"]["speculative"]["width"], 6);
}

// Prompts of 60 tokens, which a draft of the first target's context could not read.
TEST_F(SessionLoadTest, ADraftsCmdThatComesWhileAnotherTargetIsLoadedIsForThatOneToo) {
  ASSERT_EQ(server_.init(R"({"model":"other","n_ctx":32})"), 0);
  loader_.hold(true);
  server_.init_async(R"({"model":"target","n_ctx":256})", false);
  wait_until([&] { return loader_.loading(); });
  server_.init_async(R"({"model":"draft","n_draft":5,"speculative":{"drafters":["draft-model"]}})",
                     true);
  loader_.hold(false);
  wait_until([&] { return status()["model"] == "target"; });
  wait_for_draft("ready");
  const Json answer =
      complete(Json{{"prompt", std::string(60, 'a')}, {"n_predict", 20}, {"seed", 1}}.dump());
  EXPECT_EQ(answer["generation_settings"]["speculative"]["width"], 6);
  EXPECT_EQ(answer["speculation"]["enabled"], true);
  EXPECT_GT(answer["speculation"]["drafted"].get<int>(), 0) << answer["speculation"];
}

TEST_F(SessionLoadTest, AnotherInitReplacesTheTarget) {
  ASSERT_EQ(server_.init(R"({"model":"target","model_alias":"one"})"), 0);
  const std::string request = R"({"prompt":"abc","n_predict":9,"seed":1,"temperature":1})";
  const Json one = complete(request);
  ASSERT_EQ(server_.init(R"({"model":"other","model_alias":"two"})"), 0);
  const Json two = complete(request);
  EXPECT_EQ(one["model"], "one");
  EXPECT_EQ(two["model"], "two");
  EXPECT_NE(one["content"], two["content"]);
}

TEST_F(SessionLoadTest, AnInitThatIsOvertakenSaysThatItFailed) {
  loader_.hold(true);
  int overtaken = -1;
  std::thread first([&] { overtaken = server_.init(R"({"model":"slow"})"); });
  wait_until([&] { return loader_.loading(); });
  server_.init_async(R"({"model":"target"})", false);
  loader_.hold(false);
  first.join();
  EXPECT_EQ(overtaken, 1);
  wait_for(1);
}

TEST_F(SessionLoadTest, AfterDeinitInitWorksAgain) {
  const std::string request = R"({"prompt":"abc","n_predict":9,"seed":1})";
  std::string text;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(server_.init(R"({"model":"target","model_draft":"draft"})"), 0);
    const Json answer = complete(request);
    EXPECT_EQ(answer["status"], 200);
    if (round > 0) {
      EXPECT_EQ(answer["content"], text);
    }
    text = answer["content"];
    server_.deinit();
    expect_golden("status_before_init", status());
    EXPECT_EQ(poll()["finished"], false);
    EXPECT_EQ(start(request)["success"], false);
  }
}

TEST_F(SessionLoadTest, AThreadThatPollsEndsItsLoopAfterDeinit) {
  const auto expect_unknown = [&](const Json& id) {
    const Json answer = poll(id);
    EXPECT_EQ(answer["success"], false);
    EXPECT_EQ(answer["finished"], true);
    EXPECT_EQ(answer["field"], "id");
  };
  const auto expect_newest = [&](bool finished) {
    for (const char* newest : {static_cast<const char*>(nullptr), "", "{}"}) {
      const Json answer = poll(newest);
      EXPECT_EQ(answer["success"], true);
      EXPECT_EQ(answer["finished"], finished);
      EXPECT_EQ(answer["completion_updates"], Json::array());
    }
  };
  ASSERT_EQ(server_.init(R"({"model":"target"})"), 0);
  complete(R"({"prompt":"abc","n_predict":1})");
  server_.deinit();
  expect_newest(false);  // nothing has been started yet that can be polled
  ASSERT_EQ(server_.init(R"({"model":"target"})"), 0);
  expect_newest(false);
  const Json id = start(R"({"prompt":"abc","n_predict":-1})")["id"];  // it has no end
  server_.deinit();
  expect_unknown(id);
  expect_newest(true);
  EXPECT_EQ(poll(R"({"id":)")["success"], false) << "a text that is cut off";
  ASSERT_EQ(server_.init(R"({"model":"target"})"), 0);
  expect_unknown(id);
  expect_newest(true);
  const Json next = start(R"({"prompt":"abc","n_predict":-1})")["id"];
  EXPECT_EQ(poll()["finished"], false) << "the newest one goes on";
  EXPECT_EQ(poll(next)["finished"], false);
}

TEST_F(SessionLoadTest, IdsAreNotUsedAgainAfterDeinit) {
  Json ids = Json::array();
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(server_.init(R"({"model":"target"})"), 0);
    complete(R"({"prompt":"abc","n_predict":1})");
    ids.push_back(start(R"({"prompt":"abc","n_predict":1})")["id"]);
    if (round == 1) {
      EXPECT_EQ(poll(ids[0])["success"], false);
      EXPECT_EQ(poll(ids[1])["success"], true);
    }
    server_.deinit();
  }
  EXPECT_EQ(ids, Json::array({2, 4}));
}

TEST_F(SessionLoadTest, DeinitEndsWhateverIsGoingOn) {
  for (const bool by_destructor : {false, true}) {
    for (int state = 0; state < 6; ++state) {
      outrider::testing::FakeLoader& loader = loader_;
      Server server(loader);
      std::thread waits;
      std::string answer;
      const char* request = R"({"prompt":"abc","n_predict":-1,"seed":1})";  // it has no end
      if (state == 0) {                                                     // loading
        server.init_async(R"({"model":"slow"})", false);
      } else if (state == 1) {  // a draft is loading
        server.init_async(R"({"model":"target","model_draft":"slow draft"})", false);
      } else if (state == 2) {  // a request runs, another waits
        ASSERT_EQ(server.init(R"({"model":"target"})"), 0);
        server.async_completion_init(request);
        server.async_completion_init(request);
      } else if (state == 3) {  // a draft waits for ever
        server.init_async(R"({"model_draft":"draft"})", true);
      } else if (state == 4) {  // another thread waits for a text without end
        ASSERT_EQ(server.init(R"({"model":"target","model_draft":"draft"})"), 0);
        const std::int64_t before = loader.evaluations();
        waits = std::thread([&] { answer = server.get_completion(request); });
        wait_until([&] { return loader.evaluations() > before; });
      } else if (state == 5) {  // another thread waits for a model
        waits = std::thread([&] { answer = std::to_string(server.init(R"({"model":"slow"})")); });
        wait_until([&] { return loader.loading(); });
      }
      if (!by_destructor || waits.joinable()) server.deinit();
      if (!waits.joinable()) continue;
      waits.join();
      if (state == 5) {
        EXPECT_EQ(answer, "1");
      } else {
        EXPECT_EQ(parse(answer)["stopped_cancelled"], true) << answer;
      }
    }
  }
}

}  // namespace
}  // namespace outrider::rpcserver
