// What -hf takes: USER/REPO, or USER/REPO:QUANT.
#pragma once

#include <string>

#include "base/status.h"

namespace outrider::llama {

struct HubName {
  std::string repo;   // "user/model"
  std::string quant;  // "Q4_K_M", or empty: Q4_K_M, else Q8_0, else the first file

  std::string text() const { return quant.empty() ? repo : repo + ":" + quant; }
};

// Errors: kInvalidArgument, with an example.
Result<HubName> parse_hub_name(const std::string& text);

}  // namespace outrider::llama
