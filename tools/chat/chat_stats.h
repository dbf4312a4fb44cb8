// ChatStats: what all answers of a chat came to.
// Tested by chat_stats_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/request.h"

namespace outrider::tools {

class ChatStats {
 public:
  void add(const Completion& completion);

  std::int64_t answers() const { return answers_; }

  // Lines "label   value", as stats_table() has them.
  std::string table() const;

 private:
  std::int64_t answers_ = 0;
  std::int64_t tokens_ = 0;
  std::int64_t cached_ = 0;  // prompt tokens that earlier answers had read
  std::int64_t prompt_ = 0;
  std::int64_t timed_tokens_ = 0;  // said during predicted_ms_
  double predicted_ms_ = 0.0;
  double plain_ms_ = 0.0;    // what plain decoding would have taken,
  double against_ms_ = 0.0;  // where those answers that it is known of took so long
  std::int64_t steps_ = 0;
  std::int64_t emitted_ = 0;
  std::int64_t drafted_ = 0;
  std::int64_t accepted_ = 0;
  std::vector<DrafterStats> drafters_;
};

// A line for each drafter: how many of its guesses were right.
std::string drafter_rows(const std::vector<DrafterStats>& drafters);

}  // namespace outrider::tools
