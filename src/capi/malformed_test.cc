// Thousands of requests that are wrong: an error each, by its field, and everything goes on.
#include <pthread.h>

#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "capi/boundary.h"
#include "testing/chi_square.h"
#include "testing/fake_loader.h"
#include "testing/malformed_request.h"

namespace outrider::capi {
namespace {

using json::Json;
using testing::FakeLoader;
using testing::MalformedRequest;

class Malformed : public ::testing::Test {
 protected:
  Malformed() {
    std::unique_ptr<FakeLoader> loader = std::make_unique<FakeLoader>();
    loader->add("target", {.seed = 1});
    instance_ = create(R"({"model":{"path":"target","ctx":64}})", nullptr, std::move(loader));
    text_ = ask(R"({"jsonrpc":"2.0","id":1,"method":"system.status","params":{"wait_ms":60000}})");
    text_ = run();
  }
  ~Malformed() override { destroy(instance_); }

  std::string ask(const std::string& request) {
    char* const answer = call(instance_, request.c_str());
    const std::string text = answer == nullptr ? "" : answer;
    free_string(answer);
    return text;
  }

  // The text of a completion that is right.
  std::string run() {
    const Json answer = *json::parse(ask(R"({"jsonrpc":"2.0","id":1,"method":"completion.run",
        "params":{"prompt":"abc","max_tokens":12,"seed":3,"temp":1}})"))
                             .value;
    return answer.contains("result") ? answer["result"]["text"].get<std::string>()
                                     : json::encode(answer);
  }

  Instance* instance_ = nullptr;
  std::string text_;
};

TEST_F(Malformed, TenThousandRequestsGetAnErrorEachThatNamesTheField) {
  const std::uint64_t seed = testing::test_seed(20261121);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 10'000; ++i) {
    const MalformedRequest request = testing::malformed_request(random);
    const json::Parsed answer = json::parse(ask(request.text));
    const std::string about = request.what + ", seed " + std::to_string(seed) + ", number " +
                              std::to_string(i) + ": " + request.text.substr(0, 300);
    ASSERT_TRUE(answer.ok()) << about;
    ASSERT_TRUE(answer.value->is_object() && answer.value->contains("error"))
        << about << " -> " << *answer.value;
    const Json& error = (*answer.value)["error"];
    ASSERT_EQ(error["code"], request.code) << about << " -> " << error;
    ASSERT_FALSE(error["message"].get<std::string>().empty()) << about;
    if (request.field.empty()) continue;
    ASSERT_TRUE(error["data"]["field"].is_string()) << about << " -> " << error;
    ASSERT_EQ(error["data"]["field"].get<std::string>().rfind(request.field, 0), 0U)
        << about << " -> " << error;
  }
  EXPECT_EQ(run(), text_) << "and a request that is right gets the same text as before";
}

// `depth` levels, all of them closed: nothing else is wrong with it as JSON.
std::string request_of_depth(std::size_t depth, const std::string& open, char close) {
  std::string text = R"({"jsonrpc":"2.0","id":1,"method":"none","params":{"x":)";
  for (std::size_t i = 2; i < depth; ++i) text += open;
  return text + "1" + std::string(depth - 2, close) + "}}";
}

// 64 levels are read, and the method is unknown then.
TEST_F(Malformed, DepthIsNoMatterOnASmallStack) {
  struct Work {
    Instance* instance;
    std::string codes;
  };
  Work work{instance_, ""};
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 * 1024), 0);
  void* (*const body)(void*) = [](void* user) -> void* {
    Work& w = *static_cast<Work*>(user);
    for (const std::size_t depth : {64U, 65U, 3'000U, 100'000U}) {
      for (const auto& [open, close] : {std::pair("[", ']'), std::pair("{\"a\":", '}')}) {
        char* const answer = call(w.instance, request_of_depth(depth, open, close).c_str());
        w.codes += (*json::parse(answer).value)["error"]["code"].dump() + " ";
        free_string(answer);
      }
    }
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &work), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(work.codes, "-32601 -32601 -32700 -32700 -32700 -32700 -32700 -32700 ");
  EXPECT_EQ(run(), text_);
}

}  // namespace
}  // namespace outrider::capi
