#include "tools/vocabulary_file.h"

#include <utility>

#include "llama/files/model_file.h"

namespace outrider::tools {

Result<VocabularyFile> VocabularyFile::open(const std::string& path, Terminal& terminal) {
  Result<std::shared_ptr<llama::ModelFile>> file =
      llama::ModelFile::load(path, /*n_gpu_layers=*/0, /*extra_bufts=*/false,
                             terminal.load_hooks("reading the vocabulary"));
  terminal.progress.clear();
  if (!file.ok()) return file.status();
  VocabularyFile result;
  const Vocabulary* vocabulary = &(*file)->text_vocabulary();
  result.vocabulary_ = std::shared_ptr<const Vocabulary>(std::move(*file), vocabulary);
  result.id_ = tokenizer_id(*vocabulary);
  return result;
}

}  // namespace outrider::tools
