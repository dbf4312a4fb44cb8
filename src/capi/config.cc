#include "capi/config.h"

#include "api/json_fields.h"

namespace outrider::capi {
namespace {

using api::Answer;
using api::Error;
using api::kMaxInt32;
using json::Json;

void read_model(api::JsonFields& fields, const std::string& name, ModelRole role, Config& config) {
  const Json* object = fields.any(name);
  if (object == nullptr) return;
  Answer<api::ModelOrder> order = api::read_model_order(*object, role, name + ".");
  if (!order.ok()) return fields.fail(order.error().field, order.error().message);
  config.models.push_back(*std::move(order));
}

}  // namespace

Answer<Config> read_config(std::string_view text) {
  Config config;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return config;
  const json::Parsed parsed = json::parse(text);
  if (!parsed.ok()) return Error{.message = "the config: " + parsed.error, .field = ""};
  api::JsonFields fields(*parsed.value);
  RuntimeOptions& o = config.runtime;
  fields.integer("slots", o.slots, 1, 64);
  fields.integer("max_queue", o.max_queue, 0, kMaxInt32);
  fields.integer("prompt_chunk", o.prompt_chunk, 1, kMaxInt32);
  fields.boolean("reuse_prefix", o.reuse_prefix);
  fields.integer("retention_ms", o.retention_ms, 0, RuntimeOptions::kMaxRetentionMs);
  read_model(fields, "model", ModelRole::kTarget, config);
  read_model(fields, "draft", ModelRole::kDraft, config);
  const std::optional<Error> error = fields.finish();
  if (error) return *error;
  return config;
}

}  // namespace outrider::capi
