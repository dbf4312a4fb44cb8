// The table of all drafters, and what follows from it: their names and order, what is said of them,
// and the files that they take. A new drafter is its own files and a row here; what one is made of
// that has a model, only the backend knows (src/backend).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "draft/base/drafter_kind.h"
#include "draft/base/drafter_plan.h"
#include "draft/base/lookup_drafter.h"

namespace outrider {

// All drafters that there are, in the order in which they are listed.
std::span<const DrafterKind> drafter_kinds();

// Their names, for every interface that takes names.
extern const std::span<const std::string_view> kDrafterNames;

// The names of those that guess from text alone.
extern const std::span<const std::string_view> kTextDrafters;

// Null: there is none of this name.
const DrafterKind* find_drafter_kind(std::string_view name);

// kNone also for a name that is not in the table.
NeededModel needed_model(std::string_view drafter);

// What the guesses of a drafter of the table depend on: those of a model on the whole shape.
ShapeUse shape_use(const DrafterKind& kind);

// What a draft is called whose file has this architecture.
std::string_view draft_name(std::string_view architecture);

// Whether a draft may be called so.
bool is_draft_name(std::string_view name);

// Whether it asks a draft, whatever it is called; whether it asks the target's own head.
bool mentions_draft(const DrafterPlan& plan);
bool mentions_own_head(const DrafterPlan& plan);

// For those who tell drafters apart by colours. 0 is the draft, whatever it is called, as a target
// has one; the others follow in the order of the table, then those that are not in it, all alike.
std::size_t drafter_place(std::string_view name);

// Those that need no model, in the order in which they propose.
std::span<const LookupKind* const> lookup_kinds();

// Null: there is none of this name.
const LookupKind* find_lookup_kind(std::string_view name);

// The names of those that take files.
extern const std::span<const std::string_view> kFileDrafters;

// The names of those of them whose files have tiers.
extern const std::span<const std::string_view> kTieredDrafters;

// All tiers of all of them.
extern const std::span<const std::string_view> kFileTiers;

// kInvalidArgument, about "drafter" for one that takes no files, and about "tier" for a tier
// that the drafter does not have. An empty tier is fine.
Status check_file_drafter(const DrafterFile& file);

// As what options name such a file. REQUIRES: check_file_drafter() has passed. An empty tier is the
// first.
const FileOption& file_option_of(const DrafterFile& file);

// Maps or reads the file and checks that it is for `tokenizer`. Errors, each naming the file: those
// of check_file_drafter and of the kind's own LookupFiles::open.
Result<OpenedDrafterFile> open_drafter_file(const DrafterFile& file, const TokenizerId& tokenizer);

}  // namespace outrider
