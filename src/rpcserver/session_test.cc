// The answers, on models that are fakes: golden files for each kind, and what they must agree in.
#include <cmath>

#include "rpcserver/server_harness_test.h"
#include "testing/step_gate.h"

namespace outrider::rpcserver {
namespace {

// Texts of n_predict -1 have no end here: a full context is shifted.
class SessionTest : public ServerTest {
 protected:
  void load(const std::string& cmd) { ASSERT_EQ(server_.init(cmd.c_str()), 0) << status(); }
  // A target whose evaluations `gate` holds.
  void load_held(const outrider::testing::StepGate& gate) {
    loader_.add("held", {.seed = 1, .on_evaluated = gate.hold()});
    load(R"({"model":"held"})");
  }
  void load_pair() { load(R"({"model":"target","model_draft":"draft","model_alias":"fake"})"); }
};

TEST_F(SessionTest, AnAsynchronousCompletionStreamsAndEndsWithTheFinalResponse) {
  load_pair();
  const Json started = start(R"({"prompt":"abc","n_predict":12,"seed":1,"temperature":1})");
  expect_golden("async_init", started);
  const Json updates = updates_of(started["id"]);
  expect_golden("updates_plain", updates);
  for (std::size_t i = 0; i + 1 < updates.size(); ++i) EXPECT_EQ(updates[i]["stop"], false);
  EXPECT_EQ(updates.back()["stop"], true);
  EXPECT_EQ(text_of(updates).size(), 12U);
  expect_golden("poll_finished", poll());
}

TEST_F(SessionTest, SpeculationGivesTheSameTextInFewerUpdates) {
  load_pair();
  const std::string request =
      R"({"prompt":"abc","n_predict":40,"seed":1,"temperature":1,"speculative":)";
  const Json plain = updates_of(start(request + "false}")["id"]);
  const Json fast = updates_of(start(request + R"({"width":4,"drafters":["draft-model"]}})")["id"]);
  expect_golden("updates_speculative", fast);
  EXPECT_EQ(text_of(plain), text_of(fast));
  EXPECT_EQ(plain.size(), 41U);
  EXPECT_LT(fast.size(), plain.size());
  const Json speculation = fast.back()["speculation"];
  EXPECT_EQ(speculation["enabled"], true);
  EXPECT_GT(speculation["accepted"].get<int>(), 0);
  EXPECT_EQ(speculation["emitted"], 40);
}

TEST_F(SessionTest, EveryDrafterThatIsThereGivesTheSameText) {
  load_pair();
  const std::string common =
      R"({"prompt":"abcabc","n_predict":30,"seed":1,"temperature":1,"speculative":)";
  const Json plain = complete(common + "false}");
  for (const char* drafters : {R"(["suffix"])", R"(["recycle"])", R"(["suffix","recycle"])",
                               R"(["suffix/draft-model"])", R"(["ngram-cache"])", R"([])"}) {
    const Json fast = complete(common + R"({"drafters":)" + drafters + R"(,"width":5}})");
    EXPECT_EQ(fast["content"], plain["content"]) << drafters;
    EXPECT_EQ(fast["speculation"]["enabled"], true) << drafters;
    EXPECT_EQ(fast["speculation"]["reason"], Json()) << drafters;
  }
  EXPECT_EQ(complete(common + R"({"drafters":["suffix"],"width":5}})")["generation_settings"]
                                                                      ["speculative"]["branches"],
            5)
      << "branches of what is looked up cost nothing";
}

TEST_F(SessionTest, EachTokenIsAnUpdateWhenStreamTokensIsSet) {
  load_pair();
  const Json updates = updates_of(start(
      R"({"prompt":"abc","n_predict":10,"seed":1,"speculative":{"width":4},"stream_tokens":true})")
                                      ["id"]);
  EXPECT_EQ(updates.size(), 11U);
  EXPECT_EQ(updates.back()["generation_settings"]["stream_tokens"], true);
}

TEST_F(SessionTest, ASynchronousCompletionIsOneAnswer) {
  load_pair();
  const std::string request = R"({"prompt":"abc","n_predict":12,"seed":1,"temperature":1})";
  const Json answer = complete(request);
  expect_golden("sync", answer);
  EXPECT_EQ(answer["content"], text_of(updates_of(start(request)["id"])));
}

TEST_F(SessionTest, ProbabilitiesComeWithEachUpdateAndAllOfThemAtTheEnd) {
  load_pair();
  const std::string request =
      R"({"prompt":"abc","n_predict":6,"seed":1,"temperature":1,"n_probs":2,"speculative":{"width":4,"drafters":["draft-model"]}})";
  const Json updates = updates_of(start(request)["id"]);
  expect_golden("updates_probabilities", updates);
  Json sent = Json::array();
  for (std::size_t i = 0; i + 1 < updates.size(); ++i) {
    std::string content;
    for (const Json& token : updates[i]["completion_probabilities"]) {
      content += token["content"].get<std::string>();
      double sum = 0.0;
      for (const Json& candidate : token["probs"]) sum += candidate["prob"].get<double>();
      EXPECT_LE(sum, 1.0 + 1e-6);
      EXPECT_EQ(token["probs"].size(), 2U);
      sent.push_back(token);
    }
    EXPECT_EQ(content, updates[i]["content"]);
  }
  EXPECT_EQ(updates.back()["completion_probabilities"], sent);
  EXPECT_EQ(complete(request)["completion_probabilities"], sent);
}

TEST_F(SessionTest, AStopStringEndsTheTextBeforeIt) {
  load_pair();
  const std::string start_of = R"({"prompt":"abc","n_predict":40,"seed":1,"temperature":1)";
  const std::string whole = complete(start_of + "}")["content"];
  const std::string stop = whole.substr(11, 3);
  const std::size_t at = whole.find(stop);
  const std::string request =
      start_of + R"(,"n_probs":1,"stop":[")" + stop + R"("],"speculative":{"width":4}})";
  const Json answer = complete(request);
  EXPECT_EQ(answer["content"], whole.substr(0, at));
  EXPECT_EQ(answer["stopped_word"], true);
  EXPECT_EQ(answer["stopped_eos"], false);
  EXPECT_EQ(answer["stopping_word"], stop);
  EXPECT_EQ(answer["completion_probabilities"].size(), at) << "without the stop word's";
  EXPECT_EQ(answer["tokens_predicted"], at + 3) << "with the stop word's";
  const Json updates = updates_of(start(request)["id"]);
  EXPECT_EQ(text_of(updates), whole.substr(0, at));
  EXPECT_EQ(updates.back()["completion_probabilities"].size(), at);
}

TEST_F(SessionTest, ABeginningOfAStopStringAtTheEndIsDroppedByTheSynchronousCallOnly) {
  load_pair();
  const std::string start_of = R"({"prompt":"abc","n_predict":12,"seed":1,"temperature":1)";
  const std::string whole = complete(start_of + "}")["content"];
  const std::string tail = whole.substr(10);
  const std::string request = start_of + R"(,"stop":[")" + tail + R"(zz"]})";
  const Json answer = complete(request);
  EXPECT_EQ(answer["content"], whole.substr(0, 10));
  EXPECT_EQ(answer["stopped_limit"], true);
  EXPECT_EQ(text_of(updates_of(start(request)["id"])), whole);
}

TEST_F(SessionTest, AnEndOfGenerationTokenSetsStoppedEosAndNotStoppedWord) {
  load(R"({"model":"ending"})");
  const Json answer =
      complete(R"({"prompt":"abc","n_predict":400,"seed":1,"temperature":2,"n_probs":1})");
  expect_golden("sync_eos", answer);
  EXPECT_EQ(answer["stopped_eos"], true);
  EXPECT_EQ(answer["stopped_word"], false);
  EXPECT_EQ(answer["stopped_limit"], false);
  EXPECT_EQ(answer["stopping_word"], "");
}

TEST_F(SessionTest, NoTokensMeansReadingThePromptOnly) {
  load_pair();
  const Json answer = complete(R"({"prompt":"abcabc","n_predict":0,"seed":1})");
  expect_golden("sync_prompt_only", answer);
  EXPECT_EQ(answer["content"], "");
  EXPECT_EQ(answer["tokens_predicted"], 0);
  EXPECT_EQ(answer["stopped_limit"], true);
  EXPECT_EQ(answer["stopped_eos"], false);
  const Json updates = updates_of(start(R"({"prompt":"abcabc","n_predict":0})")["id"]);
  EXPECT_EQ(updates.size(), 1U);
  EXPECT_GT(start(R"({"prompt":"abcabcd","n_predict":1})")["prompt_stats"]["n_past"].get<int>(), 4)
      << "the prompt was read and is reused";
}

TEST_F(SessionTest, APromptThatBeginsLikeTheLastTextIsNotReadAgain) {
  load_pair();
  const std::string text =
      complete(R"({"prompt":"abc","n_predict":5,"seed":1,"temperature":1})")["content"];
  const Json started = start(R"({"prompt":"abc)" + text + R"(dd","n_predict":1,"seed":1})");
  const Json& stats = started["prompt_stats"];
  EXPECT_EQ(stats["total_prompt_tokens"], 10);
  EXPECT_EQ(stats["n_past"], 7) << "the last token that was said had not been evaluated";
  EXPECT_EQ(stats["cached"], "abc" + text.substr(0, 4));
  EXPECT_EQ(stats["to_eval"], text.substr(4) + "dd");
  EXPECT_EQ(updates_of(started["id"]).back()["timings"]["prompt_n"], 3);
}

TEST_F(SessionTest, ALongPromptIsCutAndAFullContextIsShifted) {
  load(R"({"model":"target","model_draft":"draft","n_ctx":32})");
  std::string prompt;
  for (int i = 0; i < 100; ++i) prompt += static_cast<char>('a' + i % 12);
  const std::string request =
      R"({"prompt":")" + prompt + R"(","n_predict":60,"n_keep":4,"seed":1,"temperature":1)";
  const Json started = start(request + "}");
  expect_golden("async_init_truncated", started);
  EXPECT_EQ(started["prompt_stats"]["truncated"], true);
  EXPECT_EQ(started["prompt_stats"]["total_prompt_tokens"], 100);
  const Json updates = updates_of(started["id"]);
  EXPECT_EQ(updates.back()["truncated"], true);
  EXPECT_EQ(updates.back()["tokens_predicted"], 60);
  EXPECT_EQ(updates.back()["tokens_evaluated"], 100);
  EXPECT_EQ(complete(request + R"(,"speculative":{"width":4}})")["content"], text_of(updates));
  const Json shifted = complete(R"({"prompt":"abc","n_predict":60,"seed":1})");
  EXPECT_EQ(shifted["truncated"], true) << "as the seed has it after a shift";
  EXPECT_EQ(shifted["tokens_predicted"], 60);
  EXPECT_EQ(complete(R"({"prompt":"abc","n_predict":20,"seed":1})")["truncated"], false);
}

TEST_F(SessionTest, ACancelEndsItWithWhatItHasAndTheFinalUpdateComesStill) {
  load(R"({"model":"target"})");
  const Json started = start(R"({"prompt":"abc","n_predict":-1,"seed":1})");
  wait_until([&] { return !poll(started["id"])["completion_updates"].empty(); });
  EXPECT_EQ(cancel(), (Json{{"success", true}}));
  const Json last = updates_of(started["id"]).back();
  EXPECT_EQ(last["stop"], true);
  EXPECT_EQ(last["stopped_cancelled"], true);
  EXPECT_EQ(last["stopped_limit"], false);
  EXPECT_GT(last["tokens_predicted"].get<int>(), 0);
  EXPECT_EQ(poll()["finished"], true) << "and stays true";
  EXPECT_EQ(cancel(), (Json{{"success", true}})) << "though there is nothing to end";
}

TEST_F(SessionTest, ASecondCompletionWaitsForTheFirstUnderItsOwnId) {
  outrider::testing::StepGate gate;
  load_held(gate);
  const std::string request = R"({"prompt":"abc","n_predict":20,"seed":1,"temperature":1})";
  const Json first = start(request);
  const Json second = start(request);
  EXPECT_NE(first["id"], second["id"]);
  gate.wait_until_held();  // in the first one's first step
  EXPECT_TRUE(poll(second["id"])["completion_updates"].empty());
  gate.open();
  const Json second_updates = updates_of(second["id"]);
  const Json first_answer = poll(first["id"]);
  EXPECT_EQ(first_answer["finished"], true) << "it came first";
  EXPECT_EQ(text_of(first_answer["completion_updates"]), text_of(second_updates));
}

TEST_F(SessionTest, PollAndCancelMeanTheNewestUnlessToldWhich) {
  load(R"({"model":"target"})");
  const Json older = start(R"({"prompt":"abc","n_predict":-1,"seed":1})");
  const Json newer = start(R"({"prompt":"abd","n_predict":3,"seed":1})");
  for (const char* newest : {static_cast<const char*>(nullptr), "", "{}", " ", R"({"id":null})"}) {
    EXPECT_EQ(poll(newest)["finished"], false);
  }
  cancel(Json{{"id", older["id"]}}.dump().c_str());
  wait_until([&] { return poll("{}")["finished"] == true; });
  const Json older_updates = updates_of(older["id"]);
  EXPECT_EQ(older_updates.back()["stopped_cancelled"], true);
  EXPECT_EQ(poll(newer["id"])["finished"], true);
}

TEST_F(SessionTest, AWrongIdIsAnErrorThatEndsALoopThatWaitsForTheEnd) {
  load(R"({"model":"target"})");
  EXPECT_EQ(poll()["finished"], false) << "before any completion";
  expect_golden("poll_unknown", poll(R"({"id":7})"));
  expect_golden("poll_refused", poll(R"({"id":"7"})"));
  EXPECT_EQ(poll("{")["success"], false);
  EXPECT_EQ(poll("[]")["success"], false);
  EXPECT_EQ(cancel(R"({"id":-1})")["field"], "id");
  EXPECT_EQ(cancel("nonsense")["success"], false);
  EXPECT_EQ(cancel(R"({"id":7})"), (Json{{"success", true}}));
}

TEST_F(SessionTest, TheCompletionsThatFinishedLastAreRemembered) {
  load(R"({"model":"target"})");
  Json ids = Json::array();
  for (std::size_t i = 0; i < kFinishedKept + 10; ++i) {
    ids.push_back(start(R"({"prompt":"ab","n_predict":1,"seed":1})")["id"]);
    updates_of(ids.back());
  }
  EXPECT_EQ(poll(ids.front())["success"], false);
  EXPECT_EQ(poll(ids.front())["finished"], true);
  EXPECT_EQ(poll(ids.back())["success"], true);
  EXPECT_EQ(poll(ids[20])["success"], true);
  EXPECT_EQ(poll(ids[20])["completion_updates"], Json::array());
}

TEST_F(SessionTest, TheOneThatFinishedLastIsRememberedAlsoWhereItBeganFirst) {
  outrider::testing::StepGate gate;
  load_held(gate);
  const std::string request = R"({"prompt":"abc","n_predict":5,"seed":1})";
  const Json first = start(request)["id"];
  gate.wait_until_held();  // it runs, and the others wait
  Json cancelled = Json::array();
  for (std::size_t i = 0; i < kFinishedKept + 10; ++i) {
    cancelled.push_back(start(request)["id"]);
    cancel();
  }
  gate.open();
  const Json last = start(request)["id"];  // behind the first
  updates_of(last);
  start(request);
  const Json updates = updates_of(first);
  ASSERT_FALSE(updates.empty());
  EXPECT_EQ(updates.back()["stop"], true);
  EXPECT_EQ(poll(last)["success"], true);
  EXPECT_EQ(poll(cancelled.front())["success"], false);
  EXPECT_EQ(poll(cancelled.back())["success"], true);
}

TEST_F(SessionTest, TokenizeGivesThePiecesOfAText) {
  load(R"({"model":"target"})");
  expect_golden("tokenize", parse(server_.tokenize(R"({"text":"abcd"})")));
  expect_golden("tokenize_refused", parse(server_.tokenize(R"({"text":5})")));
  for (const char* wrong : {static_cast<const char*>(nullptr), "", "{}", "[]", R"({"text":null})",
                            R"({"text":"not letters of the fake"})", "{\"text\":\"\xFF\"}"}) {
    const Json answer = parse(server_.tokenize(wrong));
    EXPECT_EQ(answer["success"], false);
    EXPECT_TRUE(answer["error"].is_string());
  }
}

TEST_F(SessionTest, RefusalsNameTheFieldInBothCalls) {
  load(R"({"model":"target"})");
  expect_golden("async_init_refused", start(R"({"prompt":"abc","tfs_z":0.5})"));
  expect_golden("sync_refused", complete(R"({"prompt":"abc","tfs_z":0.5})"));
  EXPECT_EQ(start(R"({"prompt":"abc","grammar":"root ::= 1","ignore_eos":true})")["field"],
            "ignore_eos");
  EXPECT_EQ(start(R"({"prompt":[99]})")["success"], false) << "an id beyond the vocabulary";
  EXPECT_EQ(start(R"({"prompt":""})")["success"], false) << "no token at all";
  EXPECT_EQ(start("")["success"], false);
  EXPECT_EQ(parse(server_.async_completion_init(nullptr))["success"], false);
  EXPECT_EQ(parse(server_.get_completion(nullptr))["status"], 400);
}

TEST_F(SessionTest, UnknownOptionsAreWarningsInBothAnswers) {
  load(R"({"model":"target"})");
  const std::string request = R"({"prompt":"abc","n_predict":1,"slot_id":3,"n_probs":50})";
  const Json warnings = start(request)["warnings"];
  EXPECT_EQ(warnings.size(), 2U);
  EXPECT_EQ(complete(request)["warnings"], warnings);
}

TEST_F(SessionTest, TheQueueHasAnEnd) {
  outrider::testing::StepGate gate;
  load_held(gate);
  Json answer;
  std::vector<Json> ids;
  for (int i = 0; i < 300; ++i) {
    answer = start(R"({"prompt":"abc","n_predict":400,"seed":1})");
    if (answer["success"] != true) break;
    ids.push_back(answer["id"]);
  }
  EXPECT_EQ(ids.size(), 257U) << "one runs, 256 wait";
  EXPECT_NE(answer["error"].get<std::string>().find("the queue is full"), std::string::npos);
  for (const Json& id : ids) cancel(Json{{"id", id}}.dump().c_str());
}

// An app that starts and cancels for ever beside a text without end.
TEST_F(SessionTest, CompletionsThatWereCancelledWhileTheyWaitedAreForgottenToo) {
  load(R"({"model":"target"})");
  start(R"({"prompt":"abc","seed":1})");
  Json ids = Json::array();
  for (int i = 0; i < 1000; ++i) {
    ids.push_back(start(R"({"prompt":"abc","seed":1})")["id"]);
    cancel();
  }
  EXPECT_EQ(poll(ids[0])["success"], false);
  EXPECT_EQ(poll(ids[999])["finished"], true);
}

TEST(ResponsesTest, LoneBytesAreWrittenAsWhatTheyAre) {
  const auto token = [](const std::string& text) {
    SaidToken said{.id = 1, .text = text, .by = "target", .logprob = TokenLogprob()};
    said.logprob->chosen = {.id = 1, .text = text, .logprob = std::log(0.5)};
    said.logprob->top = {said.logprob->chosen, {.id = 2, .text = "b", .logprob = -INFINITY}};
    return said;
  };
  const json::Json list = probabilities_json({token("\xE2"), token("a"), token("\xC3\xA4")});
  EXPECT_EQ(list[0]["content"], "byte: \\xe2");
  EXPECT_EQ(list[0]["probs"].size(), 1U) << "what the chain has removed is not listed";
  EXPECT_EQ(list[0]["probs"][0]["tok_str"], "byte: \\xe2");
  EXPECT_DOUBLE_EQ(list[0]["probs"][0]["prob"].get<double>(), 0.5);
  EXPECT_EQ(list[1]["content"], "a");
  EXPECT_EQ(list[2]["content"], "\xC3\xA4");
}

TEST(ResponsesTest, TheLongestBeginningOfAStopStringIsDropped) {
  EXPECT_EQ(drop_partial_stop("text EN", {"END"}), "text ");
  EXPECT_EQ(drop_partial_stop("text EN", {"N", "END"}), "text ");
  EXPECT_EQ(drop_partial_stop("text", {"END"}), "text");
  EXPECT_EQ(drop_partial_stop("EN", {"END"}), "");
  EXPECT_EQ(drop_partial_stop("", {"END"}), "");
  EXPECT_EQ(drop_partial_stop("abab", {"babc", "abc"}), "a");
}

}  // namespace
}  // namespace outrider::rpcserver
