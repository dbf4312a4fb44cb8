#include "serve/completion_result.h"

namespace outrider {

std::string_view ended_by_name(EndedBy by) {
  switch (by) {
    case EndedBy::kItself:
      return "itself";
    case EndedBy::kClient:
      return "client";
    case EndedBy::kTimeout:
      return "timeout";
    case EndedBy::kUnload:
      return "unload";
    case EndedBy::kShutdown:
      return "shutdown";
  }
  return "itself";
}

}  // namespace outrider
