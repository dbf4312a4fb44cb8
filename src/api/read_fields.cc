#include "api/read_fields.h"

namespace outrider::api {

void read_or_auto(JsonFields& fields, std::string_view name, std::int32_t& value,
                  std::int32_t automatic, const Range& range) {
  const json::Json* given = fields.any(name);
  if (given == nullptr) return;
  if (is_text(*given, "auto")) {
    value = automatic;
    return;
  }
  const std::optional<std::int64_t> number = as_integer(*given);
  if (!number || !range.contains(static_cast<double>(*number))) {
    return fields.refuse(std::string(name), *given, "'auto', or " + whole_range_text(range));
  }
  value = static_cast<std::int32_t>(*number);
}

}  // namespace outrider::api
