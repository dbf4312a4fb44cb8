#include "fuzz/tame.h"

#include <algorithm>
#include <array>

#include "json/json.h"

namespace outrider::fuzz {
namespace {

using json::Json;

// True: the value is a number above `most`, and was made that.
bool limit(Json& value, int most) {
  if (!value.is_number() || value.get<double>() <= most) return false;
  value = most;
  return true;
}

// Parts of the names of all parameters whose texts are files or addresses. Not "model": that is one
// of a few names, which the loaders of these targets know, and clients' models are "org/name".
constexpr std::array<std::string_view, 11> kFileNames{"path",   "file",  "folder", "cache",
                                                      "store",  "ngram", "lora",   "head",
                                                      "target", "draft", "worker"};

// `name`: the innermost member that the value is in. A slash in other texts is none of a file's:
// "$ref", "</think>", a URL in a message.
bool names_file(const Json& value, std::string_view name) {
  if (value.is_string()) {
    return value.get_ref<const std::string&>().find('/') != std::string::npos &&
           std::any_of(kFileNames.begin(), kFileNames.end(), [name](std::string_view part) {
             return name.find(part) != std::string_view::npos;
           });
  }
  if (value.is_object()) {
    for (const auto& member : value.items()) {
      if (names_file(member.value(), member.key())) return true;
    }
  } else if (value.is_array()) {
    for (const Json& part : value) {
      if (names_file(part, name)) return true;
    }
  }
  return false;
}

bool tame_value(Json& value) {
  if (!value.is_structured()) return false;
  bool changed = false;
  bool shifts = false;
  if (value.is_object()) {
    for (Json::iterator it = value.begin(); it != value.end(); ++it) {
      const std::string& name = it.key();
      if (name == "wait_ms") changed |= limit(*it, 1);
      if (name == "ctx" || name == "batch" || name == "n_ctx") changed |= limit(*it, 256);
      shifts |= name.find("shift") != std::string::npos || name == "n_keep";
    }
  }
  for (Json& part : value) changed |= tame_value(part);
  if (!shifts) return changed;
  for (const char* length :
       {"max_tokens", "n_predict", "max_completion_tokens", "max_output_tokens"}) {
    if (value.contains(length)) value[length] = 8;
  }
  value["max_tokens"] = 8;
  return true;
}

}  // namespace

std::optional<std::string> tame(std::string_view text) {
  json::Parsed parsed = json::parse(text);
  if (!parsed.ok()) return std::string(text);
  if (names_file(*parsed.value, "")) return std::nullopt;
  return tame_value(*parsed.value) ? json::encode(*parsed.value) : std::string(text);
}

}  // namespace outrider::fuzz
