#include "rpcserver/init_command.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "rpcserver/command_line.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

constexpr std::int64_t kMinInt = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kDefaultContext = 512;  // llama.cpp's of October 2023
constexpr std::size_t kMaxShares = 128;        // of tensor_split; llama.cpp takes 16

std::int32_t read_int(Fields& fields, std::string_view key, std::int32_t otherwise,
                      std::int64_t min) {
  std::int64_t value = otherwise;
  fields.read(key, value, min, kMaxInt);
  return static_cast<std::int32_t>(value);
}

void read_threads(Fields& fields, InitCommand& command) {
  const std::int32_t n_threads = read_int(fields, "n_threads", -1, kMinInt);
  command.target.n_threads = std::max(n_threads, 0);
  std::int64_t n_batch_threads = n_threads;
  if (fields.read("n_threads_batch", n_batch_threads, kMinInt, kMaxInt) && n_batch_threads > 0 &&
      n_batch_threads != n_threads) {
    command.warnings.emplace_back(
        "n_threads_batch has no effect: prompts are read with the threads of n_threads");
  }
}

void read_tensor_split(Fields& fields, ModelOptions& options) {
  const Json* shares = fields.find("tensor_split");
  if (shares == nullptr) return;
  const Json list = shares->is_number() ? Json::array({*shares}) : *shares;
  if (!list.is_array() || list.size() > kMaxShares) {
    fields.refuse_kind("tensor_split", *shares, "an array of numbers, one a GPU");
    return;
  }
  for (const Json& share : list) {
    const double value = share.is_number() ? share.get<double>() : -1.0;
    if (!(value >= 0.0 && value <= 1e9)) {
      fields.refuse("tensor_split", "must be an array of numbers of at least 0");
      return;
    }
    options.tensor_split.push_back(static_cast<float>(value));
  }
}

void read_devices(Fields& fields, InitCommand& command) {
  ModelOptions& target = command.target;
  target.n_gpu_layers = std::max(read_int(fields, "n_gpu_layers", -1, kMinInt), -1);
  if (read_int(fields, "main_gpu", 0, 0) != 0) {
    command.warnings.emplace_back(
        "main_gpu has no effect: llama.cpp divides a model by tensor_split alone");
  }
  read_tensor_split(fields, target);
  fields.read("use_mmap", target.use_mmap);
  fields.read("use_mlock", target.use_mlock);
  bool numa = false;
  if (fields.read("numa", numa) && numa) {
    command.warnings.emplace_back(
        "numa has no effect: threads and memory are left where the system puts them");
  }
}

void read_context(Fields& fields, InitCommand& command) {
  ModelOptions& target = command.target;
  std::int64_t n_ctx = kDefaultContext;
  if (fields.read("n_ctx", n_ctx, 0, kMaxInt)) command.n_ctx = static_cast<std::int32_t>(n_ctx);
  target.n_ctx = static_cast<std::int32_t>(n_ctx);
  target.n_batch = read_int(fields, "n_batch", target.n_batch, 1);
  double base = 0.0;
  double scale = 0.0;
  fields.read("rope_freq_base", base, 0.0, 1e12);
  fields.read("rope_freq_scale", scale, 0.0, 1e6);
  target.rope_freq_base = static_cast<float>(base);
  target.rope_freq_scale = static_cast<float>(scale);
  std::string adapter;
  if (fields.read("lora_adapter", adapter) && !adapter.empty()) target.lora = {adapter};
  // true was the default and spared memory, which the cache of the exactness rule does as well.
  bool memory_f16 = true;
  fields.read("memory_f16", memory_f16);
  if (!memory_f16) target.cache_type_k = target.cache_type_v = "f32";
}

void refuse_what_is_gone(Fields& fields, InitCommand& command) {
  std::string text;
  if (fields.read("lora_base", text) && !text.empty()) {
    fields.refuse("lora_base",
                  "is gone from llama.cpp, which applies adapters to any weights; leave it out");
  }
  if (fields.read("chat_template", text) && !text.empty()) {
    command.warnings.emplace_back("chat_template has no effect: prompts are taken as they are");
  }
  for (const std::string_view key :
       {"hostname", "public_path", "port", "read_timeout", "write_timeout"}) {
    fields.find(key);
  }
}

void read_command(Fields& fields, InitCommand& command) {
  std::string draft_path;
  fields.read("model", command.target.path);
  fields.read("model_draft", draft_path);
  fields.read("model_alias", command.alias);
  // "unknown" was the default of the seed's command line for "not given".
  if (command.alias.empty() || command.alias == "unknown") command.alias = command.target.path;
  read_context(fields, command);
  read_threads(fields, command);
  read_devices(fields, command);
  command.draft = command.target;
  command.draft.path = draft_path;
  command.draft.cache_type_k.clear();  // what the draft computes need not be exact
  command.draft.cache_type_v.clear();
  command.draft.lora.clear();  // an adapter is one model's
  command.draft.n_gpu_layers = std::max(read_int(fields, "n_gpu_layers_draft", -1, kMinInt), -1);
  refuse_what_is_gone(fields, command);
  command.defaults = take_defaults(fields, command.warnings);
  command.target.widest =
      std::max(command.target.widest,
               static_cast<std::int32_t>(command.defaults.width.value_or(command.target.widest)));
  for (std::string& text : fields.unknown()) command.warnings.push_back(std::move(text));
  command.refusal = fields.refusal();
}

bool is_json(std::string_view cmd) {
  const std::size_t start = cmd.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && cmd[start] == '{';
}

}  // namespace

InitCommand parse_command(const char* cmd) {
  InitCommand command;
  if (cmd == nullptr) {
    command.refusal = {.error = "cmd is NULL, but must be JSON or a command line", .field = ""};
    return command;
  }
  Json object;
  if (is_json(cmd)) {
    ParsedObject parsed = parse_object(cmd, /*may_be_empty=*/false);
    object = std::move(parsed.object);
    command.refusal = std::move(parsed.refusal);
  } else {
    CommandLine line = parse_command_line(cmd);
    object = std::move(line.cmd);
    command.warnings = std::move(line.warnings);
    command.refusal = std::move(line.refusal);
  }
  if (command.refusal) return command;
  Fields fields(object);
  read_command(fields, command);
  return command;
}

}  // namespace outrider::rpcserver
