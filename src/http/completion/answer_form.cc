#include "http/completion/answer_form.h"

namespace outrider::http {

void append_event(const json::Json& data, std::string& out, std::string_view name) {
  if (!name.empty()) out.append("event: ").append(name) += '\n';
  out.append("data: ").append(json::encode(data)) += "\n\n";
}

}  // namespace outrider::http
