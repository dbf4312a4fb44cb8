#include "tools/options/toml.h"

#include "fuzz/targets.h"

namespace outrider::fuzz {

void toml(Bytes input) {
  const Status status = tools::parse_toml(text(input)).status();
  if (!status.ok() && !status.message().starts_with("line ")) {
    violated("an error without a line: " + status.message());
  }
}

}  // namespace outrider::fuzz
