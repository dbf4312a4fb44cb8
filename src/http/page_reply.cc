#include "http/page_reply.h"

#include <span>
#include <utility>

#include "base/field.h"
#include "draft/drafter_table.h"
#include "http/page_files.h"
#include "json/json.h"
#include "model/sampler.h"
#include "request/completion_request.h"

namespace outrider::http {
namespace {

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

HttpReply reply_with(std::string_view content_type, std::string_view bytes) {
  HttpReply reply{.content_type = std::string(content_type), .body = std::string(bytes)};
  // The files change with the binary, and have no names of their own for each version.
  reply.headers = {{"Content-Security-Policy", kPolicy},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cross-Origin-Opener-Policy", "same-origin"},
                   {"Cache-Control", "no-cache"}};
  return reply;
}

// The files that are not in src/http/page come from the tables: who guesses, and whose colour is
// which; and what numbers of a request may be.
std::string drafters_script() {
  json::Json places = json::Json::array();
  for (const std::string_view name : kDrafterNames) {
    places.push_back({std::string(name), drafter_place(name)});
  }
  return "// The table of drafters, as [name, place] (drafter_place() in "
         "src/draft/drafter_table.h).\nexport const kDrafterPlaces = " +
         json::encode(places) + ";\n";
}

template <typename T>
void add_ranges(std::span<const Field<T>> fields, json::Json& ranges) {
  for (const Field<T>& field : fields) {
    if (!field.type().starts_with("number") && !field.type().starts_with("integer")) continue;
    json::Json range = json::Json::object();
    if (field.range.min > -kNoLimit) range["min"] = field.range.min;
    if (field.range.max < kNoLimit) range["max"] = field.range.max;
    ranges[std::string(field.name)] = std::move(range);
  }
}

std::string fields_script() {
  json::Json ranges = json::Json::object();
  add_ranges(sampling_fields(), ranges);
  add_ranges(output_fields(), ranges);
  add_ranges(speculation_fields(), ranges);
  return "// What the numbers of a request may be, by the names of its fields (system.methods).\n"
         "export const kRanges = " +
         json::encode(ranges) + ";\n";
}

}  // namespace

std::optional<HttpReply> page_reply(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return {};
  std::string_view path = request.path;
  if (!path.starts_with('/')) return {};
  path.remove_prefix(1);
  if (path.empty()) path = "index.html";
  if (path == "drafters.js") {
    return reply_with("text/javascript; charset=utf-8", drafters_script());
  }
  if (path == "fields.js") {
    return reply_with("text/javascript; charset=utf-8", fields_script());
  }
  for (const PageFile& file : page_files()) {
    if (file.path != path) continue;
    return reply_with(file.content_type, file.bytes);
  }
  return {};
}

}  // namespace outrider::http
