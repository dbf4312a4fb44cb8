// Status and Result: how functions report expected failures.
//
// Conventions for the whole project:
//  - A function that can fail for a reason outside the program (a file, a model, a request, memory
//    of a device) returns Status or Result<T>. A violated REQUIRES inside the program is an assert.
//  - The message is for the person who runs the program: it says what failed, with which file or
//    field, and what would be right. It starts in lower case and has no final full stop.
//  - Fields (base/field.h) are named as JSON has them: "top_p is 2, but must be ...". The
//    field is in field() as well, so that each interface can put its own spelling there
//    (message_with) without searching the text.
//  - Unless a declaration says otherwise, a call that fails leaves its object as it was.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace outrider {

enum class StatusCode {
  kOk,
  kInvalidArgument,    // the caller's value is wrong: an option, a field, a prompt
  kNotFound,           // a file or an id that is not there
  kUnsupported,        // right in itself, but not for this model, backend or build
  kResourceExhausted,  // cells, memory, slots
  kCancelled,          // somebody asked for it to end
  kDataLoss,           // a file or state that is damaged
  kInternal,           // the backend failed
};

// Stable, lower-case name of a code, e.g. "invalid_argument". Static storage.
std::string_view status_code_name(StatusCode code);

// What there is too much of, and its limit: a prompt's tokens and the context's.
struct Excess {
  std::int64_t count = 0;
  std::int64_t limit = 0;
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {
    assert(code != StatusCode::kOk);
  }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The field that it is about: "top_p", "logit_bias[3]"; empty: none.
  const std::string& field() const { return field_; }

  // Where something is over its limit: by what numbers, for clients that look for them.
  const std::optional<Excess>& excess() const { return excess_; }

  // The message with `spelling` ("--top-p") where it names field(). The message itself where it
  // does not.
  std::string message_with(std::string_view spelling) const;

  // The same failure with its field spelled so, in field() and in the message. Ok stays ok.
  Status spelled(std::string spelling) const;

  // The same failure with `context` and ": " put before the message. Ok stays ok.
  Status with_context(std::string_view context) const;

  // The same failure with `field` and ": " before the message, about that field. Ok stays ok.
  Status in_field(std::string field) const;

  // The same failure, about `field`, which the message does not name. Ok stays ok.
  Status about(std::string field) const;

  // The same failure with excess(). Ok stays ok.
  Status over(const Excess& excess) const;

 private:
  friend Status refused(StatusCode code, std::string field, std::string_view what);
  static constexpr std::size_t kNotNamed = static_cast<std::size_t>(-1);

  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::string field_;
  std::size_t field_at_ = kNotNamed;  // where the message names it
  std::optional<Excess> excess_;
};

// A failure about a field: "<field> <what>".
Status refused(StatusCode code, std::string field, std::string_view what);
Status refused(std::string field, std::string_view what);  // kInvalidArgument

// "<field> is <value>, but must be <wanted>", kInvalidArgument.
Status wrong_value(std::string field, std::string_view value, std::string_view wanted);

Status invalid_argument(std::string message);
Status not_found(std::string message);
Status unsupported(std::string message);
Status resource_exhausted(std::string message);
Status cancelled(std::string message);
Status data_loss(std::string message);
Status internal_error(std::string message);

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}        // NOLINT: implicit
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {  // NOLINT: implicit
    assert(!std::get<1>(state_).ok());
  }

  bool ok() const { return state_.index() == 0; }

  // REQUIRES: ok()
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

  Status status() const { return ok() ? Status() : std::get<1>(state_); }

 private:
  T& checked() {
    assert(ok());
    return std::get<0>(state_);
  }

  std::variant<T, Status> state_;
};

// Returns the Status from the enclosing function when it is not ok.
#define OUTRIDER_RETURN_IF_ERROR(expression)           \
  do {                                                 \
    ::outrider::Status outrider_status = (expression); \
    if (!outrider_status.ok()) return outrider_status; \
  } while (false)

// `declaration` = the value of the Result `expression`, or returns its Status from the enclosing
// function: OUTRIDER_ASSIGN_OR_RETURN(const Json body, read_body(request));
#define OUTRIDER_ASSIGN_OR_RETURN(declaration, ...) \
  OUTRIDER_ASSIGN_OR_RETURN_AS(OUTRIDER_NAME_OF_LINE(result_, __LINE__), declaration, __VA_ARGS__)
#define OUTRIDER_ASSIGN_OR_RETURN_AS(result, declaration, ...) \
  auto result = (__VA_ARGS__);                                 \
  if (!result.ok()) return result.status();                    \
  declaration = *std::move(result)
#define OUTRIDER_NAME_OF_LINE(name, line) OUTRIDER_NAME_WITH(name, line)
#define OUTRIDER_NAME_WITH(name, line) name##line

}  // namespace outrider
