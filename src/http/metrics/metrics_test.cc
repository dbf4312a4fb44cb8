// What /metrics and /outrider/speculation say, against what completions said of themselves.
#include "http/metrics/metrics.h"

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

class MetricsTest : public ServerTest {
 protected:
  // The value of a line; -1: there is none.
  double value(const std::string& line) {
    const std::string text = ask("GET", "/metrics").body;
    const std::size_t at = text.find("\n" + line + " ");
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + line.size() + 2));
  }
  // With a draft model that is often right.
  void start_with_draft() {
    start();
    loader_.add("draft", {.noise = 0.5f});
    ModelOptions draft;
    draft.path = "draft";
    draft.n_ctx = n_ctx_;
    ASSERT_TRUE(runtime_->load(ModelRole::kDraft, draft).ok());
    ASSERT_TRUE(runtime_->wait_loaded(-1));
  }
  Json complete() {
    return object(post(
        "/v1/completions",
        {{"prompt", "abc"}, {"max_tokens", 40}, {"seed", 3}, {"speculative", {{"width", 4}}}}));
  }
};

TEST_F(MetricsTest, TokensAndDraftsAreThoseOfTheResults) {
  start_with_draft();
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  for (int i = 0; i < 3; ++i) {
    const Json result = complete();
    drafted += result["speculation"]["drafted"].get<std::int64_t>();
    accepted += result["speculation"]["accepted"].get<std::int64_t>();
  }
  ASSERT_GT(accepted, 0) << "or nothing is tested";
  EXPECT_EQ(value("outrider:generation_tokens_total{model=\"fake\"}"), 120);
  EXPECT_EQ(value("outrider:spec_decode_num_draft_tokens_total{model=\"fake\"}"), drafted);
  EXPECT_EQ(value("outrider:spec_decode_num_accepted_tokens_total{model=\"fake\"}"), accepted);
  double by_position = 0.0;
  for (int i = 0; i < 64; ++i) {
    const double here =
        value("outrider:spec_decode_num_accepted_tokens_per_pos_total{model=\"fake\",position=\"" +
              std::to_string(i) + "\"}");
    if (here > 0.0) by_position += here;
  }
  EXPECT_EQ(by_position, accepted);
  EXPECT_GT(value("outrider:spec_decode_num_drafts_total{model=\"fake\"}"), 0);
  EXPECT_EQ(value("outrider:time_to_first_token_seconds_count{model=\"fake\"}"), 3);
  // Those that came with the first one, in the same step, are not behind it.
  const double behind = value("outrider:time_per_output_token_seconds_count{model=\"fake\"}");
  EXPECT_TRUE(behind >= 120 - 3 * 4 && behind <= 117) << behind;
  EXPECT_EQ(value("outrider:slots{model=\"fake\"}"), 2);
  EXPECT_EQ(value("outrider:requests_running{model=\"fake\"}"), 0);
}

TEST_F(MetricsTest, AModelThatIsClosedKeepsItsCounters) {
  start_with_draft();
  (void)complete();
  const std::vector<std::string> counters = {
      "outrider:generation_tokens_total{model=\"fake\"}",
      "outrider:spec_decode_num_drafts_total{model=\"fake\"}",
      "outrider:spec_decode_num_accepted_tokens_per_pos_total{model=\"fake\",position=\"0\"}"};
  std::vector<double> open;
  for (const std::string& counter : counters) open.push_back(value(counter));
  EXPECT_EQ(open.front(), 40);
  catalog_->open = false;
  for (std::size_t i = 0; i < counters.size(); ++i) EXPECT_EQ(value(counters[i]), open[i]);
  EXPECT_EQ(value("outrider:slots{model=\"fake\"}"), -1) << "it has none";
}

TEST_F(MetricsTest, TheWaitForAModelThatIsOpenedIsPartOfTheTimesAndSeenMeanwhile) {
  start();
  double waited_s = 0.0;
  catalog_->waiting = 7;
  catalog_->on_acquire = [&waited_s] {
    const Stopwatch watch;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    waited_s = 0.001 * watch.elapsed_ms();
  };
  (void)complete();
  constexpr double kRounding = 1e-4;
  for (const char* name : {"model_wait", "queue_time", "time_to_first_token", "request_time"}) {
    const std::string family = "outrider:" + std::string(name) + "_seconds";
    EXPECT_EQ(value(family + "_count{model=\"fake\"}"), 1) << name;
    EXPECT_GE(value(family + "_sum{model=\"fake\"}"), waited_s - kRounding) << name;
  }
  EXPECT_EQ(value("outrider:requests_waiting_for_model{model=\"fake\"}"), 7);
}

TEST_F(MetricsTest, RequestsAreCountedByEndpointAndStatusAndUnknownPathsTogether) {
  start();
  (void)ask("GET", "/health");
  (void)ask("GET", "/health");
  (void)ask("GET", "/a");
  (void)ask("GET", "/b");
  (void)ask("POST", "/v1/completions", "{");
  EXPECT_EQ(value("outrider:requests_total{endpoint=\"/health\",status=\"200\"}"), 2);
  EXPECT_EQ(value("outrider:requests_total{endpoint=\"other\",status=\"404\"}"), 2);
  EXPECT_EQ(value("outrider:requests_total{endpoint=\"/v1/completions\",status=\"400\"}"), 1);
}

TEST_F(MetricsTest, TheProcessSaysWhatItHolds) {
  start();
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(value("process_open_fds"), 2);
  EXPECT_EQ(ask("GET", "/metrics").content_type, "text/plain; version=0.0.4; charset=utf-8");
}

TEST_F(MetricsTest, TheSpeculationOfAModelIsSummedOverItsCompletions) {
  start_with_draft();
  const Json one = complete()["speculation"];
  const Json two = complete()["speculation"];
  const Json all = object(ask("GET", "/outrider/speculation"));
  for (const char* name : {"steps", "drafted", "accepted", "emitted"}) {
    EXPECT_EQ(all[name].get<std::int64_t>(),
              one[name].get<std::int64_t>() + two[name].get<std::int64_t>())
        << name;
  }
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  for (const Json& depth : all["depths"]) {
    drafted += depth["drafted"].get<std::int64_t>();
    accepted += depth["accepted"].get<std::int64_t>();
  }
  EXPECT_EQ(drafted, all["drafted"].get<std::int64_t>());
  EXPECT_EQ(accepted, all["accepted"].get<std::int64_t>());
  EXPECT_TRUE(all["drafters"].contains("draft-model")) << all.dump();
  EXPECT_TRUE(all["floor"].is_null());
}

}  // namespace
}  // namespace outrider::http
