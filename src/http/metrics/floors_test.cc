// Floors: measured once, and only while nothing else computes.
#include "http/metrics/floors.h"

#include "http/fixture_test.h"
#include "testing/eventually.h"

namespace outrider::http {
namespace {

using json::Json;

class FloorsTest : public ServerTest {
 protected:
  void start_measuring() {
    start();
    server_->state().floors().measure_with([this](const Target&) {
      ++measured_;
      return std::vector<CostPoint>{{.width = 1, .ms = 4.0}, {.width = 8, .ms = 5.0}};
    });
  }
  Json floor() { return object(ask("GET", "/outrider/speculation"))["floor"]; }

  int measured_ = 0;
};

TEST_F(FloorsTest, AFloorIsMeasuredOnce) {
  start_measuring();
  const Json floor_of_two = floor();
  ASSERT_EQ(floor_of_two.size(), 2U);
  EXPECT_EQ(floor_of_two[1]["width"], 8);
  EXPECT_EQ(floor_of_two[1]["ms"], 5.0);
  EXPECT_EQ(floor(), floor_of_two);
  EXPECT_EQ(measured_, 1);
}

TEST_F(FloorsTest, NothingIsMeasuredBesideACompletion) {
  start_measuring();
  {
    const HttpReply running = post("/v1/completions", endless());
    EXPECT_TRUE(floor().is_null());
    EXPECT_EQ(measured_, 0);
  }
  // Soon: it has been cancelled, and ends with its next step.
  EXPECT_TRUE(testing::eventually([this] { return !floor().is_null(); }));
  EXPECT_EQ(floor().size(), 2U);
}

TEST_F(FloorsTest, WithoutAMeasureThereIsNone) {
  start();
  EXPECT_TRUE(floor().is_null());
}

}  // namespace
}  // namespace outrider::http
