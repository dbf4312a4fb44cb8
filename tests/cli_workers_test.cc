// `outrider worker`, and --workers and --isolate on the command line.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/fnv.h"
#include "tests/cli_process.h"
#include "tests/worker_process.h"

namespace outrider::testing {
namespace {

CliCall call(std::vector<std::string> arguments) {
  return cli_models().folder.call(std::move(arguments));
}

std::vector<std::string> run_arguments(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run",
                                        "-m",
                                        cli_models().target,
                                        "-d",
                                        cli_models().draft,
                                        "-c",
                                        "512",
                                        "-p",
                                        "The",
                                        "-n",
                                        "24",
                                        "--seed",
                                        "5",
                                        "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(CliWorker, SaysWhereItListensAndEndsWhenToldTo) {
  const std::string port = std::to_string(free_port());
  for (const int number : {SIGTERM, SIGINT}) {
    CliCall worker = call({"worker", "--port", port});
    worker.on_output = [number](pid_t child, const std::string& out, const std::string&) {
      if (out.find('\n') != std::string::npos) kill(child, number);
      return true;
    };
    const CliResult result = run_cli(worker);
    EXPECT_EQ(result.out, "listening on 127.0.0.1:" + port + "\n");
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

// OUTRIDER_CACHE, the folder of the measurements, was that of the tensors, too.
TEST(CliWorker, KeepsTensorsOnlyInTheFolderThatItsOwnOptionNames) {
  const CliFolder folder;
  CliCall worker = call({"worker", "--port", std::to_string(free_port())});
  worker.environment["OUTRIDER_CACHE"] = folder.path("measured");
  worker.on_output = [](pid_t child, const std::string& out, const std::string&) {
    if (out.find('\n') != std::string::npos) kill(child, SIGTERM);
    return true;
  };
  EXPECT_EQ(run_cli(worker).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path("measured")));
  worker.arguments.insert(worker.arguments.end(), {"--tensor-cache", folder.path("tensors")});
  EXPECT_EQ(run_cli(worker).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_directory(folder.path("tensors")));
}

TEST(CliWorker, AtItsStartTheTensorsThatWereWrittenLongestAgoLeaveAFolderBeyondItsLimit) {
  const CliFolder folder;
  std::filesystem::create_directory(folder.path("tensors"));
  const std::string bytes(1 << 20, 'x');
  Fnv1a hash;
  hash.add(bytes);
  char name[17];
  std::snprintf(name, sizeof name, "%016" PRIx64, hash.value());
  const std::filesystem::path old_tensor = folder.path("tensors") + "/" + name;
  const std::filesystem::path new_tensor = folder.path("tensors/af63dc4c8601ec8c");
  std::ofstream(old_tensor) << bytes;
  std::ofstream(new_tensor) << "a";
  std::filesystem::last_write_time(
      old_tensor, std::filesystem::last_write_time(new_tensor) - std::chrono::hours(1));
  for (const char* const limit : {"2", "1"}) {
    CliCall worker = call({"worker", "--port", std::to_string(free_port()), "--tensor-cache",
                           folder.path("tensors"), "--tensor-cache-mib", limit});
    worker.on_output = [](pid_t child, const std::string& out, const std::string&) {
      if (out.find('\n') != std::string::npos) kill(child, SIGTERM);
      return true;
    };
    EXPECT_EQ(run_cli(worker).exit_code, 0);
    EXPECT_EQ(std::filesystem::exists(old_tensor), std::string(limit) == "2");
    EXPECT_TRUE(std::filesystem::exists(new_tensor));
  }
  const CliResult nowhere = run_cli(call({"worker", "--tensor-cache-mib", "1"}));
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_NE(nowhere.err.find("--tensor-cache FOLDER"), std::string::npos) << nowhere.err;
}

TEST(CliWorker, RefusesWhatOthersReachUnlessForced) {
  const CliResult open = run_cli(call({"worker", "--host", "0.0.0.0"}));
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_NE(open.err.find("no protection"), std::string::npos) << open.err;
  EXPECT_NE(open.err.find("--force"), std::string::npos) << open.err;
  const std::string port = std::to_string(free_port());
  CliCall forced = call({"worker", "--host", "0.0.0.0", "--port", port, "--force"});
  forced.on_output = [](pid_t child, const std::string& out, const std::string&) {
    if (out.find('\n') != std::string::npos) kill(child, SIGTERM);
    return true;
  };
  const CliResult result = run_cli(forced);
  EXPECT_EQ(result.out, "listening on 0.0.0.0:" + port + "\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(CliWorker, AnAddressThatCannotBeListenedOnIsNamed) {
  const WorkerProcess other;
  const std::string port = other.address().substr(other.address().find(':') + 1);
  const CliResult taken = run_cli(call({"worker", "--port", port}));
  EXPECT_EQ(taken.exit_code, 1);
  EXPECT_NE(taken.err.find("cannot listen on 127.0.0.1:" + port), std::string::npos) << taken.err;
  const CliResult name = run_cli(call({"worker", "--host", "here", "--force"}));
  EXPECT_EQ(name.exit_code, 1);
  EXPECT_NE(name.err.find("--host is 'here'"), std::string::npos) << name.err;
  EXPECT_EQ(run_cli(call({"worker", "--port", "0"})).exit_code, 2);
}

TEST(CliWorkers, MustBeAddresses) {
  const CliResult wrong = run_cli(call(run_arguments({"--workers", "127.0.0.1:50052,here"})));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("--workers: the worker 'here' must be HOST:PORT"), std::string::npos)
      << wrong.err;
  const std::string nobody = "127.0.0.1:" + std::to_string(free_port());
  const CliResult absent = run_cli(call(run_arguments({"--workers", nobody})));
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_NE(absent.err.find("the worker " + nobody + " cannot be reached"), std::string::npos)
      << absent.err;
}

TEST(CliIsolate, TheTextIsTheSameInAProcessOfItsOwnAndOnWorkers) {
  const WorkerProcess one;
  const WorkerProcess two;
  const json::Json here = run_cli(call(run_arguments({}))).object();
  CliCall by_environment = call(run_arguments({}));
  by_environment.environment["OUTRIDER_ISOLATE"] = "true";
  const json::Json isolated = run_cli(by_environment).object();
  // Workers keep a cache in Q8_0, and multiply with the same kernels.
  const json::Json alike =
      run_cli(call(run_arguments({"--cache-type-k", "q8_0", "--cache-type-v", "q8_0"}))).object();
  const json::Json spread =
      run_cli(call(run_arguments({"--workers", one.address() + "," + two.address()}))).object();
  EXPECT_EQ(here["tokens"].size(), 24U);
  EXPECT_EQ(isolated["tokens"], here["tokens"]);
  EXPECT_EQ(isolated["kernels"], here["kernels"]);
  EXPECT_EQ(spread["tokens"], alike["tokens"]);
  EXPECT_EQ(spread["kernels_reason"],
            "the layers are on the workers, which choose their own kernels");
  EXPECT_GT(isolated["speculation"]["accepted"], 0);
}

TEST(CliIsolate, IsNotAmongTheCommandsForPeople) {
  const CliResult help = run_cli(call({"--help"}));
  EXPECT_NE(help.out.find("worker"), std::string::npos);
  EXPECT_EQ(help.out.find("model-host"), std::string::npos);
  const CliResult by_hand = run_cli(call({"model-host", "70", "71"}));
  EXPECT_EQ(by_hand.exit_code, 2);
  EXPECT_NE(by_hand.err.find("descriptor 70 is not open"), std::string::npos) << by_hand.err;
}

// The process that runs the model of `parent`, by Linux's list of children; 0: there is none (any
// more).
pid_t child_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::ifstream list("/proc/" + id + "/task/" + id + "/children");
  pid_t child = 0;
  list >> child;
  return child;
}

// Waits until a process that is no child of ours has ended; false when that takes a minute.
bool ends(pid_t pid) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return errno == ESRCH;  // it has
  pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
  int found = 0;
  do {
    found = poll(&ended, 1, 60'000);
  } while (found < 0 && errno == EINTR);
  close(process);
  return found == 1;
}

TEST(CliIsolate, TheModelsProcessEndsWithItsParentHoweverThatEnds) {
  std::vector<std::string> arguments = {
      "run", "-m", cli_models().target, "-c",       "8192", "-p", "The",
      "-n",  "-1", "--ignore-eos",      "--isolate"};
  pid_t model = 0;
  CliCall run = call(arguments);
  run.on_output = [&](pid_t child, const std::string& out, const std::string&) {
    if (out.empty() || model != 0) return true;
    model = child_of(child);
    kill(child, SIGKILL);
    return true;
  };
  const CliResult result = run_cli(run);
  EXPECT_EQ(result.signal, SIGKILL);
  if (model == 0) GTEST_SKIP() << "this system does not list children";
  EXPECT_TRUE(ends(model));
}

}  // namespace
}  // namespace outrider::testing
