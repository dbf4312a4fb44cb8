// DrafterKind: what is known of a drafter before one is made. All drafters are rows of one table
// (draft/drafter_table.h), and whoever wants to know something of one asks there.
#pragma once

#include <string_view>

namespace outrider {

struct LookupKind;

// What a drafter's guesses come from.
enum class GuessesFrom {
  kText,    // the text, files and earlier texts; so any text can be replayed through it
  kLogits,  // what the target found likely in its run
  kModel,   // a draft model
  kHidden,  // the target's hidden states in its run: the drafter is a head
};

// What of a request's DraftShape a drafter's guesses depend on.
struct ShapeUse {
  bool branches = false;
  bool split_p = false;
  bool stops = false;  // draft_p_min and draft_p_ratio
};

// The model whose file a drafter needs: none, a draft, or the target itself.
enum class NeededModel { kNone, kDraft, kTarget };

// A row of the table. All texts are static storage.
struct DrafterKind {
  // In options, requests, results and statistics. A head that is a draft is called as GGUF files
  // call its architecture.
  std::string_view name;
  std::string_view help = {};  // what it guesses from, a phrase; empty for drafts
  GuessesFrom from = GuessesFrom::kText;
  NeededModel model = NeededModel::kNone;
  // Its model guesses a block of tokens in one pass, so branches cost no pass.
  bool guesses_at_once = false;
  const LookupKind* lookup = nullptr;  // the rest of it where `model` is kNone; else null
};

// What a draft is called that is no head.
inline constexpr std::string_view kDraftModelName = "draft-model";

}  // namespace outrider
