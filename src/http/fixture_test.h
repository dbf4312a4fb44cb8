// For the tests of this layer: a server over one runtime whose models are hand-written numbers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/server.h"
#include "json/json.h"
#include "testing/fake_loader.h"

namespace outrider::http {

// A catalog with one model, "fake", that is open.
class FixtureCatalog : public Catalog {
 public:
  explicit FixtureCatalog(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

  Result<std::shared_ptr<Runtime>> acquire(std::string_view name,
                                           const std::function<bool()>& /*give_up*/) override {
    if (!has(name)) {
      return not_found("there is no model '" + std::string(name) + "'; there is: fake");
    }
    ++acquired;
    if (on_acquire) on_acquire();
    if (!error.ok()) return error;
    return runtime_;
  }
  std::shared_ptr<Runtime> find_open(std::string_view name) override {
    return has(name) && open && error.ok() ? runtime_ : nullptr;
  }
  Result<std::shared_ptr<Runtime>> look(std::string_view /*name*/) override { return runtime_; }
  Status load_target(std::string_view /*name*/, ModelOptions target) override {
    return runtime_->load(ModelRole::kTarget, std::move(target));
  }
  Status preload(std::string_view name) override { return note("load", name); }
  Status unload(std::string_view name) override { return note("unload", name); }
  std::vector<CatalogStatus> status() const override {
    return {{.name = "fake",
             .aliases = aliases,
             .path = "target",
             .offered_draft = offered_draft,
             .state = state,
             .reopening = reopening,
             .error = error,
             .waiting = waiting,
             .totals = runtime_->totals()}};
  }
  std::optional<CatalogStatus> status_of(std::string_view name) const override {
    return has(name) ? std::optional(status().front()) : std::nullopt;
  }
  void shut_down() override { runtime_->shut_down(); }
  std::string check_integrity() const override { return runtime_->check_integrity(); }

  ModelState state = ModelState::kReady;
  bool reopening = false;
  std::int64_t waiting = 0;          // for the model to be opened
  std::function<void()> on_acquire;  // what acquire() waits for; may be empty
  bool open = true;                  // as far as find_open() knows
  Status error;                      // of opening it
  std::vector<std::string> aliases;
  std::string offered_draft;
  std::atomic<int> acquired = 0;     // how often it was asked for, which opens a model
  std::vector<std::string> changed;  // calls of preload() and unload(): "load fake"

 private:
  Status note(const std::string& what, std::string_view name) {
    if (!has(name)) return not_found("there is no model '" + std::string(name) + "'");
    changed.push_back(what + " " + std::string(name));
    return Status();
  }
  bool has(std::string_view name) const {
    return name.empty() || name == "fake" ||
           std::find(aliases.begin(), aliases.end(), name) != aliases.end();
  }

  std::shared_ptr<Runtime> runtime_;
};

class ServerTest : public ::testing::Test {
 protected:
  // Tokens 0 to 11 are the letters a to l.
  void start(const ServerOptions& options = {}, const testing::FakeFile& target = {.chat = true},
             const RuntimeOptions& runtime = {.slots = 2, .max_queue = 4}) {
    loader_.add("target", target);
    runtime_ = std::shared_ptr<Runtime>(std::move(Runtime::create(runtime, loader_).value()));
    ModelOptions model;
    model.path = "target";
    model.n_ctx = n_ctx_;
    model.n_batch = n_batch_;
    ASSERT_TRUE(runtime_->load(ModelRole::kTarget, model).ok());
    ASSERT_TRUE(runtime_->wait_loaded(-1));
    catalog_ = std::make_unique<FixtureCatalog>(runtime_);
    server_ = std::make_unique<Server>(options, *catalog_);
  }

  HttpReply ask(const std::string& method, const std::string& path, const std::string& body = "") {
    return server_->answer({.method = method, .path = path, .body = body});
  }
  HttpReply post(const std::string& path, const json::Json& body) {
    return ask("POST", path, json::encode(body));
  }

  // A request for a text without end: a full context is shifted. It runs until somebody ends it,
  // however long that takes.
  static json::Json endless(bool stream = true) {
    return {{"prompt", "abc"}, {"max_tokens", -1}, {"shift_keep", 0}, {"stream", stream}};
  }

  // The body of a reply that is sent at once.
  static json::Json object(const HttpReply& reply) {
    const json::Parsed parsed = json::parse(reply.body);
    EXPECT_TRUE(parsed.ok()) << parsed.error << ": " << reply.body;
    return parsed.ok() ? *parsed.value : json::Json();
  }

  // All that a streamed reply writes.
  static std::string streamed(const HttpReply& reply) {
    std::string all;
    EXPECT_TRUE(reply.stream) << reply.body;
    if (reply.stream) {
      reply.stream([&all](std::string_view bytes) {
        all += bytes;
        return true;
      });
    }
    return all;
  }

  // The objects behind "data: " of a streamed reply; [DONE] is left out.
  static std::vector<json::Json> events(const HttpReply& reply) {
    std::vector<json::Json> list;
    const std::string all = streamed(reply);
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = all.find("\n\n", at);
      EXPECT_NE(end, std::string::npos) << "an event without an end: " << all.substr(at);
      std::string event = all.substr(at, end - at);
      at = end == std::string::npos ? all.size() : end + 2;
      const std::size_t data = event.find("data: ");
      if (data == std::string::npos || event.substr(data) == "data: [DONE]") continue;
      const json::Parsed parsed = json::parse(event.substr(data + 6));
      EXPECT_TRUE(parsed.ok()) << parsed.error << ": " << event;
      if (parsed.ok()) list.push_back(*parsed.value);
    }
    return list;
  }

  std::int32_t n_ctx_ = 256;                       // before start()
  std::int32_t n_batch_ = ModelOptions().n_batch;  // likewise
  testing::FakeLoader loader_;
  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<FixtureCatalog> catalog_;
  std::unique_ptr<Server> server_;
};

}  // namespace outrider::http
