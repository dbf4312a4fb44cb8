// What a client is told when a call fails: a Status, and the field of the client's JSON that it is
// about.
#pragma once

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/status.h"
#include "json/json.h"

namespace outrider::api {

struct Error {
  StatusCode code = StatusCode::kInvalidArgument;
  std::string message;  // as Status has it, with the names of JSON fields
  std::string field;    // "top_p", "speculative.width", "messages[2].role"; empty: none
};

// A value, or the Error that says why there is none. Like Result.
template <typename T>
class Answer {
 public:
  Answer(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Answer(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }

  // REQUIRES: ok()
  T& operator*() & { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }

  // REQUIRES: !ok()
  const Error& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// `params` are the client's: a field that is in their "speculative" and not beside it is spelled
// "speculative.width", and what is wrong with a prompt is about "messages" where these were given.
// REQUIRES: !status.ok()
Error error_of(const Status& status, const json::Json& params);

// About this field, whatever the status says. REQUIRES: !status.ok()
inline Error error_about(std::string field, const Status& status) {
  return {.code = status.code(), .message = status.message(), .field = std::move(field)};
}

}  // namespace outrider::api
