// --isolate with real processes: the same bits as in this process, and every death of the other one
// is an error that says what happened.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend/llama_loader.h"
#include "engine/engine.h"
#include "remote/remote_model.h"
#include "testing/gguf_damage.h"
#include "testing/model_twins.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "tests/build_paths.h"
#include "tests/worker_process.h"

namespace outrider {
namespace {

using testing::HostProgram;
using testing::TinyArchitecture;

class IsolatedTarget : public ::testing::Test {
 protected:
  std::string write(TinyArchitecture architecture) {
    testing::TinyModelOptions tiny;
    tiny.architecture = architecture;
    const std::string path = dir_.file(testing::tiny_architecture_name(architecture));
    const Status written = testing::write_tiny_gguf(path, tiny);
    EXPECT_TRUE(written.ok()) << written.message();
    return path;
  }

  ModelOptions options(const std::string& path, bool isolate = true) const {
    ModelOptions options;
    options.path = path;
    options.n_ctx = 256;
    options.n_sequences = 3;
    options.n_batch = 64;
    options.n_threads = 1;
    options.n_gpu_layers = 0;
    options.widest = 8;
    options.isolate = isolate;
    return options;
  }

  Result<std::unique_ptr<Target>> load(const ModelOptions& options) {
    LoadHooks hooks;
    hooks.log = [this](LogLevel level, std::string_view line) {
      if (level >= LogLevel::kWarning) warnings_ += std::string(line) + "\n";
    };
    return load(options, hooks);
  }

  Result<std::unique_ptr<Target>> load(const ModelOptions& options, const LoadHooks& hooks) {
    LlamaLoaderOptions how;
    how.probe_budget_ms = 120000;  // a verdict never depends on how busy the machine is
    how.cache_folder = dir_.file("cache");
    return LlamaLoader(how).load_target(options, hooks);
  }

  std::unique_ptr<Target> open(const ModelOptions& options) {
    Result<std::unique_ptr<Target>> target = load(options);
    EXPECT_TRUE(target.ok()) << target.status().message();
    return target.ok() ? std::move(*target) : nullptr;
  }

  // Such as a child that ends badly after a goodbye (a sanitizer's report, ...).
  void TearDown() override {
    EXPECT_EQ(warnings_.find("its process"), std::string::npos) << warnings_;
  }

  static pid_t process_of(Target& target) {
    return dynamic_cast<RemoteModel&>(target.model()).process_id();
  }

  // A program that is used as the host: shell commands, with $REAL for the real one.
  std::string script(const std::string& commands) {
    const std::string path = dir_.file("host.sh");
    std::ofstream(path) << "#!/bin/sh\nREAL='" << testing::outrider_binary() << "'\n"
                        << commands << "\n";
    chmod(path.c_str(), 0700);
    return path;
  }

  // Of a child that is stopped: something lies in its socket that it has not read.
  static void wait_until_a_call_is_under_way() {
    const auto is_sent = [](int file) {
      int unread = 0;
      return ioctl(file, SIOCOUTQ, &unread) == 0 && unread > 0;
    };
    while (true) {
      for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        if (is_sent(std::atoi(entry.path().filename().c_str()))) return;
      }
      std::this_thread::yield();
    }
  }

  static Status step(LanguageModel& model) {
    const TokenTree root(20);
    const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
    OUTRIDER_RETURN_IF_ERROR(model.evaluate({&item, 1}));
    const std::vector<NodeId> path{0};
    return model.commit(0, path);
  }

