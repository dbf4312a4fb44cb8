#include "draft/base/drafter.h"

#include <cmath>

namespace outrider {
namespace {

Status check_share(const char* name, float value) {
  if (value >= 0.0f && value <= 1.0f) return Status();
  return invalid_argument(std::string(name) + " is " + std::to_string(value) +
                          ", but must be from 0 to 1");
}

}  // namespace

Status validate(const DraftShape& shape) {
  if (shape.branches < 1) {
    return invalid_argument("--branches is " + std::to_string(shape.branches) +
                            ", but must be at least 1 (1 is a chain)");
  }
  OUTRIDER_RETURN_IF_ERROR(check_share("--split-p", shape.split_p));
  OUTRIDER_RETURN_IF_ERROR(check_share("--draft-p-min", shape.p_min));
  if (shape.p_ratio >= 0.0f && std::isfinite(shape.p_ratio)) return Status();
  return invalid_argument("--draft-p-ratio is " + std::to_string(shape.p_ratio) +
                          ", but must be at least 0 (0: no such stop)");
}

}  // namespace outrider
