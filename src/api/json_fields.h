// Reads the fields of a JSON object into variables that hold the defaults.
//
//   JsonFields fields(params);
//   fields.integer("top_k", options.top_k, -1, kMaxInt32);
//   fields.text("grammar", options.grammar);
//   OUTRIDER_RETURN_IF_ERROR(fields.finish());
//
// Strict: a number in a string, 1.5 for a whole number, null, a field that nobody asked for are all
// errors that name the field, what was given and what is right. A field that is not there leaves
// its variable alone. The first error counts; nothing is read after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/field.h"
#include "base/status.h"
#include "base/types.h"
#include "json/json.h"

namespace outrider::api {

// Where the clients of another API say it differently. Static storage.
struct Dialect {
  struct Name {
    std::string_view ours;
    std::string_view theirs;
  };
  std::span<const Name> names;                // both are understood; messages have the one given
  std::span<const std::string_view> ignored;  // known, and without effect here
  bool null_is_absent = false;
  bool unknown_may_be_null = false;  // a field that nobody asked for is no error where it is null;
                                     // implied by null_is_absent
  bool may_be_unknown = false;       // a field that nobody asked for is no error: see unknown()
  bool values_as_sent = false;  // messages show values as JSON, and call a wrong kind by its name
};

class JsonFields {
 public:
  // `path` stands before the names in messages: "speculative." `object` and `dialect` must outlive
  // this; when `object` is not an object, that is the error, about the path's field.
  explicit JsonFields(const json::Json& object, std::string path = "",
                      const Dialect* dialect = nullptr);

  // A whole number in [min, max]; 3.0 is one.
  template <typename Whole>
  void integer(std::string_view name, Whole& value, std::int64_t min, std::int64_t max) {
    value = static_cast<Whole>(whole_number(name, min, max).value_or(value));
  }

  // A number that a float can hold.
  void number(std::string_view name, float& value);
  void number(std::string_view name, double& value, const Range& range);

  void boolean(std::string_view name, bool& value);
  void text(std::string_view name, std::string& value);

  // A path: not empty, without zero bytes. `wanted`: "a file".
  void path(std::string_view name, std::string& value, const std::string& wanted);

  // A text, or a list of texts.
  void texts(std::string_view name, std::vector<std::string>& value);

  // One of `choices`.
  void choice(std::string_view name, std::string& value, std::span<const std::string_view> choices);

  // The field as it is, for what has more than one form; null pointer: it is not there (or there
  // was an error before).
  const json::Json* any(std::string_view name);

  // Whether it is there; it does not count as asked for.
  bool has(const std::string& name) const { return object_.contains(name); }

  // The field must be there.
  void require(std::string_view name);

  // "<name> is <value>, but must be <wanted>". `name` may go on behind the field's own name:
  // "logit_bias[3]".
  void refuse(const std::string& name, const json::Json& value, const std::string& wanted);
  // The same for a value of the wrong kind.
  void refuse_kind(std::string_view name, const json::Json& value, const std::string& wanted);
  // The same for the item at `index` of an array. `all`: what the items must be, "strings".
  void refuse_item(std::string_view name, std::size_t index, const json::Json& item,
                   const std::string& wanted, std::string_view all);
  void fail(const std::string& name, const std::string& message);
  // About the status's own field, named with the path; nothing where it is ok.
  void fail(const Status& status);
  // As it is, nothing where it is ok: the error of an inner object, or one of another kind.
  void take(const Status& error) {
    if (ok()) error_ = error;
  }

  bool ok() const { return error_.ok(); }

  // A failure that was found behind the reading, about the field as the client spelled it. Ok stays
  // ok.
  Status spelled(const Status& status) const { return status.spelled(spelled(status.field())); }

  // The first error, or the one for a field that is not known here.
  Status finish();

  // The fields that nobody has asked for, with the path.
  std::vector<std::string> unknown() const;

  // The names asked for so far.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::optional<std::int64_t> whole_number(std::string_view name, std::int64_t min,
                                           std::int64_t max);
  const json::Json* find(const std::string& name);
  bool as_sent() const { return dialect_ != nullptr && dialect_->values_as_sent; }
  // As the client spelled it.
  std::string spelled(const std::string& name) const;

  const json::Json& object_;
  std::string path_;
  const Dialect* dialect_;
  std::vector<std::string> names_;
  Status error_;
};

// "name[3]"
std::string item_name(std::string_view name, std::size_t index);

// Whether `value` is the string `text`. Not value == "text": that makes a Json of the text, inside
// an operator that may not throw, so that a lack of memory would end the process.
bool is_text(const json::Json& value, std::string_view text);

// A token's id.
std::optional<Token> as_token(const json::Json& value);

// A text that can be a path.
bool is_path(const json::Json& value);

// A value for messages: short, on one line, valid UTF-8.
std::string shown(const json::Json& value);

// `value` as a whole number, also when it is written as 3.0; nothing when it is not one or does not
// fit 64 bits with a sign.
std::optional<std::int64_t> as_integer(const json::Json& value);

}  // namespace outrider::api
