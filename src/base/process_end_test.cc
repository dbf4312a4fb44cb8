#include "base/process_end.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

namespace outrider {
namespace {

bool gone = false;

struct Late {
  ~Late() { gone = true; }
};

void make_static() { static const Late late; }

// _Exit() shows in the exit's status what was so when the handler ran.
void handler() { std::_Exit(gone ? 3 : 7); }

TEST(AtProcessEnd, OnTheMainThreadItRunsBeforeWhatWasMadeLater) {
  EXPECT_EXIT(
      {
        at_process_end(handler);
        make_static();
        std::atexit([] { gone = true; });
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
}

TEST(AtProcessEnd, AskedForOnAnyThreadItRunsBeforeWhatWasMadeEarlier) {
  EXPECT_EXIT(
      {
        std::thread([] {
          make_static();
          at_process_end(handler);
        }).join();
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
}

TEST(AtProcessEnd, AForkedChildEndsWithoutIt) {
  EXPECT_EXIT(
      {
        at_process_end(handler);
        const pid_t child = fork();
        if (child == 0) std::exit(0);
        int status = 0;
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 0) std::_Exit(4);
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
}

TEST(AtProcessEnd, TheMainThreadsPlaceIsHadWhoeverAskedFirst) {
  EXPECT_EXIT(
      {
        std::thread([] { at_process_end(handler); }).join();
        at_process_end(handler);
        make_static();
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
}

int calls = 0;

TEST(AtProcessEnd, AHandlerMayBeAskedForAgainAndAtTheEnd) {
  EXPECT_EXIT(
      {
        const auto count = [] {
          if (++calls >= 4) std::_Exit(7);
          at_process_end([] { ++calls; });
        };
        at_process_end(count);  // once as the main thread's, then as often as it was asked for
        at_process_end(count);
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace outrider
