// Many threads on the C interface, as an app would use it: what it includes is outrider.h, what it
// links is the shared library.
//
// Usage: c_stress TARGET.gguf DRAFT.gguf OUTRIDER FOLDER [REQUESTS]. OUTRIDER is the command, which
// builds the suffix store; FOLDER is written to. Sixteen threads ask for texts with every drafter,
// cancel some, give some a deadline; another loads and unloads the draft model and attaches and
// detaches the store meanwhile. Exit 0: each text is that of plain decoding, and nothing stood
// still.
#include <outrider.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;

constexpr int kThreads = 16;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRequests = 160;
#else
constexpr int kRequests = 1000;
#endif
constexpr std::uint32_t kTexts = 24;
constexpr int kRequestsAChange = 4;  // of the drafters

std::atomic<int> failures{0};

void fail(const std::string& what) {
  if (++failures <= 20) std::fprintf(stderr, "not so: %s\n", what.c_str());
}

// The answer to a call: {"result"} or {"error"}.
Json call(outrider* o, const char* method, const Json& params) {
  const Json request = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}};
  char* const text = outrider_call(o, request.dump().c_str());
  Json answer = text == nullptr ? Json() : Json::parse(text, nullptr, false);
  outrider_free(text);
  if (!answer.is_object()) {
    fail(std::string(method) + " gave no answer");
    answer = {{"error", nullptr}};
  }
  return answer;
}

Json result(outrider* o, const char* method, const Json& params) {
  Json answer = call(o, method, params);
  if (answer.contains("result")) return answer["result"];
  fail(std::string(method) + " " + params.dump() + ": " + answer.dump());
  return Json::object();
}

Json text_params(std::uint32_t i) {
  static const char* const kBeginnings[] = {"one two three one two three one two ", "Once ",
                                            "abab"};
  Json params = {{"prompt", kBeginnings[i % 3] + std::to_string(i % 5)},
                 {"max_tokens", 4 + i * 7 % 40},
                 {"seed", i},
                 {"temp", (i % 3) * 0.6}};
  if (i % 4 == 1) params["stop"] = {"e", "12"};
  if (i % 5 == 2) params["repeat_penalty"] = 1.2;
  return params;
}

struct Stress {
  outrider* instance = nullptr;
  std::string draft;
  std::string store;
  std::vector<Json> plain;  // results, [kTexts]
  std::atomic<int> begun{0};
  std::atomic<int> cut_short{0};
  std::atomic<std::int64_t> accepted{0};

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  int ended = 0;
  bool done = false;

  // `without_limit`: where plain decoding ended at its limit, this one went on.
  void check(const Json& got, const Json& expected, bool without_limit, const std::string& what) {
    const std::string finish = got.value("finish_reason", "");
    std::vector<int> tokens = got.value("tokens", std::vector<int>());
    std::vector<int> wanted = expected["tokens"];
    accepted += got["speculation"].value("accepted", 0);
    const bool goes_on = without_limit && expected["finish_reason"] == "length";
    if (goes_on && tokens.size() > wanted.size()) tokens.resize(wanted.size());
    if (finish == "cancelled") {
      ++cut_short;
      if (tokens.size() <= wanted.size()) wanted.resize(tokens.size());
    } else if (!goes_on && (got["finish_reason"] != expected["finish_reason"] ||
                            got["text"] != expected["text"])) {
      fail(what + ": another text: " + got.dump());
    }
    if (tokens != wanted) fail(what + ": other tokens");
  }

  void ask(std::mt19937& random) {
    static const char* const kExpressions[] = {"draft-model", "suffix", "recycle", "suffix,recycle",
                                               "suffix/draft-model"};
    const std::uint32_t i = static_cast<std::uint32_t>(random() % kTexts);
    Json params = text_params(i);
    const std::string expression = kExpressions[random() % 5];
    if (random() % 5 == 0) {
      params["speculative"] = false;
    } else {
      params["speculative"] = {{"drafters", {expression}}, {"width", 2 + random() % 7}};
    }
    // What is to be ended early has no limit and no full context, so that it is, on any machine.
    const bool hurries = random() % 8 == 0;
    const bool cancels = random() % 8 == 0;
    const std::size_t enough = random() % 20;  // tokens, before it is cancelled
    if (hurries) params["timeout_ms"] = 1 + random() % 30;
    if (hurries || cancels) {
      params["max_tokens"] = -1;
      params["shift_keep"] = 0;
    }
    const Json id = result(instance, "completion.start", params).value("id", Json());
    Json polled;
    std::size_t said = 0;
    while (!polled.contains("result")) {
      if (cancels && said >= enough) (void)call(instance, "completion.cancel", {{"id", id}});
      polled = result(instance, "completion.poll", {{"id", id}, {"wait_ms", 10}});
      if (polled.empty()) return;
      for (const Json& update : polled.value("updates", Json::array())) {
        said += update["tokens"].size();
      }
    }
    check(polled["result"], plain[i], hurries || cancels,
          expression + ", text " + std::to_string(i));
  }

