// A service over models of hand-written numbers: what clients see, without a model file.
#pragma once

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "api/service.h"
#include "json/json.h"
#include "testing/fake_loader.h"

namespace outrider::testing {

// The loader's files: "target" and "draft" fit together; "slow" loads until that is cancelled,
// "ends" ends its texts soon, "broken" cannot be loaded, "throwing" throws.
class FakeService {
 public:
  explicit FakeService(RuntimeOptions options = {}) {
    loader_.add("target", {.seed = 1});
    loader_.add("draft", {.seed = 1, .noise = 0.5f});
    loader_.add("slow", {.seed = 1, .load_steps = kEndlessLoad});
    loader_.add("slow draft", {.seed = 1, .noise = 0.5f, .load_steps = kEndlessLoad});
    loader_.add("ends", {.seed = 1, .spread = 1.0f, .end = 3});
    loader_.add("broken", {.failure = internal_error("'--broken' is broken")});
    loader_.add("throwing", {.throws = true});
    Result<std::unique_ptr<Runtime>> made = Runtime::create(options, loader_);
    EXPECT_TRUE(made.ok());
    runtime_ = std::move(*made);
    service_ = std::make_unique<api::Service>(*runtime_);
  }

  FakeLoader& loader() { return loader_; }
  Runtime& runtime() { return *runtime_; }
  api::Service& service() { return *service_; }

  // Loads it and waits.
  void load(const std::string& role, const std::string& path, std::int32_t ctx = 64) {
    const json::Json loaded =
        result("model.load", {{"role", role}, {"path", path}, {"ctx", ctx}, {"batch", 24}});
    EXPECT_EQ(loaded, json::Json({{"role", role}, {"state", "loading"}}));
    EXPECT_TRUE(runtime_->wait_loaded(-1));
  }

  // The response to a request.
  json::Json call(const std::string& method, const json::Json& params) {
    const json::Json request = {
        {"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}};
    const std::string text = service_->call(json::encode(request));
    json::Parsed parsed = json::parse(text);
    EXPECT_TRUE(parsed.ok()) << text;
    return parsed.ok() ? *parsed.value : json::Json();
  }
  json::Json result(const std::string& method, const json::Json& params) {
    json::Json response = call(method, params);
    EXPECT_TRUE(response.contains("result")) << response;
    return response["result"];
  }
  // {"code","message","data":{"code","field"}}
  json::Json error(const std::string& method, const json::Json& params) {
    json::Json response = call(method, params);
    EXPECT_TRUE(response.contains("error")) << method << " " << params << " -> " << response;
    return response["error"];
  }

 private:
  FakeLoader loader_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<api::Service> service_;
};

// The names of an object's fields.
inline std::set<std::string> keys(const json::Json& object) {
  std::set<std::string> names;
  for (json::Json::const_iterator it = object.begin(); it != object.end(); ++it) {
    names.insert(it.key());
  }
  return names;
}

// The parameters of a completion of `n` tokens at temperature 1, with a fixed width: what the
// planner chooses depends on how quick the machine is.
inline json::Json ask(const std::string& prompt, int n) {
  return {{"prompt", prompt}, {"max_tokens", n}, {"seed", 7}, {"temp", 1}, {"width", 4}};
}

// Of one whose text has no end: it runs until somebody ends it, however long that takes.
inline json::Json endless(const std::string& prompt) {
  json::Json params = ask(prompt, -1);
  params["shift_keep"] = 0;  // a full context is shifted
  return params;
}

}  // namespace outrider::testing
