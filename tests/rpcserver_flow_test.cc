// The seed's flow in C (tests/rpcserver_flow.c) as a process of its own, on tiny models.
#include <gtest/gtest.h>

#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

TEST(RpcserverFlowTest, AnAppOfTheSeedsApiRunsUnchangedAndGetsTheSameTextFaster) {
  const CliModels& models = cli_models();
  CliCall call = models.folder.call({models.target, models.draft});
  call.program = OUTRIDER_RPCSERVER_FLOW;
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.out, "") << "nothing on the standard output";
  EXPECT_EQ(result.err, "") << "nor on the standard error";
}

// Control: the program does notice when something is not as it should be.
TEST(RpcserverFlowTest, TheFlowFailsWithADraftOfAnotherVocabulary) {
  const CliModels& models = cli_models();
  CliCall call = models.folder.call({models.target, models.other});
  call.program = OUTRIDER_RPCSERVER_FLOW;
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("not so: \"draft\":{\"state\":\"ready\""), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace outrider::testing
