#include "run/stats_table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace outrider {
namespace {

Completion guessed() {
  Completion c;
  c.tokens = {1, 2, 3, 4};
  c.timings.predicted_ms = 100.0;
  c.timings.predicted_after_first = 3;
  c.speculation.enabled = true;
  c.speculation.steps = 2;
  c.speculation.emitted = 4;
  c.speculation.drafted = 4;
  c.speculation.accepted = 2;
  c.speculation.sample_ms = 12.0;
  c.speculation.plain_ms = 140.0;
  return c;
}

std::string table_of(const Completion& c) { return stats_table(c, Exactness(), KernelUse(), 8); }

TEST(StatsTable, ItSaysWhatSpeculationGained) {
  const std::string table = table_of(guessed());
  EXPECT_NE(table.find("\nspeed-up      about 1.52 times plain decoding\n"), std::string::npos)
      << table;
}

TEST(StatsTable, WithoutSpeculationOrAnEstimateThereIsNoSpeedUp) {
  Completion plain = guessed();
  plain.speculation.enabled = false;
  EXPECT_EQ(table_of(plain).find("speed-up"), std::string::npos);
  Completion unknown = guessed();
  unknown.speculation.plain_ms.reset();
  EXPECT_EQ(table_of(unknown).find("speed-up"), std::string::npos);
  Completion no_time = guessed();
  no_time.timings.predicted_ms = 0.0;
  EXPECT_EQ(table_of(no_time).find("speed-up"), std::string::npos);
}

TEST(StatsTable, NoLineIsLongerThanATerminal) {
  Completion c = guessed();
  c.speculation.reason = std::string(60, 'a') + " " + std::string(60, 'b');
  std::istringstream lines(table_of(c));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace outrider
