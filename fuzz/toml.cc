#include "tools/toml.h"

#include "fuzz/targets.h"

namespace outrider::fuzz {

void toml(Bytes input) {
  const tools::TomlFile file = tools::parse_toml(text(input));
  if (!file.error.empty() && !file.error.starts_with("line ")) {
    violated("an error without a line: " + file.error);
  }
}

}  // namespace outrider::fuzz
