#include "serve/runtime_status.h"

namespace outrider {

std::string_view model_role_name(ModelRole role) {
  return role == ModelRole::kTarget ? "target" : "draft";
}

std::string_view model_state_name(ModelState state) {
  switch (state) {
    case ModelState::kAbsent:
      return "absent";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kReady:
      return "ready";
    case ModelState::kFailed:
      return "failed";
  }
  return "absent";
}

}  // namespace outrider
