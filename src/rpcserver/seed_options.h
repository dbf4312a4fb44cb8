// The seed's names for the fields of a request: those of its options that are one value each.
//
// A row says what the option is called, what the seed took for it when it was left out, which
// values it took, and what they mean today. All else follows from the rows, in request_options.cc:
// reading, what the runtime is asked for, generation_settings and the names in refusals.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include "json/json.h"

namespace outrider::rpcserver {

inline constexpr std::int64_t kMinInt32 = std::numeric_limits<std::int32_t>::min();

// Of a number that is not whole, a whole one, a switch, a text.
using SeedDefault = std::variant<double, std::int64_t, bool, std::string_view>;

struct SeedOption {
  std::string_view key;  // in requests and cmds
  // Of CompletionRequest (request/completion_request.h); empty: none, or not by this value alone.
  std::string_view field = {};
  SeedDefault otherwise;
  std::int64_t least = kMinInt32;  // of whole numbers; less is taken for this
  // Only what `field`, one of sampling_fields(), may be; else what 32 bits, or a float, can hold.
  bool strict = false;
  // What goes into `field` for a value, which is of the kind of `otherwise`; null: the value.
  json::Json (*today)(const json::Json& value) = nullptr;
  std::string_view shown = {};  // in generation_settings, where that is not `key`
  std::string_view only = {};   // the default is the only value there can be: what to say of others
};

// Static storage.
std::span<const SeedOption> seed_options();

}  // namespace outrider::rpcserver
