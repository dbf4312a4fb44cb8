// llama-server's names of options that have another name here, for whoever comes from there.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace outrider::tools {

// Whether llama-server has an option `name` ("-np", "--parallel") which has another name here, or
// is not there. Not all that it has are known.
bool is_llamas(std::string_view name);

// What stands here in place of llama-server's option: "llama-server's -np is --slots in Outrider".
// `options`: the long names of the command's own. Empty where `name` is none of llama-server's, or
// what stands in its place is not an option of the command.
std::string in_place_of_llamas(std::string_view name, std::span<const std::string> options);

}  // namespace outrider::tools
