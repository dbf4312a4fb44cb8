#include "api/model_params.h"

#include <algorithm>

namespace outrider::api {
namespace {

using json::Json;

constexpr std::int64_t kMaxContext = 16 << 20;  // these as tools/model_options.cc has them
constexpr std::int64_t kMaxThreads = 512;
constexpr std::int64_t kMaxBatch = 65536;
constexpr std::int64_t kMaxLayers = 10000;
constexpr std::size_t kMaxWorkers = 64;
constexpr const char* kRoles = "'target', 'draft' or 'drafter'";

constexpr const char* kWithoutDrafter =
    " goes with the role 'drafter', for a file of one; a model has none";

bool is_path(const Json& value) {
  return value.is_string() && !value.get_ref<const std::string&>().empty() &&
         value.get_ref<const std::string&>().find('\0') == std::string::npos;
}

void read_context(JsonFields& fields, ModelOptions& o) {
  fields.integer("ctx", o.n_ctx, 0, kMaxContext);
  fields.integer("threads", o.n_threads, 0, kMaxThreads);
  fields.integer("batch", o.n_batch, 1, kMaxBatch);
  fields.integer("gpu_layers", o.n_gpu_layers, -1, kMaxLayers);
  fields.text("cache_type_k", o.cache_type_k);
  fields.text("cache_type_v", o.cache_type_v);
  std::string choice = "auto";
  fields.choice("flash_attn", choice, {"auto", "on", "off"});
  if (choice != "auto") {
    o.flash_attention = choice == "on" ? FlashAttention::kOn : FlashAttention::kOff;
  }
  choice = "auto";
  fields.choice("exact", choice, {"auto", "on", "off"});
  if (choice != "auto") o.exact = choice == "on" ? ExactMode::kOn : ExactMode::kOff;
  choice = "auto";
  fields.choice("kernels", choice, {"auto", "stock"});
  if (choice == "stock") o.kernels = KernelChoice::kStock;
}

void read_place(JsonFields& fields, ModelOptions& o) {
  fields.texts("workers", o.workers);
  if (o.workers.size() > kMaxWorkers) {
    fields.fail("workers", "workers holds " + std::to_string(o.workers.size()) + ", at most " +
                               std::to_string(kMaxWorkers) + " can be");
  }
  for (std::size_t i = 0; i < o.workers.size() && fields.ok(); ++i) {
    const std::string& worker = o.workers[i];
    const std::size_t colon = worker.rfind(':');
    if (colon != std::string::npos && colon > 0 && colon + 1 < worker.size()) continue;
    fields.refuse("workers[" + std::to_string(i) + "]", Json(worker), "host:port");
  }
  fields.boolean("isolate", o.isolate);
  fields.integer("widest", o.widest, 1, kMaxWidth);
}

void read_options(JsonFields& fields, ModelOrder& order) {
  const Json* path = fields.any("path");
  fields.require("path");
  if (path != nullptr) {
    if (!is_path(*path)) return fields.refuse("path", *path, "the path of a GGUF file");
    order.options.path = path->get<std::string>();
  }
  read_context(fields, order.options);
  read_place(fields, order.options);
  if (order.role == ModelRole::kTarget || !fields.ok()) return;
  const std::string why = " is for a target; a draft model runs in this process";
  if (!order.options.workers.empty()) fields.fail("workers", "workers" + why);
  if (order.options.isolate) fields.fail("isolate", "isolate" + why);
}

constexpr Parameter kParameters[] = {
    {"role", "string",
     "target (whose text you want), draft (a model that guesses ahead) or drafter (a file for a "
     "drafter without a model; takes drafter, path and tier only)"},
    {"path", "string", "a GGUF file; for a drafter, a store"},
    {"drafter", "string",
     "with the role drafter: suffix, for a store of 'outrider suffix build', or ngram-cache, for a "
     "file of 'outrider ngram create'"},
    {"tier", "string",
     "with the drafter ngram-cache: static (default; a corpus) or dynamic (earlier texts, with "
     "stricter thresholds); one file each"},
    {"ctx", "integer", "tokens of one request's context; 0: as trained; default 4096"},
    {"threads", "integer", "threads to compute with; 0 (default): the physical cores"},
    {"batch", "integer", "tokens of one pass at most; default 512"},
    {"gpu_layers", "integer", "layers on GPUs; -1 (default): all"},
    {"cache_type_k", "string", "type of cached keys; default: by the exactness rule"},
    {"cache_type_v", "string", "type of cached values; default: by the exactness rule"},
    {"flash_attn", "string", "auto (default), on or off"},
    {"exact", "string", "auto (default), on or off: must a batch give the bits of single steps?"},
    {"kernels", "string",
     "auto (default): Outrider's own on the processor where they can be had; stock: llama.cpp's"},
    {"workers", "string | array", "host:port of ggml RPC servers that hold a target's layers"},
    {"isolate", "boolean", "a target in a child process; default false"},
    {"widest", "integer", "widest step that a target is opened for, 1 to 64; default 16"},
};

}  // namespace

Answer<ModelOrder> read_model_order(const Json& params) {
  ModelOrder order;
  JsonFields fields(params);
  const Json* role = fields.any("role");
  fields.require("role");
  if (role != nullptr && is_text(*role, "draft")) {
    order.role = ModelRole::kDraft;
  } else if (role != nullptr && !is_text(*role, "target")) {
    fields.refuse("role", *role, kRoles);
  }
  for (const char* name : {"drafter", "tier"}) {
    if (fields.any(name) != nullptr) fields.fail(name, name + std::string(kWithoutDrafter));
  }
  read_options(fields, order);
  const std::optional<Error> error = fields.finish();
  if (error) return *error;
  return order;
}

Answer<ModelOrder> read_model_order(const Json& object, ModelRole role, const std::string& path) {
  ModelOrder order;
  order.role = role;
  JsonFields fields(object, path);
  read_options(fields, order);
  const std::optional<Error> error = fields.finish();
  if (error) return *error;
  return order;
}

bool about_drafter_file(const Json& params) {
  return params.is_object() && params.contains("role") && is_text(params["role"], "drafter");
}

Answer<DrafterFile> read_drafter_file(const Json& params, bool needs_path) {
  DrafterFile file;
  JsonFields fields(params);
  (void)fields.any("role");
  fields.require("drafter");
  const Json* drafter = fields.any("drafter");
  if (drafter != nullptr) {
    file.drafter = drafter->is_string() ? drafter->get<std::string>() : "";
    const Status known = check_file_drafter(file);
    if (!drafter->is_string()) {
      fields.refuse("drafter", *drafter, "the name of a drafter that takes files");
    } else if (!known.ok()) {
      fields.fail("drafter", with_field_names(known.message()));
    }
  }
  fields.choice("tier", file.tier, {kFileTiers[0], kFileTiers[1]});
  if (fields.ok() && !file.tier.empty()) {
    const Status known = check_file_drafter(file);
    if (!known.ok()) fields.fail("tier", with_field_names(known.message()));
  }
  if (needs_path) fields.require("path");
  const Json* path = fields.any("path");
  if (path != nullptr && !is_path(*path)) fields.refuse("path", *path, "the path of a file");
  const std::optional<Error> error = fields.finish();
  if (error) return *error;
  if (path != nullptr) file.path = path->get<std::string>();
  return file;
}

std::span<const Parameter> model_parameters() { return kParameters; }

}  // namespace outrider::api
