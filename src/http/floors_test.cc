// Floors: measured once, and only while nothing else computes.
#include "http/floors.h"

#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

class FloorsTest : public ServerTest {
 protected:
  void start_measuring(const testing::FakeFile& file) {
    start({}, file);
    server_->floors().measure_with([this](const Target&) {
      ++measured_;
      return std::vector<CostPoint>{{.width = 1, .ms = 4.0}, {.width = 8, .ms = 5.0}};
    });
  }
  Json floor() { return object(ask("GET", "/outrider/speculation"))["floor"]; }

  int measured_ = 0;
};

TEST_F(FloorsTest, AFloorIsMeasuredOnce) {
  start_measuring({.chat = true});
  const Json floor_of_two = floor();
  ASSERT_EQ(floor_of_two.size(), 2U);
  EXPECT_EQ(floor_of_two[1]["width"], 8);
  EXPECT_EQ(floor_of_two[1]["ms"], 5.0);
  EXPECT_EQ(floor(), floor_of_two);
  EXPECT_EQ(measured_, 1);
}

TEST_F(FloorsTest, NothingIsMeasuredBesideACompletion) {
  start_measuring({.chat = true, .step_us = 20'000});
  {
    const HttpReply running =
        post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 200}, {"stream", true}});
    EXPECT_TRUE(floor().is_null());
    EXPECT_EQ(measured_, 0);
  }
  EXPECT_EQ(floor().size(), 2U);
}

TEST_F(FloorsTest, WithoutAMeasureThereIsNone) {
  start();
  EXPECT_TRUE(floor().is_null());
}

}  // namespace
}  // namespace outrider::http
