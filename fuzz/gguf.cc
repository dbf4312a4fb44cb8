// What a model file says about itself is read in this process, before any loader sees it: so it
// must survive all files. What llama.cpp does with the file behind that happens in a process of its
// own (tests/isolated_target_test.cc).
#include <string>

#include "fuzz/targets.h"
#include "llama/files/gguf_header.h"
#include "testing/tiny_dir.h"

namespace outrider::fuzz {

void gguf(Bytes input) {
  static const testing::TempDir folder;
  const std::string path = folder.file("model.gguf");
  testing::write_bytes(path, std::string(text(input)));
  const Result<llama::GgufHeader> header = llama::read_gguf_header(path);
  if (!header.ok()) return;
  static_cast<void>(llama::check_is_model(path, *header));
  static_cast<void>(header->k_elements() + header->v_elements());
  if (header->file_bytes != input.size()) violated("another file's size");
  if (header->tensor_bytes > input.size()) violated("tensors beyond the end of the file");
}

}  // namespace outrider::fuzz
