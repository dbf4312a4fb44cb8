// /set: a request's fields by name, one at a time, while a chat goes on.
//
// Names, ranges and errors are those of the one schema (request/completion_request.h); a value is
// read as in JSON, where quotes around a text may be left out.
// Tested by chat_settings_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "request/completion_request.h"

namespace outrider::tools {

// What can be set, in the order of documentation.
std::vector<std::string> setting_names();

// Puts `value` into the field; "default" is the value without being set. '-' serves as '_' in
// names. Errors: kNotFound for a name that there is none of, with the nearest; kInvalidArgument,
// about the field. On error the request stays as it was.
Status change_setting(CompletionRequest& request, std::string_view name, const std::string& value);

// The field's value for people: "0.8", "auto", "[\"a\"]"; "not set". Errors: kNotFound as above.
Result<std::string> setting_text(const CompletionRequest& request, std::string_view name);

// A line "name   value" for each field whose value is not the default; "" for none.
std::string changed_settings(const CompletionRequest& request);

}  // namespace outrider::tools
