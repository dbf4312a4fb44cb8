// JSON-RPC requests that are wrong in one known way: for every method and every parameter of the
// table, for the request around them, and for the text itself.
#pragma once

#include <random>
#include <string>

namespace outrider::testing {

struct MalformedRequest {
  std::string text;   // no newline in it
  int code = 0;       // of the error that it must get
  std::string field;  // data.field must begin with it; empty: none is guaranteed
  std::string what;   // for messages
};

// Any one of them; the same state of `random` gives the same one. A target must be ready where they
// are sent, else parameters may be right and the answer still an error of another code.
MalformedRequest malformed_request(std::mt19937_64& random);

}  // namespace outrider::testing
