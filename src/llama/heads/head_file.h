// HeadFile: a trained head in a file of its own, as its header has it, and whether it fits a
// target.
//
// llama.cpp ends the process on many heads that do not fit, and guesses from memory that is not
// theirs with some (testing/llama_heads.h lists them). So all that it would not refuse by itself is
// checked here, before it sees the file. A new kind of head is a row of the table in head_file.cc.
//
// Tested by head_file_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "llama/files/gguf_header.h"
#include "llama/heads/hidden_states.h"

namespace outrider::llama {

enum class HeadKind { kNone, kEagle3, kDflash };

// The blocks of a DFlash head. What a file does not say is as llama.cpp takes it.
struct BlockShape {
  std::int32_t n_tokens = 16;  // of a pass: the root, and mask tokens
  Token mask = kNoToken;       // stands for each token that is to be guessed
  bool causal = false;         // a block's tokens attend to those before them alone
};

struct HeadFile {
  struct Tensor {
    std::string name;
    std::string type;                  // ggml's: "i64", "q8_0"
    std::array<std::int64_t, 4> size;  // as ggml has it: columns, rows, ...
  };

  std::string path;
  std::string architecture;
  HeadKind kind = HeadKind::kNone;   // kNone: the file is something else; no more is known then
  std::vector<std::int32_t> layers;  // of the target, whose inputs it reads
  std::uint64_t file_bytes = 0;      // of all its files
  std::int32_t n_layer = 0;          // its own
  std::int32_t n_embd = 0;           // floats of a token's state in it
  std::int32_t n_embd_target = 0;    // of the target, as the file says
  std::int32_t n_vocab = 0;          // tokens listed in the file: the target's
  bool keys_are_values = true;       // heads of attention have as many of both
  std::vector<Tensor> tensors;
  std::vector<std::int64_t> target_ids;  // d2t: of the tokens that its output has; empty: all

  BlockShape block;  // kDflash

  const Tensor* find(const std::string& name) const;  // null: it has none
  HiddenStates states() const { return {.last = false, .layer_inputs = layers}; }
};

// What of a target a head must fit.
struct HeadTarget {
  std::string path;
  std::string architecture;
  std::int32_t n_layer = 0;  // without prediction layers
  std::int32_t n_embd = 0;
  std::int32_t n_vocab = 0;
};

// A file that is no head is no error. Errors: read_gguf_header()'s.
Result<HeadFile> read_head_file(const std::string& path);
// Likewise, where the file's header was read.
Result<HeadFile> read_head_file(const std::string& path, const GgufHeader& header);

// "EAGLE-3". REQUIRES: kind is not kNone.
std::string head_kind_name(HeadKind kind);

// Whether llama.cpp can run the head beside this target. Errors, naming the file and what is wrong
// and would be right: kDataLoss for a file that lacks something; kUnsupported for one that does not
// fit the target. REQUIRES: kind is not kNone.
Status check_head(const HeadFile& head, const HeadTarget& target);

}  // namespace outrider::llama