  void client(std::uint32_t seed, int requests) {
    std::mt19937 random(seed);
    while (begun++ < requests) {
      ask(random);
      count_ended();
    }
  }

  // Something behind every few requests, until there are no more.
  void come_and_go() {
    std::mt19937 random(999);
    const Json file = {{"role", "drafter"}, {"drafter", "suffix"}, {"path", store}};
    for (int changes = 0; wait_for(kRequestsAChange * changes); ++changes) {
      switch (random() % 5) {
        case 0:
        case 1:
          result(instance, "model.load",
                 {{"role", "draft"}, {"path", draft}, {"ctx", 256}, {"threads", 1}});
          break;
        case 2:
          (void)call(instance, "model.unload", {{"role", "draft"}});  // it may not be there
          break;
        case 3:
          result(instance, "model.load", file);
          break;
        default:
          (void)call(instance, "model.unload", file);
      }
    }
  }

  void count_ended() {
    const std::lock_guard<std::mutex> lock(mutex);
    ++ended;
    changed.notify_all();
  }
  void finish() {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
    changed.notify_all();
  }
  // Until so many requests have ended. False: all have.
  bool wait_for(int n) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done || ended >= n; });
    return !done;
  }

  // Ends the process when nothing has ended for two minutes.
  void watch() {
    std::unique_lock<std::mutex> lock(mutex);
    while (!done) {
      const int last = ended;
      const bool goes_on =
          changed.wait_for(lock, std::chrono::minutes(2), [&] { return done || ended != last; });
      if (goes_on) continue;
      std::fprintf(stderr, "no progress since %d requests\n", last);
      std::abort();
    }
  }
};

bool build_store(const std::string& command, const std::string& target, const std::string& folder,
                 Stress& stress) {
  const std::string texts = folder + "/c_stress_texts.txt";
  stress.store = folder + "/c_stress.store";
  {
    std::ofstream file(texts);
    for (std::uint32_t i = 0; i < kTexts; i += 2) {
      file << text_params(i)["prompt"].get<std::string>()
           << stress.plain[i]["text"].get<std::string>() << "\n";
    }
  }
  const std::string line = "\"" + command + "\" suffix build --vocab \"" + target + "\" \"" +
                           texts + "\" -o \"" + stress.store + "\" > /dev/null";
  return std::system(line.c_str()) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: c_stress TARGET.gguf DRAFT.gguf OUTRIDER FOLDER [REQUESTS]\n");
    return 2;
  }
  const int requests = argc > 5 ? std::atoi(argv[5]) : kRequests;
  Stress stress;
  stress.draft = argv[2];
  const Json config = {{"slots", 4},
                       {"max_queue", kThreads},
                       {"model", {{"path", argv[1]}, {"ctx", 256}, {"batch", 64}, {"threads", 1}}}};
  char* error = nullptr;
  stress.instance = outrider_create(config.dump().c_str(), &error);
  if (stress.instance == nullptr) {
    std::fprintf(stderr, "c_stress: %s\n", error);
    outrider_free(error);
    return 1;
  }
  (void)result(stress.instance, "system.status", {{"wait_ms", 600'000}});
  for (std::uint32_t i = 0; i < kTexts; ++i) {
    Json params = text_params(i);
    params["speculative"] = false;
    stress.plain.push_back(result(stress.instance, "completion.run", params));
  }
  if (!build_store(argv[3], argv[1], argv[4], stress)) fail("the store was built");

  std::thread watchdog([&] { stress.watch(); });
  std::thread operator_thread([&] { stress.come_and_go(); });
  std::vector<std::thread> clients;
  for (int i = 0; i < kThreads; ++i) {
    clients.emplace_back([&, i] { stress.client(static_cast<std::uint32_t>(i), requests); });
  }
  for (std::thread& client : clients) client.join();
  stress.finish();
  operator_thread.join();
  watchdog.join();

  const Json stats = result(stress.instance, "stats", Json::object());
  if (stats.value("started", -1) != stats.value("finished", -2)) fail("every request has ended");
  if (stress.ended != requests) fail("every request was answered");
  if (stress.accepted.load() == 0) fail("anything was guessed right");
  if (stress.cut_short.load() == 0) fail("some were ended early");
  Json drafters = Json::object();
  if (!stats.contains("drafters")) fail("the drafters are counted");
  const Json counted = stats.value("drafters", Json::object());
  for (const auto& [name, counts] : counted.items()) {
    drafters[name] = counts.value("accepted", 0);
  }
  outrider_destroy(stress.instance);
  std::printf("%d requests from %d threads, %d ended early; accepted guesses: %s\n", requests,
              kThreads, stress.cut_short.load(), drafters.dump().c_str());
  return failures.load() == 0 ? 0 : 1;
}
