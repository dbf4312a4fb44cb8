// Which models belong together: what a GGUF file says of its family, for offering a draft.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace outrider::llama {

struct GgufFamily {
  std::string architecture;        // general.architecture
  std::string basename;            // general.basename, or empty
  std::uint64_t tokenizer = 0;     // hash of its tokens in order; 0: it has none
  std::uint64_t n_parameters = 0;  // of all its files
  std::uint64_t file_bytes = 0;    // likewise
};

// Reads the header: 10 to 100 ms for a vocabulary of 150,000 tokens. Errors: read_gguf_header()'s
// and check_is_model()'s.
Result<GgufFamily> read_gguf_family(const std::string& path);

// Whether `draft` is worth a try for `target`: the same tokens, the same architecture or base name,
// and a third of the parameters or less (a larger one costs more than it gains).
bool could_draft(const GgufFamily& draft, const GgufFamily& target);

}  // namespace outrider::llama
