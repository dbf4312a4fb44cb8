// Fields: a JSON object read the way the seed's apps expect it.
//
// null stands for the default, whole numbers may be written with a point ("40.0"), keys that nobody
// asked for are warnings. A value of the wrong kind, which made the seed's code throw, is a refusal
// that names its field; reading goes on, the first refusal counts.
//
// Tested by fields_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace outrider::rpcserver {

// Why a request or a cmd is not accepted.
struct Refusal {
  std::string error;  // a sentence without its full stop
  std::string field;  // the key that is wrong, or empty
};

class Fields {
 public:
  // `object` must outlive this. Something else than an object is refused at once. `prefix` is put
  // before the names of fields: "speculative." for an object inside another.
  explicit Fields(const json::Json& object, std::string prefix = "");

  // The value of `key`; null when it is not there or null. The key counts as known from now on.
  const json::Json* find(std::string_view key);

  // Each leaves `value` as it is when the key is absent, null or refused, and returns true when it
  // has set it. Ranges are inclusive.
  bool read(std::string_view key, bool& value);
  bool read(std::string_view key, std::string& value);
  bool read(std::string_view key, std::int64_t& value, std::int64_t min, std::int64_t max);
  bool read(std::string_view key, double& value, double min, double max);

  // Refuses because of `key`, unless something was refused before: "<key> <what>". Returns false,
  // as does the next.
  bool refuse(std::string_view key, std::string_view what);
  // The same for a value of the wrong kind: "<key> is <kind>, but must be <wanted>".
  bool refuse_kind(std::string_view key, const json::Json& value, std::string_view wanted);

  // One that was found elsewhere; its field's name is whole.
  void refuse(Refusal refusal);

  const std::optional<Refusal>& refusal() const { return refusal_; }

  // "<key> is not known and has no effect", for every key that was not asked for.
  std::vector<std::string> unknown() const;

 private:
  const json::Json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
  std::optional<Refusal> refusal_;
};

// `text` as the one JSON value that it must hold.
struct ParsedObject {
  json::Json object;
  std::optional<Refusal> refusal;
};

// Parses `text`, an object. Null and "" are an empty object when `may_be_empty`, else refused.
ParsedObject parse_object(const char* text, bool may_be_empty);

// `value` is a whole number from min to max, however it is written.
std::optional<std::int64_t> whole_number(const json::Json& value, std::int64_t min,
                                         std::int64_t max);

}  // namespace outrider::rpcserver
