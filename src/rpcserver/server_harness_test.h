// What the tests of Server share: models that are fakes, answers as JSON, and golden files.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "rpcserver/server.h"
#include "testing/eventually.h"
#include "testing/fake_loader.h"
#include "testing/golden.h"

namespace outrider::rpcserver {

class ServerTest : public ::testing::Test {
 protected:
  using Json = json::Json;
  using FakeFile = outrider::testing::FakeFile;

  // The fakes' tokens are the letters a to l.
  ServerTest() {
    loader_.add_usual_files();
    loader_.add("ending", {.seed = 1, .end = 11});
  }

  static Json parse(const std::string& text) {
    json::Parsed parsed = json::parse(text);
    EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.error;
    return parsed.ok() ? *parsed.value : Json();
  }

  Json status() { return parse(server_.poll_system_status()); }
  Json complete(const std::string& request) {
    return parse(server_.get_completion(request.c_str()));
  }
  Json start(const std::string& request) {
    return parse(server_.async_completion_init(request.c_str()));
  }
  Json poll(const char* which = nullptr) { return parse(server_.async_completion_poll(which)); }
  Json poll(const Json& id) { return poll(Json{{"id", id}}.dump().c_str()); }
  Json cancel(const char* which = nullptr) { return parse(server_.async_completion_cancel(which)); }

  // Asks until `done`: the API has no other way to wait. A minute without it fails the test.
  static void wait_until(const std::function<bool()>& done) {
    EXPECT_TRUE(outrider::testing::eventually(done)) << "it never came to that";
  }

  // All updates of a completion, from now to its end.
  Json updates_of(const Json& id) {
    Json updates = Json::array();
    wait_until([&] {
      const Json answer = poll(id);
      for (const Json& update : answer["completion_updates"]) updates.push_back(update);
      return answer["finished"] == true;
    });
    return updates;
  }

  static std::string text_of(const Json& updates) {
    std::string text;
    for (const Json& update : updates) text += update["content"].get<std::string>();
    return text;
  }

  // Numbers that differ from run to run, by the end of their key, become what they are;
  // probabilities are rounded, since mathematical libraries differ in the last digits.
  static Json steady(Json value) {
    if (value.is_array()) {
      for (Json& part : value) part = steady(part);
    }
    if (!value.is_object()) return value;
    for (const auto& [key, part] : value.items()) {
      const bool varies = key.ends_with("_ms") || key.ends_with("_per_second");
      if (varies && (part.is_number() || part.is_null())) {
        part = "number or null";
      } else if (key == "prob") {
        part = std::round(part.get<double>() * 1e4) / 1e4;
      } else {
        part = steady(part);
      }
    }
    return value;
  }

  static void expect_golden(const std::string& name, const Json& answer) {
    outrider::testing::expect_golden(
        "rpcserver/" + name + ".json",
        steady(answer).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  outrider::testing::FakeLoader loader_;  // outlives the server
  Server server_{loader_};
};

}  // namespace outrider::rpcserver
