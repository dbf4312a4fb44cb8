// Which models belong together: what a GGUF file says of its family, for offering a draft.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider::llama {

struct GgufFamily {
  std::string architecture;     // general.architecture
  std::string basename;         // general.basename, or empty
  std::uint64_t tokenizer = 0;  // hash of its tokens in order; 0: it has none
  // Of all its files, those that a token takes: of a mixture of experts some of them.
  std::uint64_t n_parameters = 0;
  std::uint64_t file_bytes = 0;  // of all its files
};

// Whether models of the architecture have layers whose state cannot drop tokens: Mamba, RWKV, and
// those that mix such layers with attention.
bool has_recurrent_layers(std::string_view architecture);

// Ok where a model of the architecture, in the file at `path`, could take back what it guessed;
// else kUnsupported, with both. What a file says is known before its weights are read.
Status check_can_draft(const std::string& path, std::string_view architecture);

// Reads the header once: 10 to 100 ms for a vocabulary of 150,000 tokens. Errors:
// read_gguf_header()'s and check_is_model()'s.
Result<GgufFamily> read_gguf_family(const std::string& path);

// Whether `draft` is worth a try for `target`: the same tokens, the same architecture or base name,
// a third of the parameters or less (a larger one costs more than it gains), and no recurrent
// layers.
bool could_draft(const GgufFamily& draft, const GgufFamily& target);

}  // namespace outrider::llama
