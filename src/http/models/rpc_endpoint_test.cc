// /rpc, /models/load and /models/unload over a catalog of two models with a place for one: what is
// asked of a model that is not open, and what is loaded in a model's place.
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "api/methods.h"
#include "http/fixture_test.h"
#include "testing/eventually.h"
#include "testing/runtime_fixture.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::eventually;
using testing::model;

class RpcEndpointTest : public ::testing::Test {
 protected:
  void start(const std::string& first, const std::string& second = "other") {
    loader_.add_usual_files();
    catalog_ = std::move(Catalog::create({{.name = first, .target = model(first)},
                                          {.name = second, .target = model(second)}},
                                         {.max_models = 1, .retry_ms = 1e9}, loader_)
                             .value());
    ServerOptions options;
    options.allow_files = true;
    server_ = std::make_unique<Server>(options, *catalog_);
  }

  HttpReply post(const std::string& path, const Json& body, const std::string& model_name = "") {
    HttpRequest request{.method = "POST", .path = path, .body = json::encode(body)};
    if (!model_name.empty()) request.query = {{"model", model_name}};
    return server_->answer(request);
  }
  static Json request(const std::string& method, Json params = Json::object()) {
    return {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}};
  }
  static Json object(const HttpReply& reply) { return *json::parse(reply.body).value; }
  Json rpc(const std::string& method, Json params = Json::object(), const std::string& name = "") {
    const HttpReply reply = post("/rpc", request(method, std::move(params)), name);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return object(reply);
  }
  Json target_of(const std::string& name = "") {
    return rpc("system.status", Json::object(), name)["result"]["target"];
  }
  ModelState state(const std::string& name = "") { return catalog_->status_of(name)->state; }
  bool becomes(ModelState wanted, const std::string& name = "") {
    return eventually([&] { return state(name) == wanted; });
  }
  int health() { return server_->answer({.method = "GET", .path = "/health"}).status; }

  testing::FakeLoader loader_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<Server> server_;
};

TEST_F(RpcEndpointTest, OnlyMethodsThatComputeOnAModelOpenIt) {
  start("target");
  const std::set<std::string_view> compute = {"tokenize", "detokenize", "completion.start",
                                              "completion.run"};
  for (const api::Method& method : api::methods()) {
    if (compute.count(method.name) > 0) continue;
    (void)rpc(std::string(method.name));
    (void)rpc(std::string(method.name), {{"role", "target"}});
    (void)rpc(std::string(method.name), {{"id", 7}});
  }
  EXPECT_EQ(loader_.loads(), 0);
  EXPECT_EQ(rpc("tokenize", {{"text", "ab"}})["result"]["count"], 2);
  EXPECT_EQ(loader_.loads(), 1);
}

TEST_F(RpcEndpointTest, AnUnloadedModelStaysSoUntilATextIsAskedFor) {
  start("target");
  ASSERT_TRUE(rpc("tokenize", {{"text", "ab"}}).contains("result"));
  EXPECT_EQ(rpc("model.unload", {{"role", "target"}})["result"]["role"], "target");
  EXPECT_EQ(target_of()["state"], "absent");
  EXPECT_EQ(rpc("completion.poll", {{"id", 1}})["error"]["data"]["code"], "not_found");
  EXPECT_EQ(loader_.loads(), 1);
  EXPECT_EQ(health(), 200) << "it answers the next request";
  EXPECT_TRUE(rpc("completion.run", {{"prompt", "ab"}, {"max_tokens", 1}}).contains("result"));
  EXPECT_EQ(loader_.loads(), 2);
}

TEST_F(RpcEndpointTest, AskingHowAModelIsClosesNoOther) {
  start("target");
  ASSERT_TRUE(rpc("tokenize", {{"text", "ab"}}).contains("result"));
  EXPECT_EQ(target_of("other")["state"], "absent");
  EXPECT_EQ(target_of("other")["path"], "other");
  EXPECT_EQ(target_of("target")["state"], "ready");
  EXPECT_EQ(loader_.loads(), 1);
}

TEST_F(RpcEndpointTest, ALoadThatWaitsForItsTurnIsCalledOff) {
  start("slow");
  for (const char* method : {"model.unload", "model.cancel_load"}) {
    ASSERT_TRUE(catalog_->preload("slow").ok());
    EXPECT_TRUE(eventually([this] { return loader_.loading(); }));
    ASSERT_TRUE(catalog_->preload("other").ok());
    EXPECT_EQ(target_of("other")["state"], "loading");
    EXPECT_EQ(rpc(method, {{"role", "draft"}}, "other")["error"]["data"]["code"], "not_found");
    for (const char* name : {"other", "slow"}) {
      EXPECT_EQ(rpc(method, {{"role", "target"}}, name)["result"]["role"], "target") << method;
      EXPECT_TRUE(becomes(ModelState::kAbsent, name)) << method;
    }
  }
  EXPECT_EQ(loader_.loads_of("other"), 0);
}

TEST_F(RpcEndpointTest, AModelThatCannotBeOpenedSaysWhyAndIsRepairedByAnotherFile) {
  start("broken");
  const Json error = rpc("completion.run", {{"prompt", "ab"}})["error"];
  EXPECT_NE(error["message"].get<std::string>().find("is broken"), std::string::npos) << error;
  EXPECT_EQ(target_of()["state"], "failed");
  EXPECT_EQ(target_of()["error"]["message"], "'broken' is broken");
  EXPECT_EQ(health(), 503);
  const Json loading = rpc("model.load", {{"role", "target"}, {"path", "target"}});
  EXPECT_EQ(loading["result"], (Json{{"role", "target"}, {"state", "loading"}}));
  ASSERT_TRUE(becomes(ModelState::kReady));
  EXPECT_EQ(target_of()["path"], "target");
  EXPECT_EQ(health(), 200);
  EXPECT_EQ(loader_.loads_of("broken"), 1);
}

