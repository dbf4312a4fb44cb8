// outrider serve as a process: how it ends. (What it answers is tested in src/http, and with real
// clients in tests/clients.)
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/socket_client.h"
#include "testing/tiny_gguf.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

CliCall serve_call(const std::vector<std::string>& more = {}) {
  const CliModels& models = cli_models();
  std::vector<std::string> arguments = {"serve", "-m",   models.target, "-d", models.draft,
                                        "-c",    "2048", "--port",      "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return models.folder.call(arguments);
}

// Serves, gets `signal` as soon as stderr holds `text`, and ends. Prints how long that took; no
// test asserts a time, run_cli gives up after five minutes.
CliResult served_until(const std::string& text, int signal, CliCall call = serve_call()) {
  bool sent = false;
  std::chrono::steady_clock::time_point then;
  call.on_output = [&](pid_t child, const std::string&, const std::string& err) {
    if (!sent && err.find(text) != std::string::npos) {
      sent = true;
      then = std::chrono::steady_clock::now();
      kill(child, signal);
    }
    return true;
  };
  CliResult result = run_cli(call);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - then;
  EXPECT_TRUE(sent) << result.err;
  std::printf("%s at '%s': ended after %.0f ms\n", strsignal(signal), text.c_str(), took.count());
  return result;
}

TEST(CliServe, AFirstSignalEndsItInOrderWhileTheModelIsLoadedAndBehindThat) {
  for (const int signal : {SIGTERM, SIGINT}) {
    for (const char* text : {"listening on", "ready"}) {
      SCOPED_TRACE(std::string(strsignal(signal)) + " at '" + text + "'");
      const CliResult result = served_until(text, signal);
      EXPECT_EQ(result.signal, 0) << result.err;
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.out, "");
    }
  }
}

// The port of a server that says where it listens.
std::uint16_t port_of(const std::string& err) {
  const std::string before = "listening on http://127.0.0.1:";
  return static_cast<std::uint16_t>(std::atoi(err.c_str() + err.find(before) + before.size()));
}

