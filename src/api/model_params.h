// From JSON to a request to load something: the fields of model.load.
//
// A model: role ("target", "draft"), path, and those of model/model_options.h. Those of a target
// are refused for a draft, where they would change nothing: workers, worker_timeout_s, isolate,
// head, mtp, exact and widest.
//
// A drafter's file: role "drafter", drafter ("suffix", "ngram-cache"), path, and for ngram-cache
// tier ("static", the default, or "dynamic").
//
// Tested by model_params_test.cc.
#pragma once

#include "api/read_fields.h"
#include "base/status.h"
#include "json/json.h"
#include "model/model_options.h"
#include "serve/runtime.h"

namespace outrider::api {

struct LoadRequest {
  ModelRole role = ModelRole::kTarget;
  ModelOptions options;
};

// Errors: kInvalidArgument with the field. Whether the file exists, and the types of cache are
// known, is checked when it is loaded.
Result<LoadRequest> read_load_request(const json::Json& params);

// The same for an object whose role is known and not among its fields; `path` stands before the
// names in messages ("model.").
Result<LoadRequest> read_load_request(const json::Json& object, ModelRole role,
                                      const std::string& path);

// Whether `params` are about a drafter's file: their role says so.
bool about_drafter_file(const json::Json& params);

// The fields of model.load and model.unload for a drafter's file; unload may leave `path` out, for
// all, and `tier`, for both. Errors: kInvalidArgument with the field.
Result<DrafterFile> read_drafter_file(const json::Json& params, bool needs_path);

std::span<const Parameter> model_parameters();

}  // namespace outrider::api
