// What the server itself takes for a token: HTTP, JSON, the runtime and the engine, with a model
// that costs nothing. Processor time of the whole process in microseconds a token; that of the
// client, which is in it, too, is small: it reads and counts.
//
// `tokens`: the length of an answer, since a chat answer's text is looked at again as it grows.
// agent: with reasoning and a call in it, read by llama-common in the format of a real template,
// and the same text of the same model without any reading (text). There a token comes every 5 ms.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/server_script.h"
#include "catalog/catalog.h"
#include "http/listener.h"
#include "http/server.h"
#include "testing/fake_loader.h"
#include "testing/socket_client.h"

namespace outrider::http {
namespace {

constexpr std::int32_t kContext = 8192;

// Listens while it lives.
class Served {
 public:
  explicit Served(std::unique_ptr<testing::FakeLoader> loader) : loader_(std::move(loader)) {
    ModelOptions model;
    model.path = "target";
    model.n_ctx = kContext;
    catalog_ = std::move(
        Catalog::create({{.name = "fake", .target = model}}, {.runtime = {.slots = 4}}, *loader_)
            .value());
    ServerOptions options;
    options.port = 0;
    server_ = std::make_unique<Server>(options, *catalog_);
    listener_ = std::move(Listener::create(*server_).value());
    thread_ = std::thread([this] { (void)listener_->run(); });
  }
  ~Served() {
    listener_->stop();
    thread_.join();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  std::int32_t port() const { return listener_->port(); }

 private:
  const std::unique_ptr<testing::FakeLoader> loader_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
};

// Letters, in the format of testing/simple_chat.h.
std::unique_ptr<testing::FakeLoader> letters() {
  auto loader = std::make_unique<testing::FakeLoader>();
  loader->add("target", {.chat = true});
  return loader;
}

// `parts`: what the answer has, or the figure is none.
void ask(benchmark::State& state, const Served& served, const std::string& path,
         const std::string& more, const std::vector<std::string>& parts = {}) {
  testing::SocketClient client(served.port());
  const std::int64_t n = state.range(0);
  const std::string prompt = path == "/v1/chat/completions"
                                 ? R"("messages":[{"role":"user","content":"abc"}])"
                                 : R"("prompt":"abc")";
  const std::string body =
      "{" + prompt + R"(,"width":1,"max_tokens":)" + std::to_string(n) + more + "}";
  // The first request opens the model.
  (void)client.ask("POST", "/v1/completions", R"({"prompt":"abc","max_tokens":1})");
  std::int64_t tokens = 0;
  for (auto _ : state) {
    const testing::RawReply reply = client.ask("POST", path, body);
    const std::size_t at = reply.body.rfind("\"completion_tokens\":");
    bool whole = reply.status == 200 && at != std::string::npos;
    for (const std::string& part : parts) {
      whole = whole && reply.body.find(part) != std::string::npos;
    }
    if (!whole) {
      state.SkipWithError(("status " + std::to_string(reply.status) + ": " + reply.body).c_str());
      break;
    }
    tokens += std::atoll(reply.body.c_str() + at + 20);
  }
  state.counters["per_token"] = benchmark::Counter(
      static_cast<double>(tokens), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void answers(benchmark::State& state, const std::string& path, const std::string& more) {
  const Served served(letters());
  ask(state, served, path, more);
}

void agent(benchmark::State& state, const std::string& path, const std::string& more,
           const std::vector<std::string>& parts) {
  const std::string format = std::string(OUTRIDER_CHAT_TEMPLATES) + "/Qwen-Qwen3-0.6B.jinja";
  const Served served(
      std::make_unique<ScriptLoader>(format, static_cast<std::size_t>(state.range(0))));
  ask(state, served, path, more, parts);
}

constexpr const char* kStream = R"(,"stream":true,"stream_options":{"include_usage":true})";
constexpr const char* kStreamWithTools =
    R"(,"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function",)"
    R"("function":{"name":"look","parameters":{"type":"object","properties":{}}}}])";

BENCHMARK_CAPTURE(answers, text, "/v1/completions", "")->Arg(256)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(answers, text_streamed, "/v1/completions", kStream)
    ->Arg(256)
    ->Arg(4096)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(answers, chat_streamed, "/v1/chat/completions", kStream)
    ->Arg(256)
    ->Arg(4096)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(answers, chat_with_tools, "/v1/chat/completions", kStreamWithTools)
    ->Arg(256)
    ->Arg(4096)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(agent, text, "/v1/completions", kStream, {"<tool_call>"})
    ->Arg(256)
    ->Arg(4096)
    ->Iterations(1)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(agent, chat, "/v1/chat/completions", kStreamWithTools,
                  {R"("reasoning_content":)", R"("content":")", R"("tool_calls":)",
                   R"("arguments":)"})
    ->Arg(256)
    ->Arg(4096)
    ->Iterations(1)
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace outrider::http
