// What a GGUF file says about itself, read without loading it: the checks that give a clear message
// before llama.cpp sees the file, and the numbers for an estimate of the memory it needs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "llama/files/gguf_states.h"

namespace outrider::llama {

// Heads that are trained for a target, in files of their own (llama/heads/head_file.h).
struct TrainedHead {
  std::string_view architecture;
  std::string_view name;  // for people
};
inline constexpr TrainedHead kEagle3Head = {"eagle3", "EAGLE-3"};
inline constexpr TrainedHead kDflashHead = {"dflash", "DFlash"};
inline constexpr std::array kTrainedHeads = {kEagle3Head, kDflashHead};

struct GgufHeader {
  std::string architecture;        // general.architecture
  std::string kind;                // general.type: "model", "adapter", "mmproj", ...; often empty
  std::string name;                // general.name, or empty
  std::uint64_t file_bytes = 0;    // of this file
  std::uint64_t tensor_bytes = 0;  // in this file
  // Of all files of the model, as this one says: the first may hold metadata alone.
  std::int64_t n_tensors = 0;
  std::int32_t n_splits = 1;     // files that the model is spread over, at most 65,535
  std::int32_t split = 0;        // which of them this is, from 0
  std::int32_t n_vocab = 0;      // tokens listed in the file; 0: none
  std::int32_t n_ctx_train = 0;  // 0 here and below: not said
  // Of models with two sets of factors for rotary positions ("longrope": Phi-3, Phi-4-mini), the
  // tokens of the longest context that the first set is for; 0: no two sets.
  std::int32_t short_context = 0;
  // Positions are rows of a table that has n_ctx_train of them (GPT-2, StarCoder, some MPT). ggml
  // ends the process for a position behind it.
  bool position_table = false;
  std::int32_t n_layer = 0;  // all of them
  // Of them, prediction layers (MTP) whose tensors are there, in whichever file of the model. Some
  // models declare layers that are a model of their own: 0 then.
  std::int32_t n_prediction = 0;
  std::uint64_t prediction_bytes = 0;  // of their tensors
  std::int32_t n_embd = 0;
  std::int32_t n_head = 0;  // the most of any layer
  std::int32_t n_swa = 0;
  bool causal = true;
  bool attention_changes_scores = false;   // by soft caps, or by the distance (ALiBi)
  bool keys_hold_values = false;           // MLA: the cache has no values of their own
  std::vector<std::int32_t> n_head_kv;     // [n_layer]; 0: a recurrent layer, or one without cells
  std::vector<bool> windowed;              // [n_layer]: with a sliding window; or empty: not known
  std::vector<std::int32_t> head_sizes_k;  // distinct, of full and of sliding-window layers
  std::vector<std::int32_t> head_sizes_v;
  RecurrentStates states;

  // Elements that one token's keys (values) take over all layers, an upper bound.
  std::uint64_t k_elements() const;
  std::uint64_t v_elements() const;
};

// Reads and checks the header: the file is there, readable, GGUF, complete. Does not look at the
// tensors' data, and at a split model's other files only for prediction layers, which may be there:
// where one is missing, it is as if it held none.
// Errors: kNotFound; kInvalidArgument when it is a folder, not readable or not GGUF; kUnsupported
// for a GGUF version that llama.cpp does not read; kDataLoss when it is cut off or damaged.
Result<GgufHeader> read_gguf_header(const std::string& path);

// Ok when the file may hold a model that writes text, else why not: an adapter, a part of a model,
// a vocabulary, an embedding model (kInvalidArgument, kUnsupported). Of a split model `path` is the
// first file, and the others are there and whole: else read_gguf_header()'s errors of them.
Status check_is_model(const std::string& path, const GgufHeader& header);

// The files of a model that is spread over `n_splits`, from the first one's path
// ("...-00001-of-00003.gguf"); `path` alone where its name is another, which llama.cpp refuses.
std::vector<std::string> split_files(const std::string& path, std::int32_t n_splits);

// The same of a file whose header was not read. Reads it where the name is that of a split model's
// first file; llama.cpp takes no other. Errors: then read_gguf_header()'s.
Result<std::vector<std::string>> files_of_model(const std::string& path);

}  // namespace outrider::llama
