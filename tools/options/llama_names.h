// llama-server's names of options that have another name here, for whoever comes from there.
#pragma once

#include <string>
#include <string_view>

namespace outrider::tools {

// What stands here in place of llama-server's option `name` ("-np", "--parallel"): "llama-server's
// -np is --slots in Outrider". Empty: it is none of llama-server's that are known.
std::string in_place_of_llamas(std::string_view name);

}  // namespace outrider::tools