// One client asks for a text without end and reads nothing of it; another one asks for the same and
// reads all. Probabilities of other tokens beside each make more of a few hundred tokens than the
// system keeps for who does not read.
TEST(CliServe, ASignalEndsItInOrderAlsoBesideAClientThatReadsNothing) {
  constexpr std::int64_t kLongMs = 60'000;  // for what comes, however slow the machine is
  const std::string asked = SocketClient::request(
      "POST", "/v1/completions",
      R"({"prompt":"Once upon a time","max_tokens":-1,"shift_keep":0,"temperature":0,)"
      R"("logprobs":5,"stream":true})");
  CliCall call = serve_call({"--drain", "1", "--write-timeout", "600"});
  std::optional<SocketClient> deaf;
  std::string answer;
  std::chrono::steady_clock::time_point then;
  call.on_output = [&](pid_t child, const std::string&, const std::string& err) {
    if (deaf || err.find("ready") == std::string::npos) return true;
    deaf.emplace(port_of(err), /*receive_bytes=*/4096);
    deaf->send(asked);
    EXPECT_NE(deaf->read(kLongMs, 1), "");
    SocketClient reader(port_of(err));
    reader.send(asked);
    // The steps are the same for both: so it is about as much that the other one has not read.
    answer = reader.read(kLongMs, 1 << 20);
    then = std::chrono::steady_clock::now();
    kill(child, SIGTERM);
    answer += reader.read(kLongMs);
    EXPECT_TRUE(reader.closed());
    return true;
  };
  const CliResult result = run_cli(call);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - then;
  std::printf(
      "SIGTERM beside a client that reads nothing: ended after %.1f s, of them 1 to drain\n",
      took.count());
  EXPECT_EQ(result.signal, 0) << result.err;
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_NE(answer.find(R"("finish_reason":"length")"), std::string::npos) << "with what it has";
  EXPECT_NE(answer.find("data: [DONE]"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n0\r\n\r\n"));
  ASSERT_TRUE(deaf) << result.err;
  const std::string unread = deaf->read(kLongMs);
  EXPECT_TRUE(deaf->closed());
  EXPECT_EQ(unread.find("data: [DONE]"), std::string::npos) << "it was more than the system keeps";
}

std::ptrdiff_t lines_of(const std::string& path) {
  const std::string text = read_file(path);
  return std::count(text.begin(), text.end(), '\n');
}

TEST(CliServe, AfterSighupTheLogGoesOnInANewFileAndNoLineIsLost) {
  const CliFolder folder;
  const std::string log = folder.path("access.log");
  CliCall call = serve_call({"--access-log", log});
  int asked = 0;
  call.on_output = [&](pid_t child, const std::string&, const std::string& err) {
    if (asked > 0 || err.find("ready") == std::string::npos) return true;
    const auto ask = [&] {
      ++asked;
      EXPECT_EQ(SocketClient(port_of(err)).ask("GET", "/health").status, 200);
    };
    ask();
    // As logrotate does. The signal is taken by a thread of its own, so some lines more may still
    // go to the old file.
    EXPECT_EQ(std::rename(log.c_str(), (log + ".1").c_str()), 0);
    kill(child, SIGHUP);
    while (lines_of(log) == 0 && asked < 100'000) ask();
    kill(child, SIGTERM);
    return true;
  };
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(lines_of(log), 1) << result.err;
  EXPECT_GE(lines_of(log + ".1"), 1);
  EXPECT_EQ(lines_of(log) + lines_of(log + ".1"), asked);
}

// The first call waits for the model, so the second comes as soon as that is there: between two
// looks of the command's, but for one time in some hundred, when this shows nothing.
TEST(CliServe, IsReadyAlsoWhenAClientUnloadsTheModelAsSoonAsItIsOpen) {
  CliCall call = serve_call({"--allow-files"});
  bool unloaded = false;
  bool ready = false;
  call.on_output = [&](pid_t child, const std::string&, const std::string& err) {
    if (!unloaded && err.find("listening on") != std::string::npos) {
      unloaded = true;
      const RawReply reply =
          SocketClient(port_of(err))
              .ask(
                  "POST", "/rpc",
                  R"([{"jsonrpc":"2.0","id":1,"method":"tokenize","params":{"text":"a"}},)"
                  R"({"jsonrpc":"2.0","id":2,"method":"model.unload","params":{"role":"target"}}])");
      EXPECT_EQ(reply.body.find("error"), std::string::npos) << reply.body;
    }
    if (ready || err.find("ready") == std::string::npos) return true;
    ready = true;
    kill(child, SIGTERM);
    return true;
  };
  const CliResult result = run_cli(call);
  EXPECT_TRUE(unloaded);
  EXPECT_TRUE(ready) << result.err;
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(CliServe, ADraftOrAFileOfTheDefaultModelThatCannotBeUsedIsAnError) {
  const CliModels& models = cli_models();
  const CliFolder folder;
  const std::string cut = folder.write("cut.gguf", read_file(models.draft).substr(0, 5000));
  const std::string no_store = folder.write("no.store", "something else");
  const std::vector<std::vector<std::string>> wrong = {
      {"-d", "/no/draft.gguf"},          {"-d", cut},
      {"--suffix-store", "/no/s.store"}, {"--suffix-store", no_store},
      {"--ngram-static", "/no/n.store"}, {"--ngram-dynamic", "/no/n.store"}};
  for (const std::vector<std::string>& more : wrong) {
    std::vector<std::string> arguments = {"serve",  "-m", models.target, "-c", "2048",
                                          "--port", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CliCall call = models.folder.call(arguments);
    bool ready = false;
    call.on_output = [&ready](pid_t child, const std::string&, const std::string& err) {
      if (!ready && err.find(": ready") != std::string::npos) {
        ready = true;
        kill(child, SIGTERM);
      }
      return true;
    };
    const CliResult result = run_cli(call);
    EXPECT_FALSE(ready) << more[1];
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find(more[1]), std::string::npos) << result.err;
  }
}

TEST(CliServe, WhatATargetSaysOfItselfIsPrinted) {
  const CliFolder folder;
  const CliResult result = served_until(
      "ready", SIGTERM, serve_call({"--isolate", "--prompt-cache", folder.path("prompts")}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("--prompt-cache has no effect on this target"), std::string::npos)
      << result.err;
}

TEST(CliServe, ADraftThatLiesBesideTheTargetIsOfferedOnceOnATerminalToo) {
  const CliFolder folder;
  TinyModelOptions options;
  options.n_ff = 1024;
  options.n_layer = 1;
  ASSERT_TRUE(write_tiny_gguf(folder.path("small.gguf"), options).ok());
  options.n_layer = 6;
  ASSERT_TRUE(write_tiny_gguf(folder.path("large.gguf"), options).ok());
  CliCall call =
      folder.call({"serve", "-m", folder.path("large.gguf"), "-c", "512", "--port", "0"});
  call.terminal = true;
  bool sent = false;
  call.on_output = [&sent](pid_t child, const std::string& out, const std::string&) {
    if (!sent && out.find("ready") != std::string::npos) {
      sent = true;
      kill(child, SIGTERM);
    }
    return true;
  };
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0) << result.out;
  const std::string offer = "could guess ahead for it";
  const std::size_t first = result.out.find(offer);
  ASSERT_NE(first, std::string::npos) << result.out;
  EXPECT_EQ(result.out.find(offer, first + 1), std::string::npos) << result.out;
}

TEST(CliServe, ModelsOfAConfigFileThatIsAPipeAreServed) {
  const CliModels& models = cli_models();
  CliCall call = models.folder.call({"serve", "--config", "/dev/stdin", "--port", "0"});
  call.input = "ctx = 2048\n[models.one]\nmodel = \"" + models.target + "\"\n";
  const CliResult result = served_until("ready", SIGTERM, call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(CliServe, ThePortOfAServiceOfKubernetesIsNoPort) {
  const CliModels& models = cli_models();
  CliCall call = models.folder.call({"serve", "-m", models.target, "--config", "/dev/stdin"});
  call.input = "ctx = 2048\nport = 0\n";
  call.environment["OUTRIDER_PORT"] = "tcp://10.0.0.1:80";
  const CliResult result = served_until("ready", SIGTERM, call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("OUTRIDER_PORT is that of a service"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(":8080"), std::string::npos) << result.err;
}

TEST(CliServe, WarnsOfAProxyWithoutAKey) {
  const auto warning_of = [](const std::vector<std::string>& more) {
    const CliResult result = served_until("listening on", SIGTERM, serve_call(more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err.find("there is no key") != std::string::npos;
  };
  EXPECT_TRUE(warning_of({"--allowed-host", "chat.example"}));
  EXPECT_FALSE(warning_of({"--allowed-host", "chat.example", "--api-key", "k"}));
}

TEST(CliServe, WithoutALogSighupEndsItInOrderAsSigtermDoes) {
  const CliResult result = served_until("ready", SIGHUP);
  EXPECT_EQ(result.signal, 0) << result.err;
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace outrider::testing
