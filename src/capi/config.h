// The configuration of outrider_create: see include/outrider.h.
#pragma once

#include <string_view>
#include <vector>

#include "api/model_params.h"
#include "base/status.h"
#include "serve/runtime.h"

namespace outrider::capi {

struct Config {
  RuntimeOptions runtime;
  std::vector<api::LoadRequest> models;  // to load at once: the target, then the draft
  std::vector<DrafterFile> files;        // to attach once there is a target
};

// `text` is a JSON object; an empty text means the defaults.
// Errors: kInvalidArgument with the field ("slots", "model.ctx").
Result<Config> read_config(std::string_view text);

}  // namespace outrider::capi
