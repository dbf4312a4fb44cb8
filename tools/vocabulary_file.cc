#include "tools/vocabulary_file.h"

#include <utility>

#include "llama/files/model_file.h"

namespace outrider::tools {

Result<VocabularyFile> read_vocabulary(const std::string& path, Terminal& terminal) {
  Result<std::shared_ptr<llama::ModelFile>> file =
      llama::ModelFile::load(path, /*n_gpu_layers=*/0, /*extra_bufts=*/false,
                             terminal.load_hooks("reading the vocabulary"));
  terminal.progress.clear();
  if (!file.ok()) return file.status();
  const Vocabulary& vocabulary = (*file)->text_vocabulary();
  return VocabularyFile{.vocabulary = {std::move(*file), &vocabulary},
                        .id = tokenizer_id(vocabulary)};
}

}  // namespace outrider::tools
