// The seed's names for the fields of a request: those of its options that are one value each.
//
// A row says what the option is called, what the seed took for it when it was left out, which
// values it took, and what they mean today. All else follows from the rows: reading
// (request_options.cc), generation_settings and the names in refusals (request_meaning.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::rpcserver {

// Of a number that is not whole, a whole one, a switch, a text.
using SeedDefault = std::variant<double, std::int64_t, bool, std::string_view>;

struct SeedOption {
  std::string_view key;         // in requests and cmds
  std::string_view field = {};  // of CompletionRequest (request/completion_request.h); empty: none
  SeedDefault otherwise;
  Range range = {};  // of numbers; without limits: what 32 bits, or a float, can hold
  // Puts the value, of the kind of `otherwise`, into the request; null: it is used elsewhere, or
  // only shown.
  void (*apply)(const json::Json& value, CompletionRequest& request) = nullptr;
  std::string_view shown = {};  // in generation_settings, where that is not `key`
  std::string_view only = {};   // the default is the only value there can be: what to say of others
};

// Static storage.
std::span<const SeedOption> seed_options();

}  // namespace outrider::rpcserver
