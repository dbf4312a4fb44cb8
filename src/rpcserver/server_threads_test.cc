// Many threads, and texts that nobody should send: each answer is one JSON text that says what was
// wrong, and afterwards all is as before.
#include <atomic>
#include <random>
#include <thread>

#include "rpcserver/server_harness_test.h"
#include "testing/chi_square.h"

namespace outrider::rpcserver {
namespace {

class ServerThreadsTest : public ServerTest {
 protected:
  // The text of a completion that is polled to its end, or until `stop`; now and then it is
  // cancelled. Empty when it could not be started.
  std::string polled_text(const std::string& request, std::mt19937& random,
                          const std::atomic<bool>& stop) {
    const Json started = start(request);
    if (started["success"] != true) return "";
    std::string text;
    Json answer;
    do {
      answer = poll(started["id"]);
      text += text_of(answer["completion_updates"]);
      if (random() % 200 == 0) cancel(Json{{"id", started["id"]}}.dump().c_str());
    } while (answer["finished"] != true && answer["success"] == true && !stop.load());
    return text;
  }
};

// Requests that are right, as a base for those that are not.
const char* const kRequests[] = {
    R"({"prompt":"abc","n_predict":3,"temperature":0.8,"top_k":40,"top_p":0.95,"seed":1})",
    R"({"prompt":["ab",2],"n_predict":2,"stop":["a","bc"],"n_probs":2,"logit_bias":[[1,2],[2,false]]})",
    R"({"prompt":"abc","n_predict":1,"speculative":{"width":4,"rule":"coupled"},"n_keep":-1})",
    R"({"id":1})",
    R"({"text":"abc"})",
    R"({"model":"target","n_ctx":64,"temperature":1,"n_draft":3,"tensor_split":[1,2]})",
    "server -m target -c 64 --temp 0.5 -md draft",
};

// One of them, with a few of its bytes changed, cut, doubled or replaced by odd values.
std::string malformed(std::mt19937& random) {
  static const char* const kOdd[] = {
      "null", "-1",         "0",   "1e999", "1e308",   "\"\"",  "[]", "{}",
      "true", "2147483648", "NaN", "\xFF",  "\\u0000", "[[[[[", "\"", "-9223372036854775809"};
  std::string text = kRequests[random() % std::size(kRequests)];
  for (std::uint32_t i = 1 + random() % 4; i > 0 && !text.empty(); --i) {
    const std::size_t at = random() % text.size();
    switch (random() % 5) {
      case 0:
        text[at] = static_cast<char>(1 + random() % 255);
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.insert(at, text.substr(at / 2, random() % 20));
        break;
      case 3:
        text.replace(at, random() % 6, kOdd[random() % std::size(kOdd)]);
        break;
      default: {  // another value for a field
        const std::size_t colon = text.find(':', at);
        if (colon == std::string::npos) break;
        const std::size_t end = std::min(text.find_first_of(",}", colon), text.size());
        text.replace(colon + 1, end - colon - 1, kOdd[random() % std::size(kOdd)]);
      }
    }
  }
  return text;
}

TEST_F(ServerThreadsTest, ThousandsOfMalformedTextsAreAnsweredAndChangeNothing) {
  const std::uint64_t seed = outrider::testing::test_seed(20261121);
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  ASSERT_EQ(server_.init(R"({"model":"target","model_draft":"draft","n_ctx":64})"), 0);
  const std::string sound = R"({"prompt":"abc","n_predict":20,"seed":1,"speculative":{"width":4}})";
  const Json before = complete(sound);
  std::size_t n_refused = 0;
  std::size_t n_accepted = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string text = malformed(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", text " + std::to_string(i) + ": " + text);
    Json answer;
    switch (i % 5) {
      case 0:
        answer = start(text);
        if (answer["success"] == true) cancel(Json{{"id", answer["id"]}}.dump().c_str());
        break;
      case 1:
        answer = parse(server_.tokenize(text.c_str()));
        break;
      case 2:
        answer = poll(text.c_str());
        break;
      case 3:
        answer = cancel(text.c_str());
        break;
      default: {
        server_.init_async(text.c_str(), i % 2 == 0);
        answer = status();
        const bool accepted = answer["error"].is_null() && answer["draft"]["error"].is_null();
        answer["success"] = accepted;
        if (!accepted && answer["error"].is_null()) answer["error"] = answer["draft"]["error"];
      }
    }
    ASSERT_TRUE(answer.is_object());
    ASSERT_TRUE(answer["success"].is_boolean());
    if (answer["success"] == true) {
      ++n_accepted;
      continue;
    }
    ++n_refused;
    ASSERT_TRUE(answer["error"].is_string());
    ASSERT_FALSE(answer["error"].get<std::string>().empty());
  }
  EXPECT_GT(n_refused, 1500U);
  EXPECT_GT(n_accepted, 100U) << "some are right by chance, and pass";
  ASSERT_EQ(server_.init(R"({"model":"target","model_draft":"draft","n_ctx":64})"), 0);
  EXPECT_EQ(complete(sound)["content"], before["content"]);
}

TEST_F(ServerThreadsTest, DeepJsonIsRefusedAndNotFollowed) {
  ASSERT_EQ(server_.init(R"({"model":"target"})"), 0);
  for (const std::size_t depth : {65U, 3'000U, 100'000U}) {
    const std::string deep = R"({"prompt":)" + std::string(depth, '[');
    EXPECT_EQ(start(deep)["success"], false);
    EXPECT_EQ(poll(deep.c_str())["success"], false);
    EXPECT_EQ(parse(server_.tokenize(deep.c_str()))["success"], false);
    EXPECT_EQ(server_.init(deep.c_str()), 1);
  }
}

// Threads that use every function; one of them ends the library now and then and begins again.
TEST_F(ServerThreadsTest, EveryFunctionMayBeCalledFromManyThreadsDeinitIncluded) {
  const std::uint64_t seed = outrider::testing::test_seed(7);
  SCOPED_TRACE("seed " + std::to_string(seed));
  loader_.add("draft two", {.seed = 1, .noise = 0.2f, .load_steps = 2});
  std::atomic<bool> stop{false};
  std::atomic<int> completed{0};
  std::string expected;
  const std::string request =
      R"({"prompt":"abc","n_predict":30,"seed":5,"temperature":1,"speculative":{"width":4}})";
  ASSERT_EQ(server_.init(R"({"model":"target","n_ctx":64})"), 0);
  expected = complete(request)["content"];
  ASSERT_EQ(expected.size(), 30U);

  const auto client = [&](std::uint32_t number) {
    std::mt19937 random(static_cast<std::uint32_t>(seed) + number);
    while (!stop.load()) {
      switch (random() % 6) {
        case 0: {
          const Json answer = complete(request);
          if (answer.value("stopped_limit", false)) {
            EXPECT_EQ(answer["content"], expected);
            ++completed;
          } else {  // cut short by deinit, or there was no model just now
            EXPECT_TRUE(answer.value("stopped_cancelled", answer["status"] == 400)) << answer;
          }
          break;
        }
        case 1: {
          const std::string text = polled_text(request, random, stop);
          EXPECT_EQ(text, expected.substr(0, text.size()));
          break;
        }
        case 2:
          EXPECT_TRUE(status()["init_success"].is_number());
          break;
        case 3:
          EXPECT_TRUE(parse(server_.tokenize(R"({"text":"abc"})"))["success"].is_boolean());
          break;
        case 4:
          EXPECT_TRUE(poll(R"({"id":9000000})")["completion_updates"].empty());
          break;
        default:
          server_.init_async(
              random() % 2 == 0 ? R"({"model_draft":"draft"})" : R"({"model_draft":"draft two"})",
              true);
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 6; ++i) threads.emplace_back(client, i);
  for (int round = 0; round < 12; ++round) {
    const int before = completed.load();
    wait_until([&] { return completed.load() > before; });
    if (round % 3 == 0) server_.deinit();
    server_.init(R"({"model":"target","n_ctx":64})");
  }
  wait_until([&] { return completed.load() > 20; });
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(completed.load(), 20) << "the texts were compared";
}

}  // namespace
}  // namespace outrider::rpcserver
