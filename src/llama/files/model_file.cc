#include "llama/files/model_file.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>

#include "llama/base/backend.h"
#include "llama/base/handles.h"
#include "llama/files/adapter_matrices.h"
#include "llama/files/gguf_header.h"
#include "llama/files/rope_factors.h"
#include "llama/kernels/own_kernels.h"
#include "llama/vocabulary/vocabulary.h"
#include "llama/workers/rpc_worker.h"

namespace outrider::llama {
namespace {

// As llama.cpp's --cache-type-k lists them.
constexpr std::array<ggml_type, 9> kCacheTypes{GGML_TYPE_F32,    GGML_TYPE_F16,  GGML_TYPE_BF16,
                                               GGML_TYPE_Q8_0,   GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                               GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1};

ggml_type cache_type(std::string_view name) {
  for (const ggml_type type : kCacheTypes) {
    if (name == ggml_type_name(type)) return type;
  }
  return GGML_TYPE_COUNT;
}

// Between llama.cpp's progress callback and the hooks.
struct Progress {
  const LoadHooks* hooks;
  bool cancelled = false;

  static bool report(float fraction, void* user) {
    Progress* self = static_cast<Progress*>(user);
    const LoadHooks& hooks = *self->hooks;
    if (hooks.progress) hooks.progress(std::clamp(static_cast<double>(fraction), 0.0, 1.0));
    if (hooks.cancel != nullptr && hooks.cancel->load(std::memory_order_relaxed)) {
      self->cancelled = true;
    }
    return !self->cancelled;
  }
};

Status check_generates(const std::string& path, const ModelFacts& facts) {
  const std::string file = std::string("'").append(path) + "' (" + facts.architecture + ") ";
  if (!facts.has_decoder) return unsupported(file + "is an encoder, which does not write text");
  if (facts.has_encoder) {
    return unsupported(file + "is an encoder-decoder model; only decoders are supported");
  }
  if (facts.diffusion) {
    return unsupported(file + "is a diffusion model, which does not write from left to right");
  }
  return Status();
}

// For llama.cpp, which takes a list that ends with null; empty: as it chooses.
Result<std::vector<ggml_backend_dev_t>> devices_for(const FileOptions& options) {
  std::vector<ggml_backend_dev_t> devices;
  if (!options.workers.empty()) {
    OUTRIDER_ASSIGN_OR_RETURN(devices, worker_devices(options.workers));
    devices.push_back(nullptr);
  } else if (options.keeps_off_gpus()) {
    devices.push_back(nullptr);
  }
  return devices;
}

// Packed weights are locked where they are packed. The file is not mapped then: llama.cpp would
// lock all of it that lies before a norm, which is what nobody reads any more.
llama_load_mode load_mode(const FileOptions& options, bool own_kernels) {
  if (options.use_mlock) {
    if (own_kernels) return LLAMA_LOAD_MODE_MLOCK;
    return options.use_mmap ? LLAMA_LOAD_MODE_MMAP_MLOCK : LLAMA_LOAD_MODE_MLOCK;
  }
  return options.use_mmap ? LLAMA_LOAD_MODE_AUTO : LLAMA_LOAD_MODE_NONE;
}

// What is known of a file of which only the vocabulary is there. llama.cpp aborts when it is asked
// for the shape of such a model.
ModelFacts read_few_facts(const ::llama_model* model, const GgufHeader& header) {
  ModelFacts facts;
  facts.architecture = header.architecture;
  facts.name = header.name;
  facts.n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  facts.has_chat_template = llama_model_chat_template(model, /*name=*/nullptr) != nullptr ||
                            llama_model_chat_template(model, "tool_use") != nullptr;
  facts.has_encoder = llama_model_has_encoder(model);
  facts.has_decoder = llama_model_has_decoder(model);
  facts.diffusion = llama_model_is_diffusion(model);
  return facts;
}

ModelFacts read_facts(const ::llama_model* model, const GgufHeader& header) {
  ModelFacts facts = read_few_facts(model, header);
  std::array<char, 256> text{};
  llama_model_desc(model, text.data(), text.size());
  facts.description = text.data();
  std::string_view ftype = llama_ftype_name(llama_model_ftype(model));
  constexpr std::string_view kGuessed = "(guessed) ";  // the file does not say it outright
  if (ftype.starts_with(kGuessed)) ftype.remove_prefix(kGuessed.size());
  facts.ftype_name = ftype;
  facts.n_params = llama_model_n_params(model);
  facts.size_bytes = llama_model_size(model);
  facts.n_ctx_train = llama_model_n_ctx_train(model);
  facts.n_layer = llama_model_n_layer(model);
  facts.n_embd = llama_model_n_embd(model);
  facts.n_head = llama_model_n_head(model);
  facts.n_head_kv = llama_model_n_head_kv(model);
  facts.head_sizes_k = header.head_sizes_k;
  facts.head_sizes_v = header.head_sizes_v;
  facts.k_elements = header.k_elements();
  facts.v_elements = header.v_elements();
  facts.states = header.states;
  facts.n_swa = llama_model_n_swa(model);
  facts.position_table = header.position_table;
  facts.recurrent = llama_model_is_recurrent(model);
  facts.hybrid = llama_model_is_hybrid(model);
  return facts;
}

}  // namespace

struct ModelFile::Handle {
  ModelHandle model;
};

std::uint64_t ModelFacts::kv_bytes_per_token(std::string_view type_k,
                                             std::string_view type_v) const {
  const ggml_type k = cache_type(type_k);
  const ggml_type v = cache_type(type_v);
  if (k == GGML_TYPE_COUNT || v == GGML_TYPE_COUNT) return 0;
  const auto bytes = [](std::uint64_t n, ggml_type type) {
    const std::uint64_t block = static_cast<std::uint64_t>(ggml_blck_size(type));
    return (n + block - 1) / block * ggml_type_size(type);
  };
  return bytes(k_elements, k) + bytes(v_elements, v);
}

FileOptions file_options(const ModelOptions& options, bool extra_bufts) {
  FileOptions file;
  file.n_gpu_layers = options.n_gpu_layers;
  file.extra_bufts = extra_bufts;
  file.kernels = options.kernels;
  file.n_ctx = options.n_ctx;
  file.workers = options.workers;
  file.tensor_split = options.tensor_split;
  file.lora = options.lora;
  file.use_mmap = options.use_mmap;
  file.use_mlock = options.use_mlock;
  return file;
}

Status load_failure(const std::string& path, const std::string& because, bool on_gpus) {
  const std::string what = "cannot load '" + path + "'" + because;
  if (because.find("unknown model architecture") != std::string::npos) return unsupported(what);
  if (!is_want_of_memory(because)) return internal_error(what);
  return resource_exhausted(
      what + (on_gpus ? "; fewer layers on the GPU (gpu_layers) take less there" : ""));
}

ModelFile::ModelFile() = default;
ModelFile::~ModelFile() = default;

Result<std::shared_ptr<ModelFile>> ModelFile::load(const std::string& path,
                                                   const FileOptions& options,
                                                   const LoadHooks& hooks) {
  ensure_backend();
  Result<GgufHeader> header = read_gguf_header(path);
  if (!header.ok()) return header.status();
  if (!options.head) OUTRIDER_RETURN_IF_ERROR(check_is_model(path, *header));

  std::shared_ptr<ModelFile> file(new ModelFile());
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = options.n_gpu_layers;
  params.use_extra_bufts = options.extra_bufts;
  params.load_mtp = options.prediction;
  if (options.tensor_split.size() > llama_max_devices()) {
    return invalid_argument("tensor_split has " + std::to_string(options.tensor_split.size()) +
                            " shares, but llama.cpp takes " + std::to_string(llama_max_devices()) +
                            " devices at most");
  }
  std::vector<float> shares = options.tensor_split;
  shares.resize(llama_max_devices());  // all of them are read
  if (!options.tensor_split.empty()) params.tensor_split = shares.data();
  OUTRIDER_ASSIGN_OR_RETURN(std::vector<ggml_backend_dev_t> devices, devices_for(options));
  if (!devices.empty()) params.devices = devices.data();
  // With own kernels, load_mode() maps nothing that is locked.
  const KernelsForLoad kernels(options.kernels, options.extra_bufts, options.use_mlock,
                               options.use_mmap && !options.use_mlock);
  params.load_mode = load_mode(options, kernels.wanted());
  // Beside a GPU llama.cpp would keep what stays on the processor in memory that the GPU reads, for
  // batches of 32 tokens and more; no kernels but ggml's take it from there.
  params.no_host = kernels.wanted();
  const bool short_factors = takes_short_factors(*header, options.n_ctx);
  std::array<llama_model_kv_override, 2> overrides{};
  if (short_factors) {
    overrides = keep_short_factors(*header);
    params.kv_overrides = overrides.data();
  }
  OUTRIDER_RETURN_IF_ERROR(file->read(path, params, hooks));
  Result<Adapters> adapters = Adapters::load(file->handle(), options.lora);
  if (!adapters.ok()) return adapters.status();
  OUTRIDER_RETURN_IF_ERROR(check_adapted_matrices(path, *header, options.lora));
  file->adapters_ = *std::move(adapters);
  file->facts_ = read_facts(file->handle(), *header);
  file->facts_.path = path;
  if (short_factors) file->facts_.yarn_orig_ctx = header->short_context;
  if (options.prediction) {
    file->facts_.n_prediction = header->n_prediction;
    file->facts_.prediction_bytes = header->prediction_bytes;
  }
  file->facts_.extra_bufts = options.extra_bufts;
  // All of them: the output is one more, and prediction layers may count, too.
  const std::int32_t most_layers = file->facts_.n_layer + header->n_prediction + 1;
  file->facts_.kernels =
      kernels.use(!options.workers.empty() &&
                  (options.n_gpu_layers < 0 || options.n_gpu_layers >= most_layers));
  file->facts_.lock_failure = kernels.lock_failure();
  file->facts_.all_on_cpu =
      options.n_gpu_layers == 0 || (options.workers.empty() && !has_other_device());
  if (!options.head) OUTRIDER_RETURN_IF_ERROR(check_generates(path, file->facts_));
  OUTRIDER_RETURN_IF_ERROR(file->read_vocabulary());
  return file;
}

Result<std::shared_ptr<ModelFile>> ModelFile::load_vocabulary(const std::string& path,
                                                              const LoadHooks& hooks) {
  ensure_backend();
  Result<GgufHeader> header = read_gguf_header(path);
  if (!header.ok()) return header.status();
  OUTRIDER_RETURN_IF_ERROR(check_is_model(path, *header));
  std::shared_ptr<ModelFile> file(new ModelFile());
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  params.n_gpu_layers = 0;
  ggml_backend_dev_t none = nullptr;  // a GPU that is only asked takes memory for this process
  params.devices = &none;
  OUTRIDER_RETURN_IF_ERROR(file->read(path, params, hooks));
  file->facts_ = read_few_facts(file->handle(), *header);
  file->facts_.path = path;
  OUTRIDER_RETURN_IF_ERROR(check_generates(path, file->facts_));
  OUTRIDER_RETURN_IF_ERROR(file->read_vocabulary());
  return file;
}

Status ModelFile::read(const std::string& path, llama_model_params params, const LoadHooks& hooks) {
  log_ = hooks.log;
  const LogCapture log(log_);
  Progress progress{.hooks = &hooks};
  if (!Progress::report(0.0F, &progress)) {
    return cancelled("loading '" + path + "' was cancelled");
  }
  params.progress_callback = Progress::report;
  params.progress_callback_user_data = &progress;
  std::string thrown;
  try {
    handle_ = std::make_unique<Handle>(
        Handle{ModelHandle(llama_model_load_from_file(path.c_str(), params))});
  } catch (const std::exception& error) {
    thrown = std::string(": ") + error.what();
  }
  if (handle_ != nullptr && handle_->model) return Status();
  if (progress.cancelled) return cancelled("loading '" + path + "' was cancelled");
  const bool on_gpus = params.devices == nullptr && params.n_gpu_layers != 0 && has_other_device();
  return load_failure(path, thrown.empty() ? log.because() : thrown, on_gpus);
}

Status ModelFile::read_vocabulary() {
  const LogCapture log(log_);
  Result<std::unique_ptr<LlamaVocabulary>> vocabulary = LlamaVocabulary::create(handle());
  if (!vocabulary.ok()) return vocabulary.status().with_context("'" + facts_.path + "'");
  vocabulary_ = std::move(*vocabulary);
  const ChatAbilities chat = vocabulary_->chat_abilities();
  facts_.chat_tools = chat.tools;
  facts_.chat_reasoning = chat.reasoning;
  return Status();
}

llama_model* ModelFile::handle() const { return handle_->model.get(); }

const Vocabulary& ModelFile::text_vocabulary() const { return *vocabulary_; }

std::vector<std::pair<std::string, std::string>> ModelFile::metadata() const {
  std::vector<std::pair<std::string, std::string>> result;
  std::string key(512, '\0');
  const std::int32_t n = llama_model_meta_count(handle());
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t length = llama_model_meta_key_by_index(handle(), i, key.data(), key.size());
    if (length < 0 || static_cast<std::size_t>(length) >= key.size()) continue;
    const std::string name(key.data(), static_cast<std::size_t>(length));
    std::optional<std::string> value = metadata(name);
    if (value) result.emplace_back(name, *std::move(value));
  }
  return result;
}

