// "timings": how long a completion took, under llama-server's names, which its clients read in the
// answers of OpenAI's endpoints too.
//
// Tested by llama_form_test.cc.
#pragma once

#include "engine/request.h"
#include "json/json.h"

namespace outrider::http {

// All are numbers: a rate of nothing is 0.
json::Json timings_json(const Completion& completion);

}  // namespace outrider::http
