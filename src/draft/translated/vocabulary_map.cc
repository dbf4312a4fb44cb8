#include "draft/translated/vocabulary_map.h"

#include <cstdio>
#include <unordered_map>

#include "draft/translated/piece_table.h"

namespace outrider {
namespace {

constexpr std::string_view kSample =
    "The lighthouse keeper wrote a letter every morning, although nobody had answered for more "
    "than twenty years. \"Perhaps,\" she said, \"the sea reads it first.\" It was raining again; "
    "the wind came from the north-west, and 3 of the 12 windows were broken.\n\n"
    "## How it works\n\n1. Read the file.\n2. Count the words in each line.\n3. Print the result, "
    "sorted by name.\n\n"
    "```python\ndef count_words(path: str) -> dict[str, int]:\n"
    "    \"\"\"Return how often each word appears.\"\"\"\n    counts = {}\n"
    "    with open(path, encoding=\"utf-8\") as file:\n        for line in file:\n"
    "            for word in line.lower().split():\n"
    "                counts[word] = counts.get(word, 0) + 1\n    return counts\n```\n\n"
    "for (int i = 0; i < n; ++i) { sum += values[i] * weights[i]; }\n\n"
    "{\"name\": \"Ada\", \"born\": 1815, \"languages\": [\"English\", \"French\"], \"alive\": "
    "false}\n\nIn conclusion, the temperature of the water is about 18.5 degrees, which is not "
    "unusual for the season. What do you think about that? I don't know yet.\n";

std::string joined(const Vocabulary& vocabulary, const std::vector<Token>& tokens) {
  std::string text;
  for (const Token token : tokens) text += vocabulary.piece(token);
  return text;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f %%", 100.0 * share);
  return text;
}

}  // namespace

std::string_view vocabulary_sample() { return kSample; }

double VocabularyMap::Share::of_sample() const {
  return sample_size == 0 ? 0.0 : static_cast<double>(sample_shared) / sample_size;
}

std::string VocabularyMap::Share::text() const {
  return std::to_string(shared) + " of the target's " + std::to_string(target_size) + " tokens (" +
         percent(static_cast<double>(shared) / target_size) + "), " + percent(of_sample()) +
         " of a sample text";
}

VocabularyMap::VocabularyMap(const VocabularySide& target, const VocabularySide& draft,
                             bool adds_space)
    : target_(target),
      draft_(draft),
      cutter_(*draft.vocabulary, adds_space),
      to_draft_(static_cast<std::size_t>(target.vocabulary->size()), kNoToken),
      taken_(static_cast<std::size_t>(draft.vocabulary->size()), false) {
  pair_text();
  pair_names();
  pair_roles();
  for (Token token = 0; token < target.vocabulary->size(); ++token) {
    if (to_draft(token) != kNoToken) pairs_.push_back({token, to_draft(token)});
  }
  taken_ = {};
}

// The first link of a token stays.
void VocabularyMap::link(Token target, Token draft) {
  if (target == kNoToken || draft == kNoToken) return;
  if (to_draft(target) != kNoToken || taken_[static_cast<std::size_t>(draft)]) return;
  to_draft_[static_cast<std::size_t>(target)] = draft;
  taken_[static_cast<std::size_t>(draft)] = true;
}

void VocabularyMap::pair_text() {
  const Vocabulary& vocabulary = *target_.vocabulary;
  const PieceTable pieces(vocabulary);
  for (Token token = 0; token < vocabulary.size(); ++token) {
    const std::string_view piece = vocabulary.piece(token);
    if (piece.empty() || pieces.find(piece) != token) continue;
    link(token, cutter_.pieces().find(piece));
  }
}

void VocabularyMap::pair_names() {
  if (!target_.name || !draft_.name) return;
  std::unordered_map<std::string, Token> names;
  for (Token token = 0; token < draft_.vocabulary->size(); ++token) {
    if (draft_.vocabulary->piece(token).empty()) names.emplace(draft_.name(token), token);
  }
  for (Token token = 0; token < target_.vocabulary->size(); ++token) {
    if (!target_.vocabulary->piece(token).empty()) continue;
    const std::unordered_map<std::string, Token>::const_iterator found =
        names.find(target_.name(token));
    if (found != names.end()) link(token, found->second);
  }
}

void VocabularyMap::pair_roles() {
  link(target_.end_of_text, draft_.end_of_text);
  link(target_.end_of_turn, draft_.end_of_turn);
}

Status VocabularyMap::count(const Options& options) {
  share_.shared = static_cast<std::int32_t>(pairs_.size());
  share_.target_size = target_.vocabulary->size();
  const Result<std::vector<Token>> sample =
      target_.vocabulary->tokenize(options.sample, /*add_special=*/false, /*parse_special=*/false);
  if (!sample.ok()) return sample.status().with_context("the target's tokenizer, a sample text");
  share_.sample_size = static_cast<std::int32_t>(sample->size());
  for (const Token token : *sample) share_.sample_shared += to_draft(token) != kNoToken;
  if (!pairs_.empty() && share_.of_sample() >= options.least_share) return Status();
  return unsupported("the vocabularies share too little: " + share_.text() + "; at least " +
                     percent(options.least_share) + " of the sample must be shared");
}

Result<VocabularyMap> VocabularyMap::create(const VocabularySide& target,
                                            const VocabularySide& draft, const Options& options) {
  const Result<std::vector<Token>> tokens =
      draft.vocabulary->tokenize(options.sample, /*add_special=*/false, /*parse_special=*/false);
  if (!tokens.ok()) return tokens.status().with_context("the draft's tokenizer, a sample text");
  const std::string spelt = joined(*draft.vocabulary, *tokens);
  const bool adds_space = spelt == " " + std::string(options.sample);
  if (!adds_space && spelt != options.sample) {
    return unsupported(
        "the draft's tokenizer does not give a text back as it was (it may drop case or spaces), "
        "so it cannot follow the target's");
  }
  VocabularyMap map(target, draft, adds_space);
  OUTRIDER_RETURN_IF_ERROR(map.count(options));
  return map;
}

}  // namespace outrider
