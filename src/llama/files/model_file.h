// ModelFile: the weights and the vocabulary of one GGUF file, loaded by llama.cpp.
//
// Shared by the contexts (llama/model/llama_model.h) that run it; freed with the last of them.
// Immutable after load(), any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "llama/files/adapters.h"
#include "llama/files/gguf_states.h"
#include "model/model_info.h"
#include "model/model_options.h"
#include "model/vocabulary.h"
#include "threads/teams.h"

struct llama_model;
struct llama_model_params;

namespace outrider::llama {

class LlamaVocabulary;

// What a model says about itself.
struct ModelFacts : ModelInfo {
  std::string ftype_name;  // llama.cpp's name of the file type: "Q4_1", "Q4_K - Medium"
  std::int32_t n_vocab = 0;
  std::int32_t n_layer = 0;            // without prediction layers
  std::int32_t n_prediction = 0;       // prediction layers (MTP) that were loaded
  std::uint64_t prediction_bytes = 0;  // of their tensors
  std::int32_t n_embd = 0;
  std::int32_t n_head = 0;  // of the first layer, as is n_head_kv
  std::int32_t n_head_kv = 0;
  std::vector<std::int32_t> head_sizes_k;  // distinct sizes that some layer may have; not empty
  std::vector<std::int32_t> head_sizes_v;  // unless the model has no attention
  std::uint64_t k_elements = 0;            // of one token's keys over all layers, an upper bound
  std::uint64_t v_elements = 0;
  RecurrentStates states;       // beside them
  std::int32_t n_swa = 0;       // sliding window in tokens; 0: none
  bool position_table = false;  // GgufHeader's: no sequence may be longer than n_ctx_train
  bool recurrent = false;       // Mamba, RWKV, ...
  bool hybrid = false;          // attention and recurrent layers
  bool has_encoder = false;
  bool has_decoder = true;
  bool diffusion = false;
  bool all_on_cpu = true;    // no other device holds weights
  bool extra_bufts = true;   // as given to load(): repacked weights where ggml has them
  std::string lock_failure;  // why packed weights are not locked, though use_mlock wanted it
  // What contexts must have as their yarn_orig_ctx (llama/files/rope_factors.h); 0: the file's own.
  std::int32_t yarn_orig_ctx = 0;

  // Bytes that one token's keys and values take over all layers with these cache types ("f16",
  // "q8_0", ...), an upper bound for sliding windows; 0 for an unknown type.
  std::uint64_t kv_bytes_per_token(std::string_view type_k, std::string_view type_v) const;

  // True when keys (else values) can be cached in this type with flash attention: the type is one
  // of cache_type_names(), and its blocks divide every head. `why` (may be null) gets the reason
  // when not.
  bool supports_cache_type(std::string_view type, bool for_k, std::string* why) const;
};

// How to load a file.
struct FileOptions {
  std::int32_t n_gpu_layers = -1;  // layers on GPUs or workers, negative for all
  // Let ggml repack weights into its own layouts: faster for some types, not always exact. Where
  // AMX would take what it cannot multiply, llama.cpp ends the process when a context is made:
  // settings_rule() (llama/exactness/exactness_rule.h) is what decides.
  bool extra_bufts = true;

  KernelChoice kernels = KernelChoice::kAuto;
  std::int32_t n_ctx = 0;  // tokens of a sequence, for llama/files/rope_factors.h; 0: as trained

  // "host:port" of workers that take the layers, instead of local GPUs, in this order and in
  // proportion to their free memory (llama/workers/rpc_worker.h). When one of them dies, so does
  // this process.
  std::vector<std::string> workers;

