#include "tools/terminal.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider::tools {
namespace {

const std::string kTitle = "loading Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf";

TEST(ProgressLine, FitsTheTerminalsWidthWhateverThatIs) {
  const std::string whole = kTitle + " [" + std::string(15, '#') + std::string(15, ' ') + "] 50 %";
  EXPECT_EQ(progress_line(kTitle, 0.5, 0), whole) << "the width is unknown";
  EXPECT_EQ(progress_line(kTitle, 0.5, 200), whole);
  for (std::size_t columns = 8; columns <= whole.size() + 2; ++columns) {
    const std::string line = progress_line(kTitle, 0.5, columns);
    EXPECT_LT(line.size(), columns);
    EXPECT_TRUE(line.ends_with(" 50 %")) << line;
    EXPECT_EQ(line.find('[') != std::string::npos, columns >= 12 + 39) << line;
  }
}

TEST(ProgressLine, IsCutBetweenCharacters) {
  const std::string title = "\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4";
  EXPECT_EQ(progress_line(title, 0.0, 10), "\xC3\xA4\xC3\xA4 0 %");
}

TEST(ProgressLine, ATitleHoldsNoEscapeSequences) {
  EXPECT_TRUE(progress_line("a\033]0;x\ab\xC2\x9B", 0.0, 0).starts_with("a ]0;x b  ["));
}

}  // namespace
}  // namespace outrider::tools