TEST_F(RpcEndpointTest, WhatWasLoadedInAModelsPlaceIsOpenedAgain) {
  start("target");
  ASSERT_TRUE(rpc("model.load", {{"role", "target"}, {"path", "twin"}}).contains("result"));
  ASSERT_TRUE(becomes(ModelState::kReady));
  ASSERT_TRUE(rpc("tokenize", {{"text", "ab"}}, "other").contains("result"));
  EXPECT_EQ(target_of()["state"], "absent");
  EXPECT_EQ(target_of()["path"], "twin");
  ASSERT_TRUE(rpc("tokenize", {{"text", "ab"}}).contains("result"));
  EXPECT_EQ(target_of()["serving_path"], "twin");
  EXPECT_EQ(loader_.loads_of("target"), 0);
}

TEST_F(RpcEndpointTest, AnotherTargetsFloorIsMeasuredAnew) {
  start("target");
  server_->state().floors().measure_with([](const Target& target) {
    return std::vector<CostPoint>{{.width = 1, .ms = target.info().path == "twin" ? 2.0 : 1.0}};
  });
  const auto floor = [this] {
    const Json told = object(server_->answer({.method = "GET", .path = "/outrider/speculation"}));
    return told["floor"].empty() ? 0.0 : told["floor"][0]["ms"].get<double>();
  };
  ASSERT_TRUE(rpc("tokenize", {{"text", "ab"}}).contains("result"));
  EXPECT_EQ(floor(), 1.0);
  ASSERT_TRUE(rpc("model.load", {{"role", "target"}, {"path", "twin"}}).contains("result"));
  EXPECT_TRUE(eventually([&] { return floor() == 2.0; })) << floor();
}

TEST_F(RpcEndpointTest, AWrongLoadNamesItsFieldAndADraftIsLoadedForItsTarget) {
  start("target");
  const Json wrong = rpc("model.load", {{"role", "target"}, {"path", "twin"}, {"ctx", -1}});
  EXPECT_EQ(wrong["error"]["data"]["field"], "ctx") << wrong;
  EXPECT_EQ(loader_.loads(), 0);
  const Json draft = rpc("model.load", {{"role", "draft"}, {"path", "draft"}});
  EXPECT_EQ(draft["result"]["state"], "loading") << draft;
  EXPECT_EQ(state(), ModelState::kReady);
  EXPECT_TRUE(
      eventually([this] { return rpc("system.status")["result"]["draft"]["state"] == "ready"; }));
}

TEST_F(RpcEndpointTest, WantOfRoomIsTheCallsErrorAndLeavesTheServerHealthy) {
  start("target");
  const std::shared_ptr<Runtime> busy = *catalog_->acquire("other", {});
  Json batch = Json::array();
  batch.push_back(request("tokenize", {{"text", "ab"}}));
  batch.push_back(request("stats"));
  const HttpReply reply = post("/rpc", batch);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(object(reply)[0]["error"]["data"]["code"], "resource_exhausted") << reply.body;
  EXPECT_TRUE(object(reply)[1].contains("result")) << reply.body;
  EXPECT_EQ(post("/v1/completions", {{"prompt", "ab"}}).status, 429);
  EXPECT_EQ(health(), 200);
}

TEST_F(RpcEndpointTest, ModelsAreOpenedAndClosedByTheirNames) {
  start("target");
  for (int i = 0; i < 2; ++i) {
    const HttpReply reply = post("/models/load", {{"model", "other"}});
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(object(reply), (Json{{"success", true}}));
    EXPECT_TRUE(becomes(ModelState::kReady, "other"));
  }
  for (int i = 0; i < 2; ++i) {
    const HttpReply reply = post("/models/unload", {{"model", "other"}});
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(object(reply), (Json{{"success", true}}));
    EXPECT_EQ(state("other"), ModelState::kAbsent);
  }
  EXPECT_EQ(loader_.loads(), 1);
  EXPECT_EQ(loader_.loads_of("other"), 1);
}

TEST_F(RpcEndpointTest, OpeningAndClosingNamesWhatIsWrong) {
  start("target");
  for (const char* path : {"/models/load", "/models/unload"}) {
    const HttpReply unknown = post(path, {{"model", "othr"}});
    EXPECT_EQ(unknown.status, 404);
    EXPECT_EQ(object(unknown)["error"]["param"], "model");
    const std::string message = object(unknown)["error"]["message"];
    EXPECT_NE(message.find("did you mean 'other'"), std::string::npos) << message;
    for (const Json& body : {Json::object(), Json{{"model", ""}}, Json{{"model", 7}}}) {
      const HttpReply wrong = post(path, body);
      EXPECT_EQ(wrong.status, 400) << wrong.body;
      EXPECT_EQ(object(wrong)["error"]["param"], "model") << wrong.body;
    }
    const HttpReply more = post(path, {{"model", "other"}, {"wait", true}});
    EXPECT_EQ(more.status, 400);
    EXPECT_EQ(object(more)["error"]["param"], "wait") << more.body;
    EXPECT_EQ(server_->answer({.method = "GET", .path = path}).status, 405);
  }
  EXPECT_EQ(loader_.loads(), 0);
}

}  // namespace
}  // namespace outrider::http