  testing::TempDir dir_;
  HostProgram host_;
  std::string warnings_;
};

TEST_F(IsolatedTarget, IsTheSameModelCallForCall) {
  for (const TinyArchitecture architecture :
       {TinyArchitecture::kLlama, TinyArchitecture::kShortConv, TinyArchitecture::kMamba}) {
    const std::string path = write(architecture);
    const std::unique_ptr<Target> near = open(options(path, /*isolate=*/false));
    const std::unique_ptr<Target> far = open(options(path));
    ASSERT_TRUE(near && far);
    EXPECT_EQ(far->exactness().verdict(), near->exactness().verdict());
    EXPECT_EQ(far->notes(), near->notes());
    EXPECT_EQ(far->info().description, near->info().description);
    EXPECT_EQ(far->info().n_params, near->info().n_params);
    EXPECT_EQ(far->capabilities().rollback, near->capabilities().rollback);
    EXPECT_EQ(*far->vocabulary().tokenize("the cat", true, true),
              *near->vocabulary().tokenize("the cat", true, true));
    EXPECT_TRUE(far->make_sampler({}).ok());
    testing::ModelTwins twins(far->model(), near->model());
    twins.act(400);
    EXPECT_GT(twins.n_rows(), 100) << path;
  }
}

TEST_F(IsolatedTarget, LeavesNoProcessBehind) {
  std::unique_ptr<Target> target = open(options(write(TinyArchitecture::kLlama)));
  ASSERT_NE(target, nullptr);
  const pid_t pid = process_of(*target);
  ASSERT_GT(pid, 0);
  EXPECT_EQ(kill(pid, 0), 0);
  target.reset();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(IsolatedTarget, LeavesSignalsForAGroupToItsParent) {
  const std::unique_ptr<Target> target = open(options(write(TinyArchitecture::kLlama)));
  ASSERT_NE(target, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) kill(process_of(*target), number);
  EXPECT_TRUE(step(target->model()).ok());
}

// As one that waits for a worker whose machine has lost its power.
TEST_F(IsolatedTarget, AChildThatDoesNotStopWhenItIsToldToIsKilled) {
  const std::unique_ptr<Target> target = open(options(write(TinyArchitecture::kLlama)));
  ASSERT_NE(target, nullptr);
  RemoteModel& model = dynamic_cast<RemoteModel&>(target->model());
  model.set_stop_patience(std::chrono::milliseconds(30));
  std::atomic<bool> flag{false};
  model.set_interrupt(&flag);
  ASSERT_TRUE(step(model).ok());
  kill(model.process_id(), SIGSTOP);
  std::thread impatient([&] {
    wait_until_a_call_is_under_way();
    flag.store(true);
  });
  const Status status = step(model);
  impatient.join();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("it did not stop when it was told to"), std::string::npos)
      << status.message();
  EXPECT_EQ(model.length(0), 0);
}

TEST_F(IsolatedTarget, KilledBetweenCallsItsRequestsFailAndItCanBeLoadedAgain) {
  const std::string path = write(TinyArchitecture::kLlama);
  std::unique_ptr<Target> target = open(options(path));
  ASSERT_NE(target, nullptr);
  const auto add = [&](Engine& engine) {
    Request request;
    request.prompt = {20, 30, 40};
    request.sampler = *target->make_sampler({.temperature = 0.0f});
    request.max_tokens = 8;
    return engine.add(std::move(request));
  };
  const auto run = [&]() -> Completion {
    Engine engine(target->model(), target->vocabulary(), {});
    const Result<RequestId> id = add(engine);
    EXPECT_TRUE(id.ok());
    while (engine.busy()) engine.step();
    return *engine.take(*id);
  };
  const std::vector<Token> whole = run().tokens;
  EXPECT_EQ(whole.size(), 8U);
  {
    Engine engine(target->model(), target->vocabulary(), {});
    const RequestId id = *add(engine);
    engine.step();
    engine.step();
    kill(process_of(*target), SIGKILL);
    while (engine.busy()) engine.step();
    const Completion failed = *engine.take(id);
    EXPECT_EQ(failed.finish, FinishReason::kError);
    EXPECT_EQ(failed.error.code(), StatusCode::kInternal);
    EXPECT_EQ(failed.error.message().find("'" + path +
                                          "' ran in a process of its own, which was "
                                          "killed by signal 9 ("),
              0U)
        << failed.error.message();
    const RequestId late = *add(engine);
    while (engine.busy()) engine.step();
    EXPECT_EQ(engine.take(late)->error.message(), failed.error.message());
  }
  target = open(options(path));
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(run().tokens, whole);
}

TEST_F(IsolatedTarget, KilledInTheMiddleOfACallThatCallFailsAndDoesNotHang) {
  const std::unique_ptr<Target> target = open(options(write(TinyArchitecture::kLlama)));
  ASSERT_NE(target, nullptr);
  ASSERT_TRUE(step(target->model()).ok());
  const pid_t pid = process_of(*target);
  kill(pid, SIGSTOP);  // so that the call is under way for as long as we like
  std::thread killer([pid] {
    wait_until_a_call_is_under_way();
    kill(pid, SIGKILL);
  });
  const Status status = step(target->model());
  killer.join();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("killed by signal 9"), std::string::npos) << status.message();
  EXPECT_EQ(target->model().length(0), 0);
  EXPECT_EQ(target->model().truncate(0, 0).message(), status.message());
}

