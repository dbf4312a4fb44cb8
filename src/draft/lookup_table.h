// The table of the drafters that need no model, and what follows from it.
#pragma once

#include <span>
#include <string_view>

#include "draft/base/drafter_plan.h"
#include "draft/base/lookup_drafter.h"

namespace outrider {

// All kinds, in the order in which they propose and are listed.
std::span<const LookupKind> lookup_kinds();

// All drafters that there are, for every interface that takes names: the draft model, these kinds
// in their order, the target's own heads, and heads in files of their own.
extern const std::span<const std::string_view> kDrafterNames;

// Null: there is none of this name.
const LookupKind* find_lookup_kind(std::string_view name);

// The names of those that take files.
extern const std::span<const std::string_view> kFileDrafters;

// All tiers of all of them.
extern const std::span<const std::string_view> kFileTiers;

// kInvalidArgument, about "drafter" for one that takes no files, and about "tier" for a tier
// that the drafter does not have. An empty tier is fine.
Status check_file_drafter(const DrafterFile& file);

// Maps or reads the file and checks that it is for `tokenizer`. Errors, each naming the file: those
// of check_file_drafter and of the kind's own LookupFiles::open.
Result<OpenedDrafterFile> open_drafter_file(const DrafterFile& file, const TokenizerId& tokenizer);

}  // namespace outrider
