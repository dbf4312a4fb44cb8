// Options that do nothing alone, and what each of them needs.
//
//   {draft-ctx, draft-threads, ...}  needs  draft-model or hf-repo-draft
//   {branches}                       needs  a drafter that branches, among those that are asked
//
// Who types an option means something by it. Where one was typed, and nothing of what it needs is
// there, that is wrong usage, which names both. What comes from the environment or a config file is
// shared by several commands, and passes. So does a need that was switched off (-d '',
// --dry-multiplier 0, --drafter none), which somebody said, and a value that is the default.
//
// Not in the table, although they may do nothing:
//  - what holds whatever else is there: permissions (--force, --allow-files) and limits that are
//    not reached (--max-models, --prompt-share);
//  - --width and --rule: a target is opened for them, whether anybody guesses or not, so that a
//  call
//    gives the same text with --drafter none behind it;
//  - what something later may bring: samplers and drafters of `chat` (/set) and of `serve`
//    (requests), so those rows name other commands;
//  - what depends on the place and not on the call: --color and --history want a terminal,
//    --gpu-layers a GPU.
//
// Tested by needs_test.cc for each row of the table, and by tests/cli_needs_test.cc on commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "draft/base/drafter_kind.h"
#include "draft/base/drafter_plan.h"

namespace outrider::tools {

// Options are called by their long names, without the dashes.
struct Need {
  std::vector<std::string_view> options;
  // One of these, wherever it is given. What a command has none of, it does otherwise: make-draft
  // has no --draft-model, since it makes one.
  std::vector<std::string_view> any = {};
  std::string_view give = {};  // with `any`: what would be right, behind "give"
  // In place of `any`: one of the drafters that are asked is so.
  bool (*used_by)(const DrafterKind&) = nullptr;
  std::vector<std::string_view> commands = {};  // of which it holds; empty: all
  bool warns = false;                           // instead of refusing
};

const std::vector<Need>& option_needs();

// What a command knows of its call that is in no option.
struct OptionFacts {
  std::vector<std::string> elsewhere = {};  // options that models of a config file have
  // Who is asked for guesses. Not given: whoever a request or a setting names later, or nobody,
  // since speculation was switched off.
  std::optional<DrafterPlan> drafters = std::nullopt;
};

// After parsing. Throws UsageError for an option of `command` that was typed and does nothing.
// Returns what to warn of.
std::vector<std::string> check_needs(const CLI::App& command, const OptionFacts& facts);

// Whether it was typed, and not only given by the environment or a config file.
bool was_typed(const CLI::App& command, std::string_view option);

}  // namespace outrider::tools
