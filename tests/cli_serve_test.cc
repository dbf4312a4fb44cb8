// outrider serve as a process: how it ends. (What it answers is tested in src/http, and with real
// clients in tests/clients.)
#include <signal.h>

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

// Serves, gets `signal` as soon as stderr holds `text`, and ends.
CliResult served_until(const std::string& text, int signal) {
  const CliModels& models = cli_models();
  CliCall call = models.folder.call(
      {"serve", "-m", models.target, "-d", models.draft, "-c", "2048", "--port", "0"});
  bool sent = false;
  call.on_output = [&](pid_t child, const std::string&, const std::string& err) {
    if (!sent && err.find(text) != std::string::npos) {
      sent = true;
      kill(child, signal);
    }
    return true;
  };
  CliResult result = run_cli(call);
  EXPECT_TRUE(sent) << result.err;
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

}  // namespace
}  // namespace outrider::testing
