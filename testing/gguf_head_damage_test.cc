#include "testing/gguf_head_damage.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "testing/llama_heads.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_vocabulary.h"

namespace outrider::testing {
namespace {

constexpr int kRan = 3;
constexpr int kWasRefused = 4;

// What becomes of a process that loads the head and decodes a few tokens.
int use(const BadHead& head) {
  LlamaHeadsOptions options;
  options.kind = head.kind;
  options.target_path = head.target_path;
  options.head_path = head.head_path;
  options.n_ctx = 64;
  Result<LlamaHeads> heads = LlamaHeads::load(options);
  if (!heads.ok()) return kWasRefused;
  return heads->run({kTinyBos, 90, 91, 92, 80}, 10).ok() ? kRan : kWasRefused;
}

BadHeadEffect effect_in_a_process(const BadHead& head) {
  const pid_t child = fork();
  EXPECT_GE(child, 0);
  if (child == 0) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    setenv("GGML_NO_BACKTRACE", "1", 1);  // it would start a debugger
    std::signal(SIGABRT, SIG_DFL);
    (void)!std::freopen("/dev/null", "w", stderr);
    _exit(use(head));
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGABRT) << head.what;
    return BadHeadEffect::kAborts;
  }
  // Another code is a sanitizer's, which saw what went on silently.
  return WEXITSTATUS(status) == kWasRefused ? BadHeadEffect::kRefused : BadHeadEffect::kSilent;
}

TEST(GgufHeadDamage, LlamaCppDoesWithEachHeadWhatIsSaidOfIt) {
  const TempDir dir;
  const Result<std::vector<BadHead>> heads = write_bad_heads(dir.path());
  ASSERT_TRUE(heads.ok()) << heads.status().message();
  for (const BadHead& head : *heads) {
    EXPECT_EQ(static_cast<int>(effect_in_a_process(head)), static_cast<int>(head.effect))
        << head.what;
  }
}

}  // namespace
}  // namespace outrider::testing
