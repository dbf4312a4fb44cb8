// "Did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// The one of `known` that `word` was probably meant to be: the first of those that are nearest by
// letters put in, left out, replaced or swapped with their neighbour, at most a third of the word's
// letters (leading dashes apart) and two; else, for words of three letters and more, the first that
// begins with it. Empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace outrider