  std::vector<float> tensor_split;  // as ModelOptions has them
  std::vector<std::string> lora;
  bool use_mmap = true;
  bool use_mlock = false;
  bool prediction = false;  // load the file's prediction layers (GgufHeader::n_prediction), too
  // A trained head's file, which writes no text on its own. REQUIRES then: llama/heads/head_file.h
  // has checked it.
  bool head = false;
  // The head's target has weights on GPUs. Some of them may be the head's too (its output), so the
  // head has the GPUs even with no layers there: llama.cpp ends the process where nobody can read
  // a weight.
  bool target_on_gpus = false;

  // Whether GPUs have no part in it at all. With no layers there llama.cpp would still give them
  // batches of 32 tokens and more, in other bits.
  bool keeps_off_gpus() const { return workers.empty() && n_gpu_layers == 0 && !target_on_gpus; }
};

// What `options` says of the file.
FileOptions file_options(const ModelOptions& options, bool extra_bufts);

// Why the file at `path` was not loaded, from llama.cpp's reason ("" or ": ..."): kUnsupported for
// an architecture that it does not know, kResourceExhausted where memory is short, else kInternal.
// `on_gpus`: layers were to be on GPUs.
Status load_failure(const std::string& path, const std::string& because, bool on_gpus);

class ModelFile {
 public:
  // Loads the file at `path`.
  // Errors, each naming the file: kNotFound; kInvalidArgument (a folder, not GGUF, no language
  // model, more shares than llama.cpp takes); kDataLoss (cut off, damaged); kUnsupported
  // (architecture, GGUF version, encoder, diffusion, embedding models); kResourceExhausted;
  // kCancelled; kInternal with llama.cpp's reason.
  static Result<std::shared_ptr<ModelFile>> load(const std::string& path,
                                                 const FileOptions& options,
                                                 const LoadHooks& hooks);
  static Result<std::shared_ptr<ModelFile>> load(const std::string& path, std::int32_t n_gpu_layers,
                                                 bool extra_bufts, const LoadHooks& hooks) {
    FileOptions options;
    options.n_gpu_layers = n_gpu_layers;
    options.extra_bufts = extra_bufts;
    return load(path, options, hooks);
  }

  // Only the vocabulary and the metadata: no context can be made of it, and of the facts there are
  // no more than path, names, chat template and vocabulary size. Errors: as load().
  static Result<std::shared_ptr<ModelFile>> load_vocabulary(const std::string& path,
                                                            const LoadHooks& hooks);
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  const ModelFacts& facts() const { return facts_; }

  // Lives as long as this. text_vocabulary() is the same object for those who do not include
  // llama/vocabulary/vocabulary.h.
  const LlamaVocabulary& vocabulary() const { return *vocabulary_; }
  const Vocabulary& text_vocabulary() const;

  // All scalar metadata of the file as text, in the file's order. Arrays are left out.
  std::vector<std::pair<std::string, std::string>> metadata() const;
  std::optional<std::string> metadata(const std::string& key) const;

  // As ModelFacts says.
  bool supports_cache_type(const std::string& type, bool for_k, std::string* why) const {
    return facts_.supports_cache_type(type, for_k, why);
  }

  // Where llama.cpp's lines go while a context of this model works: LoadHooks::log of load().
  const LogSink& log() const { return log_; }

  llama_model* handle() const;  // for this layer
  const Adapters& adapters() const { return adapters_; }
  threads::Teams& teams() const { return *teams_; }  // compute its graphs

 private:
  struct Handle;
  ModelFile();
  Status read(const std::string& path, llama_model_params params, const LoadHooks& hooks);
  Status read_vocabulary();

  std::unique_ptr<Handle> handle_;
  ModelFacts facts_;
  LogSink log_;
  std::unique_ptr<LlamaVocabulary> vocabulary_;
  Adapters adapters_;
  std::shared_ptr<threads::Teams> teams_ = threads::Teams::shared();
};

// The types that a key or value cache may have, as the field cache_type_k takes them: "f16, q8_0,
// ...".
std::string cache_type_names();
bool is_cache_type(std::string_view name);

}  // namespace outrider::llama
