// The drafters' methods: what is attached, listed, counted and remembered.
#include "api/methods.h"

#include <set>

#include <gtest/gtest.h>

#include "draft/ngram/ngram_file.h"
#include "testing/fake_service.h"
#include "testing/suffix_file.h"
#include "testing/tiny_dir.h"

namespace outrider::api {
namespace {

using json::Json;
using testing::ask;
using testing::FakeService;
using testing::keys;

TEST(Methods, CountsAndDraftersAreToldAsTheyAre) {
  FakeService fake;
  const auto listed = [&fake](std::size_t i) {
    return fake.result("drafters.list", Json::object())["drafters"][i];
  };
  EXPECT_EQ(listed(0), Json({{"name", "draft-model"},
                             {"kind", "model"},
                             {"state", "absent"},
                             {"attached", false},
                             {"path", nullptr},
                             {"error", nullptr},
                             {"memory_bytes", 0},
                             {"files", Json::array()}}));
  fake.load("draft", "draft");
  EXPECT_EQ(listed(0)["state"], "loading") << "until there is a target";
  EXPECT_EQ(listed(1)["attached"], false);
  fake.load("target", "target");
  EXPECT_EQ(listed(0)["state"], "ready");
  EXPECT_EQ(listed(0)["path"], "draft");
  EXPECT_EQ(listed(1)["name"], "suffix");
  EXPECT_EQ(listed(1)["kind"], "lookup");
  EXPECT_EQ(listed(1)["attached"], true);
  EXPECT_EQ(listed(2)["name"], "ngram-cache");
  EXPECT_EQ(listed(2)["state"], "ready");
  EXPECT_EQ(listed(3)["name"], "recycle");
  EXPECT_EQ(listed(3)["state"], "ready");
  EXPECT_EQ(fake.result("stats", Json::object())["acceptance_rate"], Json());
  fake.result("completion.run", ask("abc", 20));
  const Json stats = fake.result("stats", Json::object());
  EXPECT_EQ(stats["started"], 1);
  EXPECT_EQ(stats["finished"], 1);
  EXPECT_EQ(stats["generated_tokens"], 20);
  EXPECT_GT(stats["acceptance_rate"], 0.0);
  EXPECT_EQ(keys(stats["drafters"]),
            (std::set<std::string>(kDrafterNames.begin(), kDrafterNames.end())));
  EXPECT_EQ(keys(stats["drafters"]["suffix"]),
            (std::set<std::string>{"calls", "drafts", "accepted_drafts", "drafted", "accepted",
                                   "acceptance_rate", "foregone", "draft_ms", "accept_ms"}));
  EXPECT_GT(stats["drafters"]["draft-model"]["accepted"], 0);
  EXPECT_GT(stats["drafters"]["suffix"]["calls"], 0);
  EXPECT_EQ(stats["drafters"]["recycle"]["calls"], 0);
}

TEST(Methods, ADraftersFileIsAttachedUsedAndTakenAway) {
  FakeService fake;
  fake.load("target", "target");
  const Json plain = fake.result("completion.run", ask("abc", 30));
  const testing::TempDir dir;
  std::vector<Token> text = {0, 1, 2};
  for (const Json& token : plain["tokens"]) text.push_back(token.get<Token>());
  testing::write_suffix_store(dir.file("store"),
                              tokenizer_id(fake.runtime().target()->vocabulary()), {text});
  const Json load = {{"role", "drafter"}, {"drafter", "suffix"}, {"path", dir.file("store")}};
  Json answer = load;
  answer["state"] = "loading";
  EXPECT_EQ(fake.result("model.load", load), answer);
  const Json status = fake.result("system.status", {{"wait_ms", 60'000}});
  const Json& file = status["drafters"][1]["files"][0];
  EXPECT_EQ(file["path"], dir.file("store"));
  EXPECT_EQ(file["option"], "suffix_store");
  EXPECT_EQ(file["state"], "ready");
  EXPECT_EQ(file["attached"], true);
  EXPECT_EQ(file["error"], nullptr);
  EXPECT_GT(file["file_bytes"], 100);
  Json request = ask("abc", 30);
  for (const Json& drafters :
       {Json({"suffix"}), Json({"suffix/recycle"}), Json({"recycle"}), Json({"suffix", "recycle"}),
        Json({"ngram-cache"}), Json({"draft-model"})}) {
    request["speculative"] = {{"drafters", drafters}};
    const Json fast = fake.result("completion.run", request);
    EXPECT_EQ(fast["tokens"], plain["tokens"]) << drafters;
    const bool there = drafters[0] != "draft-model";
    EXPECT_EQ(fast["speculation"]["enabled"], there) << drafters;
    if (there) {
      EXPECT_EQ(fast["speculation"]["reason"], nullptr);
    } else {
      EXPECT_EQ(fast["speculation"]["reason"], "no draft model is loaded");
    }
    if (drafters == Json({"suffix"})) {
      EXPECT_GT(fast["speculation"]["drafters"]["suffix"]["accepted"], 15);
    }
  }
  EXPECT_EQ(fake.error("model.load", {{"role", "drafter"}, {"drafter", "suffix"}})["data"]["field"],
            "path");
  EXPECT_EQ(fake.error("model.unload", {{"role", "drafter"}})["data"]["field"], "drafter");
  EXPECT_EQ(fake.error("model.unload", {{"role", "target"}, {"path", "x"}})["data"]["field"],
            "path");
  EXPECT_EQ(fake.error("model.cancel_load", {{"role", "drafter"}})["data"]["field"], "role");
  Json unknown = load;
  unknown["path"] = "elsewhere";
  EXPECT_EQ(fake.error("model.unload", unknown)["data"],
            Json({{"code", "not_found"}, {"field", "path"}}));
  EXPECT_EQ(fake.result("model.unload", load), load);
  unknown.erase("path");
  EXPECT_EQ(fake.error("model.unload", unknown)["data"],
            Json({{"code", "not_found"}, {"field", "drafter"}}))
      << "none is left";
}

TEST(Methods, AnNgramFileIsAttachedToItsTierUsedAndTakenAway) {
  FakeService fake;
  fake.load("target", "target");
  Json request = ask("abc", 30);
  request["speculative"] = {{"drafters", {"ngram-cache"}}};
  const Json plain = fake.result("completion.run", request);
  std::vector<Token> text = {0, 1, 2};
  for (const Json& token : plain["tokens"]) text.push_back(token.get<Token>());
  NgramCache cache;
  for (int i = 0; i < 4; ++i) cache.count(text, 0, 1, kMaxNgram);
  const testing::TempDir dir;
  const std::string path = dir.file("ngrams");
  const TokenizerId tokenizer = tokenizer_id(fake.runtime().target()->vocabulary());
  ASSERT_TRUE(save_ngrams(cache, tokenizer, path).ok());
  Json load = {
      {"role", "drafter"}, {"drafter", "ngram-cache"}, {"tier", "dynamic"}, {"path", path}};
  Json answer = load;
  answer["state"] = "loading";
  EXPECT_EQ(fake.result("model.load", load), answer);
  const Json status = fake.result("system.status", {{"wait_ms", 60'000}});
  const Json& file = status["drafters"][2]["files"][0];
  EXPECT_EQ(file["path"], path);
  EXPECT_EQ(file["tier"], "dynamic");
  EXPECT_EQ(file["option"], "ngram_dynamic");
  EXPECT_EQ(file["state"], "ready");
  EXPECT_EQ(file["attached"], true);
  EXPECT_GT(file["file_bytes"], 100);
  EXPECT_GT(file["memory_bytes"], 100);
  const Json fast = fake.result("completion.run", request);
  EXPECT_EQ(fast["tokens"], plain["tokens"]);
  EXPECT_GT(fast["speculation"]["accepted"], plain["speculation"]["accepted"]);

  Json wrong = load;
  wrong["path"] = "elsewhere";
  EXPECT_EQ(fake.error("model.load", wrong)["data"]["field"], "path") << "the tier is taken";
  wrong["tier"] = "context";
  EXPECT_EQ(fake.error("model.load", wrong)["message"],
            "tier is 'context', but must be static or dynamic");
  wrong["tier"] = "static";
  wrong["drafter"] = "suffix";
  EXPECT_EQ(fake.error("model.load", wrong)["data"]["field"], "tier");
  EXPECT_EQ(fake.error("model.load",
                       {{"role", "target"}, {"path", "x"}, {"tier", "static"}})["data"]["field"],
            "tier");
  EXPECT_EQ(fake.error("model.unload", {{"role", "draft"}, {"tier", "static"}})["data"]["field"],
            "tier");
  EXPECT_EQ(fake.result("model.unload", load), load);
  EXPECT_EQ(fake.result("drafters.list", Json::object())["drafters"][2]["files"], Json::array());
}

TEST(Methods, TextsAreRememberedForTheNamespaceThatTheRequestNames) {
  RuntimeOptions options;
  options.remember_tokens = 4096;
  FakeService fake(options);
  fake.load("target", "target");
  Json request = ask("abc", 50);
  request["speculative"] = {{"drafters", {"suffix"}}};
  const Json nobodys = fake.result("completion.run", request);
  EXPECT_FALSE(nobodys["speculation"].contains("remembered"));
  request["speculative"]["namespace"] = "user-7";
  const Json first = fake.result("completion.run", request);
  EXPECT_EQ(first["tokens"], nobodys["tokens"]);
  EXPECT_EQ(first["speculation"]["remembered"],
            Json({{"namespace", "user-7"}, {"tokens", 50}, {"reason", nullptr}}));
  const Json second = fake.result("completion.run", request);
  EXPECT_EQ(second["tokens"], nobodys["tokens"]);
  EXPECT_GT(second["speculation"]["accepted"], first["speculation"]["accepted"]);
  request["speculative"]["namespace"] = "user-8";
  EXPECT_EQ(fake.result("completion.run", request)["speculation"]["accepted"],
            first["speculation"]["accepted"]);
  const Json memory = fake.result("drafters.list", Json::object())["drafters"][1]["remembered"];
  EXPECT_EQ(memory["max_tokens"], 4096);
  EXPECT_EQ(memory["namespaces"], 2);
  EXPECT_EQ(memory["tokens"], 3 * 51);
  EXPECT_GT(memory["memory_bytes"], 3 * 51 * 4);

  for (const Json& bad : {Json(""), Json(std::string(65, 'x')), Json("a\n"), Json(5)}) {
    request["speculative"]["namespace"] = bad;
    EXPECT_EQ(fake.error("completion.run", request)["data"]["field"], "speculative.namespace")
        << bad;
  }
  request["speculative"] = true;
  request["namespace"] = "user-7";
  request["drafter"] = "suffix";
  EXPECT_GT(fake.result("completion.run", request)["speculation"]["accepted"],
            first["speculation"]["accepted"]);
  request["namespace"] = "";
  EXPECT_EQ(fake.error("completion.run", request)["data"]["field"], "namespace");
}

TEST(Methods, WhereNothingIsRememberedARequestIsToldSo) {
  FakeService fake;
  fake.load("target", "target");
  Json request = ask("abc", 20);
  request["namespace"] = "user-7";
  const Json remembered = fake.result("completion.run", request)["speculation"]["remembered"];
  EXPECT_EQ(remembered["tokens"], 0);
  EXPECT_NE(remembered["reason"].get<std::string>().find("(remember_tokens)"), std::string::npos);
  EXPECT_EQ(fake.result("drafters.list", Json::object())["drafters"][1]["remembered"], nullptr);
}

TEST(Methods, PredictionLayersThatTheTargetDoesNotHaveAreRefusedByName) {
  FakeService fake;
  fake.load("target", "target");
  Json request = ask("abc", 5);
  request["speculative"] = {{"drafters", {"mtp"}}};
  for (const char* method : {"completion.start", "completion.run"}) {
    const Json error = fake.error(method, request);
    EXPECT_EQ(error["data"]["field"], "speculative.drafters");
    EXPECT_EQ(error["message"].get<std::string>().find(
                  "speculative.drafters is 'mtp', but the target has no prediction layers (MTP)"),
              0U)
        << error;
  }
}

TEST(Methods, AnUnknownDrafterIsRefusedWithTheNamesThatAreKnown) {
  FakeService fake;
  fake.load("target", "target");
  Json request = ask("abc", 5);
  request["speculative"] = {{"drafters", {"sufix"}}};
  Json error = fake.error("completion.run", request);
  EXPECT_EQ(error["data"]["field"], "speculative.drafters");
  EXPECT_NE(
      error["message"].get<std::string>().find("draft-model, suffix, ngram-cache, recycle, mtp"),
      std::string::npos)
      << error;
  error = fake.error("model.load", {{"role", "drafter"}, {"drafter", "recycle"}, {"path", "x"}});
  EXPECT_EQ(error["data"]["field"], "drafter");
  EXPECT_EQ(error["message"],
            "drafter is 'recycle', but must be suffix or ngram-cache: no other drafter takes "
            "files");
}

}  // namespace
}  // namespace outrider::api
