// What a search for a draft may choose from: the tokens that texts need, the types of weights that
// are cheap here, the layers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/make_draft_run.h"
#include "llama/gguf/draft_writer.h"
#include "run/harness.h"

namespace outrider::lab {

// gguf::read_draft_source(). Errors: its own; kUnsupported for a model of which no draft can be
// made, since it could not take back what it guessed.
Result<gguf::DraftSource> read_source(const std::string& path);

// Chooses the tokens of a model that a smaller vocabulary keeps.
class DraftTokens {
 public:
  // Reads the vocabulary of `source` and cuts `texts`, which are valid UTF-8, with its tokenizer.
  // Errors: ModelFile::load_vocabulary()'s, FileVocabulary::read()'s.
  static Result<std::unique_ptr<DraftTokens>> create(const std::string& source,
                                                     const std::vector<std::string>& texts,
                                                     const Watcher& watcher);
  ~DraftTokens();

  // Of the vocabulary; and the least that any choice keeps: what the texts need, and what no
  // vocabulary can do without.
  std::int32_t size() const;
  std::int32_t least() const;

  // The texts' tokens and the most frequent others, `n` in all, or as many as there must be;
  // rising. REQUIRES: n > 0
  std::vector<Token> chosen(std::int32_t n) const;

 private:
  struct Parts;
  explicit DraftTokens(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// What the plan names, or what suggests itself. `tokens`: null where the vocabulary cannot be cut.
// `notes` gets what cannot be tried, and why. Errors: kInvalidArgument where the plan names what
// cannot be; kUnsupported where it names what this source cannot have.
Result<DraftSearch> search_space(const MakeDraftPlan& plan, const gguf::DraftSource& source,
                                 const DraftTokens* tokens, std::vector<std::string>& notes);

}  // namespace outrider::lab
