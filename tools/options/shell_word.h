// Arguments that can be pasted into a shell.
//
// Tested by model_folder_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace outrider::tools {

// `argument` as one word that a shell reads as just that: in quotes where it has more than letters,
// digits and the like.
std::string shell_word(std::string_view argument);

}  // namespace outrider::tools
