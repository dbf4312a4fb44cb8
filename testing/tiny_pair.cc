#include "testing/tiny_pair.h"

namespace outrider::testing {

Status write_tiny_pair(const std::string& target_path, const std::string& draft_path,
                       const TinyPairOptions& options) {
  if (options.target.noise != 0.0F) {
    return invalid_argument("tiny pair: the target's own noise must be 0; set the pair's");
  }
  TinyModelOptions draft = options.target;
  draft.name += " draft";
  draft.noise = options.noise;
  draft.noise_seed = options.noise_seed;
  if (options.other_vocabulary) draft.vocabulary = options.draft_vocabulary;
  OUTRIDER_RETURN_IF_ERROR(write_tiny_gguf(target_path, options.target));
  return write_tiny_gguf(draft_path, draft);
}

}  // namespace outrider::testing
