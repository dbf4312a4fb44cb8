// The configuration of outrider_create: see include/outrider.h.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/model_options.h"
#include "serve/runtime.h"

namespace outrider::capi {

struct Config {
  RuntimeOptions runtime;
  std::optional<ModelOptions> target;  // to load at once, as is the draft
  std::optional<ModelOptions> draft;
  std::vector<DrafterFile> files;  // to attach once there is a target
};

// `text` is a JSON object; an empty text means the defaults.
// Errors: kInvalidArgument with the field ("slots", "model.ctx").
Result<Config> read_config(std::string_view text);

}  // namespace outrider::capi