std::optional<std::string> ModelFile::metadata(const std::string& key) const {
  std::string value(256, '\0');
  std::int32_t length = 0;
  // llama.cpp returns the whole length, as snprintf does.
  while ((length = llama_model_meta_val_str(handle(), key.c_str(), value.data(), value.size())) >=
         static_cast<std::int32_t>(value.size())) {
    value.resize(static_cast<std::size_t>(length) + 1);
  }
  if (length < 0) return std::nullopt;
  value.resize(static_cast<std::size_t>(length));
  return value;
}

bool ModelFacts::supports_cache_type(std::string_view type, bool for_k, std::string* why) const {
  const ggml_type ggml = cache_type(type);
  std::string reason;
  if (ggml == GGML_TYPE_COUNT) {
    reason = "'" + std::string(type) + "' is not a cache type; the types are " + cache_type_names();
  } else {
    const std::int64_t block = ggml_blck_size(ggml);
    for (const std::int32_t size : for_k ? head_sizes_k : head_sizes_v) {
      if (size % block == 0) continue;
      reason = "a " + std::string(type) + " cache needs heads whose size divides by " +
               std::to_string(block) + ", and this model's have " + std::to_string(size);
      break;
    }
  }
  if (reason.empty()) return true;
  if (why != nullptr) *why = reason;
  return false;
}

bool is_cache_type(std::string_view name) { return cache_type(name) != GGML_TYPE_COUNT; }

std::string cache_type_names() {
  std::string names;
  for (const ggml_type type : kCacheTypes) {
    names += (names.empty() ? "" : ", ") + std::string(ggml_type_name(type));
  }
  return names;
}

}  // namespace outrider::llama
