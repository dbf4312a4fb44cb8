#include "tools/field_options.h"

namespace outrider::tools {

std::string option_name(std::string_view field) {
  std::string name = "--" + std::string(field.substr(0, field.find('[')));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string option_message(const Status& status) {
  return status.message_with(option_name(status.field()));
}

void require_ok(const Status& status, const std::string& hint) {
  if (!status.ok()) throw UsageError(option_message(status), hint);
}

}  // namespace outrider::tools