TEST_F(IsolatedTarget, KilledWhileItLoadsTheLoadingFails) {
  const std::string path = write(TinyArchitecture::kLlama);
  const std::string noted = dir_.file("pid");
  const HostProgram program(script("echo $$ > '" + noted + "'; exec \"$REAL\" \"$@\""));
  ASSERT_TRUE(load(options(path)).ok()) << "the control";
  LoadHooks hooks;
  hooks.progress = [&](double) {
    pid_t pid = 0;
    std::ifstream(noted) >> pid;
    kill(pid, SIGKILL);
  };
  const Status status = load(options(path), hooks).status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("killed by signal 9"), std::string::npos) << status.message();
}

TEST_F(IsolatedTarget, AnAbortIsToldWithItsLastWords) {
  const HostProgram program(
      script("echo 'x.cpp:12: GGML_ASSERT(n_embd > 0) failed' >&2; kill -ABRT $$"));
  const Status status = load(options(write(TinyArchitecture::kLlama))).status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("killed by signal 6"), std::string::npos) << status.message();
  EXPECT_TRUE(status.message().ends_with(": x.cpp:12: GGML_ASSERT(n_embd > 0) failed"))
      << status.message();
}

TEST_F(IsolatedTarget, AProgramThatIsNotTheHostIsAnError) {
  const std::string path = write(TinyArchitecture::kLlama);
  for (const char* commands : {"exit 0", "exit 7", "echo 'what is this?' >&3; exec sleep 100"}) {
    const HostProgram program(script(commands));
    const Status status = load(options(path)).status();
    EXPECT_EQ(status.code(), StatusCode::kInternal) << commands;
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
  }
  const HostProgram none(dir_.file("missing"));
  EXPECT_EQ(load(options(path)).status().code(), StatusCode::kNotFound);
}

TEST_F(IsolatedTarget, ARaisedFlagEndsTheLoading) {
  std::atomic<bool> cancel{false};
  LoadHooks hooks;
  hooks.cancel = &cancel;
  hooks.progress = [&](double) { cancel.store(true); };
  EXPECT_EQ(load(options(write(TinyArchitecture::kLlama)), hooks).status().code(),
            StatusCode::kCancelled);
}

TEST_F(IsolatedTarget, BadFilesAndBadOptionsAreErrorsThatNameTheFile) {
  const std::string good = write(TinyArchitecture::kLlama);
  std::vector<testing::BadModelFile> files = *testing::write_bad_model_files(good, dir_.path());
  const std::vector<testing::BadModelFile> worse =
      *testing::write_models_that_abort(good, dir_.path());
  files.insert(files.end(), worse.begin(), worse.end());
  for (const testing::BadModelFile& bad : files) {
    const Status status = load(options(bad.path)).status();
    EXPECT_FALSE(status.ok()) << bad.what;
    EXPECT_NE(status.message().find(bad.path), std::string::npos) << status.message();
  }
  ModelOptions too_many = options(good);
  too_many.n_sequences = 65;
  EXPECT_EQ(load(too_many).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrider
