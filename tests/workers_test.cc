// --workers with real processes on the loopback: the text is that of one process, and a worker that
// dies or is none is an error.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

#include "backend/llama_loader.h"
#include "llama/workers/rpc_worker.h"
#include "remote/file_descriptor.h"
#include "remote/remote_model.h"
#include "serve/runtime.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"
#include "testing/tiny_vocabulary.h"
#include "tests/pair.h"
#include "tests/worker_process.h"

namespace outrider {
namespace {

using testing::HostProgram;
using testing::RunOptions;
using testing::WorkerProcess;

class Workers : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::TinyPairOptions pair;
    pair.target.n_layer = 4;
    pair.target.weight_type = testing::WeightType::kQ4_0;
    // Rows that fill their strips, as common models have: other matrices a worker leaves as they
    // are.
    const int n_vocab = testing::make_tiny_vocabulary({})->size();
    pair.target.vocabulary.n_padding = (32 - n_vocab % 32) % 32;
    pair.noise = 0.05f;
    const Status written = testing::write_tiny_pair(target(), draft(), pair);
    ASSERT_TRUE(written.ok()) << written.message();
  }

  std::string target() const { return dir_.file("target.gguf"); }
  std::string draft() const { return dir_.file("draft.gguf"); }

  ModelOptions options(std::vector<std::string> workers) const {
    ModelOptions options;
    options.path = target();
    options.n_ctx = 256;
    options.n_batch = 64;
    options.n_threads = 1;
    options.widest = 4;
    options.workers = std::move(workers);
    return options;
  }

  Result<std::unique_ptr<Target>> load(std::vector<std::string> workers,
                                       double probe_budget_ms = 100.0) const {
    LlamaLoaderOptions how;
    how.probe_budget_ms = probe_budget_ms;
    how.cache_folder = dir_.file("cache");
    return LlamaLoader(how).load_target(options(std::move(workers)), {});
  }

  testing::TempDir dir_;
  HostProgram host_;
};

TEST_F(Workers, TheTextIsThatOfOneProcess) {
  const WorkerProcess one;
  const WorkerProcess two;
  // Long enough for the whole probe on any machine: its verdict is looked at.
  const Result<std::unique_ptr<Target>> far = load({one.address(), two.address()}, 120e3);
  ASSERT_TRUE(far.ok()) << far.status().message();
  testing::OpenModel near(target(), options({}), {.type_k = "q8_0", .type_v = "q8_0"},
                          /*extra_bufts=*/true);
  testing::OpenModel drafts(draft(), options({}), llama::ContextSettings{}, /*extra_bufts=*/true);
  const Vocabulary& vocabulary = near.file->text_vocabulary();
  DraftModelDrafter drafter(*drafts.model, vocabulary.size(), {});
  std::int64_t accepted = 0;
  for (const std::vector<Token>& prompt : testing::seeded_prompts(vocabulary, 3, 6, 20)) {
    RunOptions run{.prompt = prompt, .seed = 11, .max_tokens = 32};
    run.sampling.temperature = prompt.size() % 2 == 0 ? 0.0f : 0.8f;
    const Completion wanted = testing::run_checked(*near.model, vocabulary, {}, run, {});
    const Completion plain =
        testing::run_checked((*far)->model(), (*far)->vocabulary(), {}, run, {});
    EXPECT_EQ(plain.tokens, wanted.tokens);
    run.width = 4;
    const Completion speculative =
        testing::run_checked((*far)->model(), (*far)->vocabulary(), {&drafter}, run, {});
    EXPECT_EQ(speculative.tokens, wanted.tokens);
    accepted += speculative.speculation.accepted;
  }
  EXPECT_GT(accepted, 20) << "speculation was at work";
  EXPECT_NE((*far)->exactness().kind, Exactness::Kind::kDistributional)
      << (*far)->exactness().reason;
  EXPECT_EQ((*far)->exactness().coverage.find("cached"), std::string::npos);
}

// A greedy request of up to 100 tokens, three steps of it done.
RequestId begin_request(Engine& engine, const Target& target) {
  Request request;
  request.prompt = {20, 30, 40};
  request.sampler = *target.make_sampler({.temperature = 0.0f});
  request.max_tokens = 100;
  const RequestId id = *engine.add(std::move(request));
  for (int i = 0; i < 3; ++i) engine.step();
  return id;
}

TEST_F(Workers, OneThatIsKilledInARequestEndsThatRequestAndTheTargetLoadsAgain) {
  WorkerProcess one;
  for (const bool first : {true, false}) {
    WorkerProcess two;
    Result<std::unique_ptr<Target>> far = load(first ? std::vector{two.address(), one.address()}
                                                     : std::vector{one.address(), two.address()});
    ASSERT_TRUE(far.ok()) << far.status().message();
    Engine engine((*far)->model(), (*far)->vocabulary(), {});
    const RequestId id = begin_request(engine, **far);
    two.kill();
    while (engine.busy()) engine.step();
    const Completion failed = *engine.take(id);
    EXPECT_EQ(failed.finish, FinishReason::kError);
    EXPECT_EQ(failed.error.code(), StatusCode::kInternal);
    EXPECT_NE(failed.error.message().find("Remote RPC server crashed"), std::string::npos)
        << failed.error.message();
    EXPECT_NE(failed.error.message().find("the worker " + two.address() + " cannot be reached"),
              std::string::npos)
        << failed.error.message();
    EXPECT_LT(failed.tokens.size(), 100U);
  }
  EXPECT_TRUE(load({one.address()}).ok()) << "its client is gone, so the other worker is free";
}

// Requests of two tokens and more, greedy.
CompletionRequest asked(std::int32_t max_tokens) {
  CompletionRequest request;
  for (const Token token : {20, 30, 40}) request.prompt.emplace_back(token);
  request.sampling.temperature = 0.0f;
  request.max_tokens = max_tokens;
  return request;
}

TEST_F(Workers, OneThatStopsAnsweringHoldsUpNoOtherTargetNorTheEnd) {
  WorkerProcess worker;
  LlamaLoaderOptions how;
  how.probe_budget_ms = 10.0;
  how.cache_folder = dir_.file("cache");
  LlamaLoader loader(how);
  const std::unique_ptr<Runtime> runtime =
      std::move(Runtime::create({.slots = 1, .max_queue = 2}, loader).value());
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, options({worker.address()})).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  ASSERT_TRUE(runtime->status().target.serving) << runtime->status().target.error.message();
  EXPECT_EQ((*runtime->run(asked(4)))->completion.tokens.size(), 4U);
  worker.stop();
  const CompletionId stuck = runtime->start(asked(100))->id;
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, options({})).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ((*runtime->run(asked(8)))->completion.tokens.size(), 8U);
  }
  EXPECT_EQ(runtime->status().running, 1) << "the one that waits for the worker";
  EXPECT_FALSE(runtime->poll(stuck, 0)->finished);
  EXPECT_TRUE(runtime->cancel(stuck).ok());
  std::shared_ptr<const CompletionResult> ended;
  while (!ended) ended = runtime->poll(stuck, 1000)->result;
  EXPECT_NE(ended->completion.finish, FinishReason::kLength);
  EXPECT_EQ((*runtime->run(asked(8)))->completion.tokens.size(), 8U);
}

TEST_F(Workers, OneThatStopsAnsweringEndsItsRequestsAfterItsTime) {
  WorkerProcess worker;
  Result<std::unique_ptr<Target>> far = load({worker.address()});
  ASSERT_TRUE(far.ok()) << far.status().message();
  Engine engine((*far)->model(), (*far)->vocabulary(), {});
  const RequestId id = begin_request(engine, **far);
  worker.stop();
  dynamic_cast<RemoteModel&>((*far)->model()).set_silence_patience(std::chrono::milliseconds(50));
  while (engine.busy()) engine.step();
  const Completion failed = *engine.take(id);
  EXPECT_EQ(failed.finish, FinishReason::kError);
  EXPECT_NE(failed.error.message().find("worker_timeout_s"), std::string::npos)
      << failed.error.message();
  EXPECT_NE(failed.error.message().find("the worker " + worker.address() + " does not answer"),
            std::string::npos)
      << failed.error.message();
  EXPECT_FALSE((*far)->model().health().ok());
}

TEST(WorkerAddress, IsAHostAndAPort) {
  EXPECT_EQ(llama::parse_worker_address("10.0.0.7:50052")->text(), "10.0.0.7:50052");
  EXPECT_EQ(llama::parse_worker_address("box-2.local:1")->host, "box-2.local");
  for (const char* wrong : {"", ":", "host", "host:", ":50052", "host:0", "host:65536", "host:-1",
                            "host:1x", "host:999999999999", "a b:1", "[::1]:5", "http://a:1"}) {
    const Status status = llama::parse_worker_address(wrong).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << wrong;
    EXPECT_NE(status.message().find("'" + std::string(wrong) + "'"), std::string::npos);
  }
  EXPECT_FALSE(llama::parse_worker_addresses({}).ok());
  EXPECT_FALSE(llama::parse_worker_addresses({"a:1", "b:1", "a:1"}).ok());
  EXPECT_FALSE(llama::parse_worker_addresses({"127.0.0.1:1", "localhost:1"}).ok());
  EXPECT_TRUE(llama::parse_worker_addresses({"127.0.0.1:1", "localhost:2"}).ok());
  EXPECT_FALSE(llama::parse_worker_addresses(std::vector<std::string>(17, "a:1")).ok());
  EXPECT_TRUE(llama::is_loopback("127.0.0.1"));
  EXPECT_TRUE(llama::is_loopback("127.9.9.9"));
  EXPECT_TRUE(llama::is_loopback("localhost"));
  for (const char* open : {"0.0.0.0", "10.0.0.1", "128.0.0.1", "127.0.0.1.example.org", ""}) {
    EXPECT_FALSE(llama::is_loopback(open)) << open;
  }
}

