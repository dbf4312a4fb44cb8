#include "rpcserver/init_command.h"

#include <algorithm>
#include <string_view>

#include "rpcserver/command_line.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

constexpr std::int32_t kDefaultContext = 512;  // llama.cpp's of October 2023
constexpr std::size_t kMaxShares = 128;        // of tensor_split; llama.cpp takes 16

std::int32_t read_int(JsonFields& fields, std::string_view key, std::int32_t otherwise,
                      std::int64_t min = kMinInt32, std::int64_t max = kMaxInt32) {
  fields.integer(key, otherwise, min, max);
  return otherwise;
}

// What the field of that name may be.
std::int32_t read_model_int(JsonFields& fields, std::string_view key, std::string_view name,
                            std::int32_t otherwise) {
  const Range& range = field_named(model_fields(), name).range;
  return read_int(fields, key, otherwise, whole_limit(range.min), whole_limit(range.max));
}

// Likewise, but the seed took any number: what is outside means the nearest that the field may be.
std::int32_t read_any_model_int(JsonFields& fields, std::string_view key, std::string_view name) {
  const Range& range = field_named(model_fields(), name).range;
  const std::int64_t value = read_int(fields, key, -1);
  return static_cast<std::int32_t>(
      std::clamp(value, whole_limit(range.min), whole_limit(range.max)));
}

void read_tensor_split(JsonFields& fields, ModelOptions& options) {
  const Json* shares = fields.any("tensor_split");
  if (shares == nullptr) return;
  const Json list = shares->is_number() ? Json::array({*shares}) : *shares;
  if (!list.is_array() || list.size() > kMaxShares) {
    return fields.refuse_kind("tensor_split", *shares, "an array of numbers, one a GPU");
  }
  for (const Json& share : list) {
    const double value = share.is_number() ? share.get<double>() : -1.0;
    if (!(value >= 0.0 && value <= 1e9)) {
      return fields.fail(refused("tensor_split", "must be an array of numbers of at least 0"));
    }
    options.tensor_split.push_back(static_cast<float>(value));
  }
}

void read_target(JsonFields& fields, InitCommand& command) {
  ModelOptions& target = command.target;
  const std::int32_t n_ctx = read_model_int(fields, "n_ctx", "ctx", -1);
  if (n_ctx >= 0) command.n_ctx = n_ctx;
  target.n_ctx = command.n_ctx.value_or(kDefaultContext);
  target.n_batch = read_model_int(fields, "n_batch", "batch", target.n_batch);
  double base = 0.0;
  double scale = 0.0;
  fields.number("rope_freq_base", base, {.min = 0.0, .max = 1e12});
  fields.number("rope_freq_scale", scale, {.min = 0.0, .max = 1e6});
  target.rope_freq_base = static_cast<float>(base);
  target.rope_freq_scale = static_cast<float>(scale);
  std::string adapter;
  fields.text("lora_adapter", adapter);
  if (!adapter.empty()) target.lora = {adapter};
  // true was the default and spared memory, which the cache of the exactness rule does as well.
  bool memory_f16 = true;
  fields.boolean("memory_f16", memory_f16);
  if (!memory_f16) target.cache_type_k = target.cache_type_v = "f32";
  target.n_threads = read_any_model_int(fields, "n_threads", "threads");
  const std::int32_t n_batch_threads = read_int(fields, "n_threads_batch", 0);
  if (n_batch_threads > 0 && n_batch_threads != target.n_threads) {
    command.warnings.emplace_back(
        "n_threads_batch has no effect: prompts are read with the threads of n_threads");
  }
  target.n_gpu_layers = read_any_model_int(fields, "n_gpu_layers", "gpu_layers");
  if (read_int(fields, "main_gpu", 0, 0) != 0) {
    command.warnings.emplace_back(
        "main_gpu has no effect: llama.cpp divides a model by tensor_split alone");
  }
  read_tensor_split(fields, target);
  fields.boolean("use_mmap", target.use_mmap);
  fields.boolean("use_mlock", target.use_mlock);
  bool numa = false;
  fields.boolean("numa", numa);
  if (numa) {
    command.warnings.emplace_back(
        "numa has no effect: threads and memory are left where the system puts them");
  }
}

void refuse_what_is_gone(JsonFields& fields, InitCommand& command) {
  std::string lora_base;
  fields.text("lora_base", lora_base);
  if (!lora_base.empty()) {
    fields.fail(
        refused("lora_base",
                "is gone from llama.cpp, which applies adapters to any weights; leave it out"));
  }
  std::string chat_template;
  fields.text("chat_template", chat_template);
  if (!chat_template.empty()) {
    command.warnings.emplace_back("chat_template has no effect: prompts are taken as they are");
  }
  for (const std::string_view key :
       {"hostname", "public_path", "port", "read_timeout", "write_timeout"}) {
    fields.any(key);
  }
}

void read_command(JsonFields& fields, InitCommand& command) {
  ModelOptions& target = command.target;
  ModelOptions& draft = command.draft;
  std::string draft_path;
  fields.text("model", target.path);
  fields.text("model_draft", draft_path);
  fields.text("model_alias", command.alias);
  // "unknown" was the default of the seed's command line for "not given".
  if (command.alias.empty() || command.alias == "unknown") command.alias = target.path;
  read_target(fields, command);
  draft = target;
  draft.path = draft_path;
  draft.cache_type_k.clear();  // what the draft computes need not be exact
  draft.cache_type_v.clear();
  draft.lora.clear();  // an adapter is one model's
  draft.n_gpu_layers = read_any_model_int(fields, "n_gpu_layers_draft", "gpu_layers");
  refuse_what_is_gone(fields, command);
  command.defaults = take_defaults(fields, command.warnings);
  target.widest = std::max(target.widest, command.defaults.width.value_or(target.widest));
  warn_of_unknown(fields, command.warnings);
  command.refusal = fields.finish();
}

bool is_json(std::string_view cmd) {
  const std::size_t start = cmd.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && cmd[start] == '{';
}

}  // namespace

InitCommand parse_command(const char* cmd) {
  InitCommand command;
  if (cmd == nullptr) {
    command.refusal = invalid_argument("cmd is NULL, but must be JSON or a command line");
    return command;
  }
  const Result<Json> object = is_json(cmd) ? parse_object(cmd, /*may_be_empty=*/false)
                                           : parse_command_line(cmd, command.warnings);
  command.refusal = object.status();
  if (!object.ok()) return command;
  JsonFields fields(*object, "", &kSeedDialect);
  read_command(fields, command);
  return command;
}

}  // namespace outrider::rpcserver
