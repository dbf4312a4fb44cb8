// The JSON strings that match a regular expression, as an expression of a GBNF grammar.
//
// The syntax is that of JSON schema's "pattern" (ECMA-262), as far as it describes a regular
// language: characters, ".", classes, \d \w \s, groups (named ones, too), |, * + ? {n,m} (lazy ones
// are the same texts), ^ at the beginning and $ at the end of an alternative. As in JSON schema, a
// pattern without ^ and $ may match anywhere in the text.
//
// A character that JSON escapes is written escaped: " \ and the line feed as \" \\ \n. Of the other
// control characters only \b \f \r \t can be written, and a "/" only as it is, so where a pattern
// allows any character a few of its texts are left out.
//
// llama-common's converter is not used for patterns: it needs ^ and $, knows no \d, lets "." be a
// quotation mark, which ends the string, and prints to stderr.
//
// Tested by pattern_test.cc, against std::regex over all short texts.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider::llama {

// With the quotation marks around the string. `pattern` is UTF-8.
// Errors: kInvalidArgument with what is not a pattern, or is none of a regular language
// (look-around, references to groups, \b, an anchor inside).
Result<std::string> pattern_expression(std::string_view pattern);

}  // namespace outrider::llama
