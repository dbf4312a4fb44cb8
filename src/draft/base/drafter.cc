#include "draft/base/drafter.h"

namespace outrider {
namespace {

constexpr Range kChance{.min = 0.0, .max = 1.0};

constexpr Field<DraftShape> kFields[] = {
    {.name = "branches",
     .help = "leaves of each drafter's guesses at most; 1: a chain (chains of several drafters may "
             "part). auto: 1 for the draft model, else as width; with width=auto 3 and 8",
     .place = OrAuto<DraftShape>{&DraftShape::branches, kBranchesByWidth},
     .range = {.min = 1.0, .max = kMaxStepWidth}},
    {.name = "split_p",
     .help = "branch where the next likeliest token has at least this probability",
     .place = &DraftShape::split_p,
     .range = kChance},
    {.name = "draft_p_min",
     .help = "stop drafting where the likeliest token is less probable than this",
     .place = &DraftShape::p_min,
     .range = kChance},
    {.name = "draft_p_ratio",
     .help = "stop drafting where the likeliest token is less than this many times as likely as "
             "the next one; 0: no such stop",
     .place = &DraftShape::p_ratio,
     .range = {.min = 0.0}},
};

}  // namespace

std::span<const Field<DraftShape>> shape_fields() { return kFields; }

Status validate(const DraftShape& shape) {
  const Field<DraftShape>& branches = field_named(shape_fields(), "branches");
  if (!branches.range.contains(shape.branches)) {  // nor kBranchesByWidth, which check() takes
    return out_of_range(branches.name, shape.branches, branches.range, {}, /*whole=*/true);
  }
  return check(shape_fields(), shape);
}

Status draft_one(Drafter& drafter, DraftRequest& request) {
  OUTRIDER_RETURN_IF_ERROR(drafter.draft(std::span(&request, 1)));
  return request.failure;
}

}  // namespace outrider