TEST_F(Workers, OneThatIsNotThereIsNamedBeforeAnythingIsStarted) {
  const std::string nobody = "127.0.0.1:" + std::to_string(testing::free_port());
  const HostProgram none(dir_.file("missing"));
  const Status status = load({nobody}).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message().find("the worker " + nobody + " cannot be reached: "), 0U)
      << status.message();
  EXPECT_EQ(load({"nowhere"}).status().code(), StatusCode::kInvalidArgument);
}

// Accepts one connection and sends these bytes.
class Stranger {
 public:
  explicit Stranger(std::string answer) : listening_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listening_.get(), 1), 0);
    getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    worker_ = {.host = "127.0.0.1", .port = ntohs(address.sin_port)};
    thread_ = std::thread([this, answer = std::move(answer)] {
      const FileDescriptor client(accept(listening_.get(), nullptr, nullptr));
      std::array<char, 64> hello{};
      static_cast<void>(recv(client.get(), hello.data(), hello.size(), 0));
      static_cast<void>(send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
    });
  }
  ~Stranger() { thread_.join(); }
  const llama::WorkerAddress& worker() const { return worker_; }

 private:
  FileDescriptor listening_;
  llama::WorkerAddress worker_;
  std::thread thread_;
};

// size u64, major, minor, patch, 0, 24 bytes
std::string hello_answer(char size, char major) {
  std::string answer(8 + 28, '\0');
  answer[0] = size;
  answer[8] = major;
  return answer;
}

TEST(WorkerHello, StrangersAndOtherVersionsAreRefused) {
  constexpr int kPatience = 60'000;
  const Stranger web("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n");
  EXPECT_EQ(llama::check_worker(web.worker(), kPatience, nullptr).code(), StatusCode::kNotFound);
  const Stranger mute("");
  EXPECT_EQ(llama::check_worker(mute.worker(), kPatience, nullptr).code(), StatusCode::kNotFound);
  const Stranger old(hello_answer(28, 6));
  const Status status = llama::check_worker(old.worker(), kPatience, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("speaks version 6.0"), std::string::npos) << status.message();
  const Stranger other(hello_answer(29, 7));
  EXPECT_EQ(llama::check_worker(other.worker(), kPatience, nullptr).code(), StatusCode::kNotFound);
}

// ggml's worker has one client at a time, and stays with it until its connection ends.
TEST_F(Workers, AChildThatWasForkedDuringACheckKeepsNoWorkerBusy) {
  const WorkerProcess worker;
  const llama::WorkerAddress address = *llama::parse_worker_address(worker.address());
  std::atomic<bool> stop{false};
  std::vector<pid_t> children;
  std::thread checking([&] {
    while (!stop.load()) EXPECT_TRUE(llama::check_worker(address, 60'000, nullptr).ok());
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    if (child > 0) children.push_back(child);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop.store(true);
  checking.join();
  EXPECT_TRUE(llama::check_worker(address, 60'000, nullptr).ok());
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

// The timer that runs for the connection to this port, at the end that has the port, by its number
// (Linux's proc_net_tcp.txt: 2 is the one that asks for the other end); -1 where none is seen.
int timer_of_connection(std::uint16_t port) {
  std::ifstream table("/proc/net/tcp");
  std::string line;
  while (std::getline(table, line)) {
    unsigned local_port = 0;
    unsigned state = 0;
    unsigned timer = 0;
    constexpr const char* kForm = " %*d: %*8[0-9A-F]:%x %*[0-9A-F:] %x %*[0-9A-F:] %x:";
    const int read = std::sscanf(line.c_str(), kForm, &local_port, &state, &timer);
    constexpr unsigned kEstablished = 1;
    if (read == 3 && local_port == port && state == kEstablished) return static_cast<int>(timer);
  }
  return -1;
}

TEST(WorkerClients, OneWhoseMachineIsGoneIsFoundOutByTheKernel) {
  constexpr int kAsks = 2;
  constexpr int kLooks = 3000;  // of the worker's own question, which comes first
  if (!std::ifstream("/proc/net/tcp")) GTEST_SKIP() << "no /proc/net/tcp";
  const WorkerProcess worker;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::uint16_t port = llama::parse_worker_address(worker.address())->port;
  address.sin_port = htons(port);
  const FileDescriptor client(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  int timer = timer_of_connection(port);
  for (int i = 0; i < kLooks && timer != kAsks; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    timer = timer_of_connection(port);
  }
  EXPECT_EQ(timer, kAsks) << "-1: there is no such connection; 0: it lasts for ever";
}

TEST_F(Workers, OneThatIsBusySaysNothingAndIsGivenUp) {
  const WorkerProcess worker;
  const Result<std::unique_ptr<Target>> first = load({worker.address()});
  ASSERT_TRUE(first.ok()) << first.status().message();
  const llama::WorkerAddress address = *llama::parse_worker_address(worker.address());
  const Status busy = llama::check_worker(address, /*timeout_ms=*/100, nullptr);
  EXPECT_EQ(busy.code(), StatusCode::kNotFound);
  EXPECT_NE(busy.message().find("one client at a time"), std::string::npos) << busy.message();
  const std::atomic<bool> cancel{true};
  EXPECT_EQ(llama::check_worker(address, 60'000, &cancel).code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace outrider
