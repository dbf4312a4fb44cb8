// What cannot be written to an app's folders is told: by system.status while the instance lives,
// and by the log at its end, too. And what can be written is, when the process ends first.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "capi/boundary.h"
#include "capi/instances.h"
#include "capi/log.h"
#include "testing/fake_loader.h"
#include "testing/tiny_dir.h"

namespace outrider::capi {
namespace {

using json::Json;
using testing::FakeLoader;

// The log's warnings while it lives.
class Warnings {
 public:
  Warnings() { set_log(&Warnings::receive, this); }
  ~Warnings() { set_log(nullptr, nullptr); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  bool any_begins_with(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(all_.begin(), all_.end(),
                       [&text](const std::string& line) { return line.starts_with(text); });
  }

 private:
  static void receive(void* user, int level, const char* text) {
    Warnings& self = *static_cast<Warnings*>(user);
    const std::lock_guard<std::mutex> lock(self.mutex_);
    if (level == static_cast<int>(LogLevel::kWarning)) self.all_.emplace_back(text);
  }

  std::mutex mutex_;
  std::vector<std::string> all_;
};

class NotKeptByAnApp : public ::testing::Test {
 protected:
  // An instance with a target, whose folder for texts is a folder, or has become a file since.
  Instance* open(bool is_lost) {
    const std::string folder = dir_.file(is_lost ? "lost" : "kept");
    std::unique_ptr<FakeLoader> loader = std::make_unique<FakeLoader>();
    loader->add("target", {.seed = 1});
    const Json config = {{"model", {{"path", "target"}, {"ctx", 64}}},
                         {"remember_tokens", 4096},
                         {"remember_folder", folder}};
    char* error = nullptr;
    Instance* const instance = create(json::encode(config).c_str(), &error, std::move(loader));
    EXPECT_NE(instance, nullptr) << error;
    EXPECT_EQ(status(instance)["target"]["state"], "ready");
    if (is_lost) {
      std::filesystem::remove_all(folder);
      testing::write_bytes(folder, "no folder");
    }
    return instance;
  }

  static Json ask(Instance* instance, const std::string& method, const Json& params) {
    const Json request = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}};
    char* const text = call(instance, json::encode(request).c_str());
    const Json answer = *json::parse(text).value;
    free_string(text);
    return answer["result"];
  }
  static Json status(Instance* instance) {
    return ask(instance, "system.status", {{"wait_ms", 60'000}});
  }

  static constexpr const char* kWarning = "what was learned cannot be kept: remember_folder: ";
  testing::TempDir dir_;
};

TEST_F(NotKeptByAnApp, IsInTheStatusAndInTheLogOnceTheTargetIsUnloaded) {
  Warnings warnings;
  Instance* const instance = open(/*is_lost=*/true);
  EXPECT_EQ(status(instance)["not_kept"], Json::array());
  ask(instance, "model.unload", {{"role", "target"}});
  Json told = Json::array();
  while (told.empty()) {  // the target ends on a thread of its own
    std::this_thread::yield();
    told = status(instance)["not_kept"];
  }
  ASSERT_EQ(told.size(), 1U) << told;
  EXPECT_TRUE(told[0].get<std::string>().starts_with("remember_folder: ")) << told;
  EXPECT_TRUE(warnings.any_begins_with(kWarning));
  destroy(instance);
}

TEST_F(NotKeptByAnApp, IsInTheLogWhereTheInstanceEndsWithItsTarget) {
  for (const bool is_lost : {true, false}) {
    Warnings warnings;
    destroy(open(is_lost));
    EXPECT_EQ(warnings.any_begins_with(kWarning), is_lost);
  }
}

// shut_down_living() is all that is called at the process's end where the app destroys nothing.
TEST_F(NotKeptByAnApp, IsNothingWhereTheProcessEndsAndTheInstanceIsNotDestroyed) {
  const auto n_files = [this] {
    return std::distance(std::filesystem::directory_iterator(dir_.file("kept")), {});
  };
  const auto remembered = [](Instance* instance) {
    return status(instance)["drafters"][1]["remembered"]["tokens"].get<std::int64_t>();
  };
  Instance* const instance = open(/*is_lost=*/false);
  const Json result =
      ask(instance, "completion.run",
          {{"prompt", "abcabc"}, {"max_tokens", 40}, {"speculative", {{"namespace", "a"}}}});
  EXPECT_EQ(result["speculation"]["remembered"]["tokens"], 40) << result;
  const std::int64_t learned = remembered(instance);
  EXPECT_EQ(n_files(), 0) << "not yet";
  shut_down_living(/*wait=*/true);
  EXPECT_GT(n_files(), 0);
  Instance* const next = open(/*is_lost=*/false);
  EXPECT_EQ(remembered(next), learned);
  destroy(next);
  destroy(instance);
}

}  // namespace
}  // namespace outrider::capi
