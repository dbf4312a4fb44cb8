// llama-server's completions: their body and their answers, over hand-written models.
#include "http/llama/llama_form.h"

#include "http/fixture_test.h"
#include "http/llama/llama_settings.h"

namespace outrider::http {
namespace {

using json::Json;

LlamaAsked one_asked() { return {.settings = {{"n_predict", 9}}, .prompts = {""}}; }

class LlamaFormTest : public ServerTest {
 protected:
  static Json body() {
    return {{"prompt", "abc"}, {"n_predict", 12}, {"temperature", 0.8}, {"seed", 7}};
  }
  Json completed(const Json& asked) {
    const HttpReply reply = post("/completion", asked);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return object(reply);
  }
};

TEST_F(LlamaFormTest, AWholeAnswerSaysWhatItWasMadeOfAndWhyItEnded) {
  start({}, {});
  const Json whole = completed(body());
  EXPECT_EQ(whole["content"].get<std::string>().size(), 12U);
  EXPECT_EQ(whole["stop"], true);
  EXPECT_EQ(whole["stop_type"], "limit");
  EXPECT_EQ(whole["stopping_word"], "");
  EXPECT_EQ(whole["truncated"], false);
  EXPECT_EQ(whole["has_new_line"], false);
  EXPECT_EQ(whole["tokens"], Json::array());
  EXPECT_EQ(whole["tokens_predicted"], 12);
  EXPECT_EQ(whole["tokens_evaluated"], 3);
  EXPECT_EQ(whole["prompt"], "abc");
  EXPECT_EQ(whole["model"], "fake");
  EXPECT_EQ(whole["generation_settings"]["temperature"], 0.8F);
  EXPECT_EQ(whole["generation_settings"]["n_predict"], 12);
  EXPECT_EQ(whole["generation_settings"]["seed"], 7);
  EXPECT_EQ(whole["timings"]["prompt_n"], 3);
  EXPECT_EQ(whole["timings"]["predicted_n"], 12);
  for (const auto& [name, value] : whole["timings"].items()) {
    EXPECT_TRUE(value.is_number()) << name;
  }
  EXPECT_TRUE(whole["speculation"]["steps"].is_number());
}

TEST_F(LlamaFormTest, AStreamHasAnEventForEachTokenAndTheRestInTheLast) {
  start({}, {});
  Json asked = body();
  asked["stream"] = true;
  const std::vector<Json> said = events(post("/completions", asked));
  ASSERT_EQ(said.size(), 13U);
  std::string text;
  for (std::size_t i = 0; i + 1 < said.size(); ++i) {
    EXPECT_EQ(said[i]["stop"], false);
    EXPECT_EQ(said[i]["tokens"].size(), 1U);
    EXPECT_EQ(said[i]["tokens_predicted"], i + 1);
    EXPECT_EQ(said[i]["tokens_evaluated"], 3);
    text += said[i]["content"].get<std::string>();
  }
  EXPECT_EQ(said.back()["stop"], true);
  EXPECT_EQ(said.back()["content"], "");
  EXPECT_EQ(said.back()["tokens_predicted"], 12);
  EXPECT_EQ(completed(body())["content"], text);
}

TEST_F(LlamaFormTest, ATokenThatIsNoWholeCharacterGoesWithTheOnesThatCompleteIt) {
  // "é" as two tokens that are all that the model says.
  testing::FakeFile target;
  for (Token token = 0; token < 12; ++token) target.pieces[token] = token % 2 ? "\xA9" : "\xC3";
  start({}, target);
  Json asked = {{"prompt", {0, 1}}, {"n_predict", 12}, {"stream", true}, {"seed", 3}};
  std::size_t n_tokens = 0;
  for (const Json& event : events(post("/completion", asked))) {
    if (event["stop"] == true) continue;
    n_tokens += event["tokens"].size();
  }
  EXPECT_EQ(n_tokens, 12U);
}

TEST_F(LlamaFormTest, ProbabilitiesAreOfTheRowOrBehindTheSamplers) {
  start({}, {});
  Json asked = body();
  EXPECT_FALSE(completed(asked).contains("completion_probabilities"));
  asked["n_probs"] = 0;
  EXPECT_FALSE(completed(asked).contains("completion_probabilities"));
  asked["n_probs"] = 3;
  const Json before = completed(asked)["completion_probabilities"];
  ASSERT_EQ(before.size(), 12U);
  EXPECT_EQ(before[0]["top_logprobs"].size(), 3U);
  EXPECT_LE(before[0]["logprob"].get<double>(), 0.0);
  EXPECT_EQ(before[0]["bytes"].size(), 1U);
  asked["post_sampling_probs"] = true;
  const Json behind = completed(asked)["completion_probabilities"];
  ASSERT_EQ(behind.size(), 12U);
  EXPECT_EQ(behind[0]["id"], before[0]["id"]);
  EXPECT_GT(behind[0]["prob"].get<double>(), 0.0);
  EXPECT_EQ(behind[0]["top_probs"].size(), 3U);
  asked["stream"] = true;
  for (const Json& event : events(post("/completion", asked))) {
    if (event["stop"] == false) {
      EXPECT_EQ(event["completion_probabilities"].size(), 1U);
    }
  }
}

TEST_F(LlamaFormTest, NoProbabilityIsToldOfATokenThatAStopTextTookAllOf) {
  start({}, {});
  Json asked = body();
  asked["n_probs"] = 1;
  const std::string text = completed(asked)["content"].get<std::string>();
  const std::string stop = text.substr(5, 2);
  const std::size_t left = text.find(stop);
  asked["stop"] = Json::array({stop});
  const Json whole = completed(asked);
  EXPECT_EQ(whole["content"], text.substr(0, left));
  EXPECT_EQ(whole["tokens_predicted"], left + 2) << "they were said all the same";
  EXPECT_EQ(whole.value("completion_probabilities", Json::array()).size(), left);
  asked["stream"] = true;
  std::size_t told = 0;
  for (const Json& event : events(post("/completion", asked))) {
    told += event.value("completion_probabilities", Json::array()).size();
  }
  EXPECT_EQ(told, left);
}

TEST_F(LlamaFormTest, BehindTheSamplersAtTemperatureZeroOneTokenIsCertain) {
  start({}, {});
  Json asked = body();
  asked.update({{"temperature", 0}, {"n_probs", 2}, {"post_sampling_probs", true}});
  const Json told = completed(asked)["completion_probabilities"];
  ASSERT_EQ(told.size(), 12U);
  for (const Json& token : told) {
    EXPECT_EQ(token["prob"], 1.0);
    ASSERT_EQ(token["top_probs"].size(), 1U);
    EXPECT_EQ(token["top_probs"][0]["id"], token["id"]);
    EXPECT_EQ(token["top_probs"][0]["prob"], 1.0);
  }
}

TEST_F(LlamaFormTest, ProgressBeginsWithWhatIsCachedAndEndsWithAll) {
  start({}, {});
  Json asked = body();
  asked["stream"] = true;
  asked["return_progress"] = true;
  asked["timings_per_token"] = true;
  std::vector<Json> told;
  for (const Json& event : events(post("/completion", asked))) {
    if (event.contains("prompt_progress")) told.push_back(event["prompt_progress"]);
    if (event["stop"] == false && !event["tokens"].empty()) {
      EXPECT_EQ(event["timings"]["predicted_n"], event["tokens_predicted"]);
    }
  }
  ASSERT_GE(told.size(), 2U);
  EXPECT_EQ(told.front()["processed"], told.front()["cache"]);
  EXPECT_EQ(told.back()["processed"], 3);
  EXPECT_EQ(told.back()["total"], 3);
}

TEST_F(LlamaFormTest, TimingsOfEachTokenCountWhatHasBeenTold) {
  LlamaWishes wishes;
  wishes.timings_per_token = true;
  double now_ms = 0.0;
  const std::unique_ptr<AnswerForm> form =
      make_llama_form(wishes, one_asked(), [&now_ms] { return now_ms; });
  form->set_prompts({PromptStats{.n_tokens = 7, .n_cached = 4}});
  Answer answer(nullptr);
  Json last;
  for (int i = 1; i <= 3; ++i) {
    now_ms += 10.0;
    std::string out;
    form->delta(0, answer.add({{.id = 1, .text = "x"}}), out);
    ASSERT_TRUE(out.starts_with("data: ")) << out;
    last = (*json::parse(out.substr(6)).value)["timings"];
    EXPECT_EQ(last["predicted_n"], i);
  }
  EXPECT_EQ(last["cache_n"], 4);
  EXPECT_EQ(last["prompt_n"], 3);
  EXPECT_EQ(last["prompt_ms"], 10.0);
  EXPECT_EQ(last["predicted_ms"], 20.0);
  EXPECT_EQ(last["predicted_per_token_ms"], 10.0) << "the first one belongs to the prompt";
  EXPECT_FALSE(last.contains("draft_n"));
}

TEST_F(LlamaFormTest, ChosenFieldsAreAllThatIsSent) {
  start({}, {});
  Json asked = body();
  asked["response_fields"] = {"content", "generation_settings/n_predict", "no/such"};
  const Json whole = completed(asked);
  EXPECT_EQ(whole.size(), 2U);
  EXPECT_EQ(whole["generation_settings/n_predict"], 12);
  asked["response_fields"] = {"tokens_predicted", "index", "tokens_predicted", "index"};
  EXPECT_EQ(completed(asked), Json({{"tokens_predicted", 12}, {"index", 0}})) << "each once";
}

TEST_F(LlamaFormTest, TokensComeWhereTheyAreAskedForAndStopWordsAreTold) {
  start({}, {});
  Json asked = body();
  asked["return_tokens"] = true;
  const Json whole = completed(asked);
  EXPECT_EQ(whole["tokens"].size(), 12U);
  const std::string text = whole["content"];
  asked["stop"] = {text.substr(4, 2)};
  const Json stopped = completed(asked);
  EXPECT_EQ(stopped["stop_type"], "word");
  EXPECT_EQ(stopped["stopping_word"], text.substr(4, 2));
  EXPECT_EQ(stopped["content"], text.substr(0, text.find(text.substr(4, 2))));
}

TEST_F(LlamaFormTest, AFullContextIsToldAsTruncated) {
  start({}, {});
  Json asked = body();
  asked["n_predict"] = -1;
  const Json whole = completed(asked);
  EXPECT_EQ(whole["truncated"], true);
  EXPECT_EQ(whole["stop_type"], "limit");
  EXPECT_EQ(whole["tokens_predicted"].get<int>() + 3, 256);
}

TEST_F(LlamaFormTest, WhySpeculationIsAsItIsNamesFilesWithoutTheirFolders) {
  const std::unique_ptr<AnswerForm> form = make_llama_form({}, one_asked());
  form->set_prompts(std::vector<PromptStats>(1));
  const auto result = std::make_shared<CompletionResult>();
  result->completion.seed = 5;
  result->completion.speculation.reason = "'/home/ann/d.gguf' does not exist";
  std::vector<Answer> answers(1, Answer(nullptr));
  (void)answers[0].finish(result);
  const Json whole = form->whole(answers);
  EXPECT_EQ(whole["speculation"]["reason"], "'d.gguf' does not exist");
  EXPECT_EQ(whole["seed"], 5);
}

TEST_F(LlamaFormTest, ATimeLimitEndsTheTextBehindItsFirstLine) {
  double now = 0.0;
  LlamaWishes wishes;
  wishes.max_predict_ms = 100;
  const std::unique_ptr<AnswerForm> form =
      make_llama_form(wishes, one_asked(), [&now] { return now; });
  form->set_prompts(std::vector<PromptStats>(1));
  std::string out;
  const auto say = [&](const std::string& text) {
    AnswerDelta delta;
    delta.content = text;
    delta.tokens.push_back({.id = 1, .text = text});
    form->delta(0, delta, out);
  };
  now = 1000.0;  // of the prompt, which does not count
  say("a");
  EXPECT_FALSE(form->enough(0));
  now = 1200.0;
  say("b");
  EXPECT_FALSE(form->enough(0)) << "the first line has not ended";
  say("\n");
  EXPECT_TRUE(form->enough(0));
}

TEST_F(LlamaFormTest, AnAnswerEndsInFrontOfALineThatIsIndentedTooLittle) {
  const auto told = [](std::int64_t n_indent, const std::vector<std::string>& texts) {
    LlamaWishes wishes;
    wishes.n_indent = n_indent;
    const std::unique_ptr<AnswerForm> form =
        make_llama_form(wishes, one_asked(), [] { return 0.0; });
    form->set_prompts(std::vector<PromptStats>(1));
    std::string out;
    std::string all;
    for (const std::string& text : texts) {
      AnswerDelta delta;
      delta.content = text;
      delta.tokens.push_back({.id = 1, .text = text});
      out.clear();
      form->delta(0, delta, out);
      if (!out.empty()) all += Json::parse(out.substr(out.find('{')))["content"];
      if (form->enough(0)) return all + "|";
    }
    return all;
  };
  // What was said until the cancel was heard is not told either.
  const auto told_whole = [](const std::vector<std::string>& texts) {
    LlamaWishes wishes;
    wishes.n_indent = 2;
    const std::unique_ptr<AnswerForm> form =
        make_llama_form(wishes, one_asked(), [] { return 0.0; });
    form->set_prompts(std::vector<PromptStats>(1));
    std::vector<Answer> answers(1, Answer(nullptr));
    const auto result = std::make_shared<CompletionResult>();
    for (const std::string& text : texts) {
      form->note(0, answers[0].add({{.id = 1, .text = text}}));
      result->completion.text += text;
    }
    (void)answers[0].finish(result);
    return form->whole(answers)["content"];
  };
  EXPECT_EQ(told_whole({"x", "\n  y", "\n}", "\n  z", "\n"}), "x\n  y\n");
  EXPECT_EQ(told(2, {"x", "\n", "  y", "\n\n", " \t", "z"}), "x\n  y\n\n \tz");
  EXPECT_EQ(told(2, {"x", "\n", " ", "y", "z"}), "x\n |");
  EXPECT_EQ(told(2, {"x", "\n}", "z"}), "x|");
  EXPECT_EQ(told(0, {"x", "\n}", "z"}), "x\n}z");
}

}  // namespace
}  // namespace outrider::http
