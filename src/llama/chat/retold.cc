#include "llama/chat/retold.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/fnv.h"
#include "base/random.h"
#include "llama/chat/late_instructions.h"

namespace outrider::llama {
namespace {

constexpr std::size_t kShortId = 9;
constexpr std::string_view kIdDigits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

bool is_short_id(std::string_view id) {
  return id.size() == kShortId && id.find_first_not_of(kIdDigits) == std::string_view::npos;
}

std::string hashed_id(std::string_view of) {
  Fnv1a hash;
  hash.add(of);
  std::string id;
  for (std::uint64_t left = mix64(hash.value()); id.size() < kShortId; left /= kIdDigits.size()) {
    id += kIdDigits[left % kIdDigits.size()];
  }
  return id;
}

// `place`: among what has ids, for one that has none. No client's id begins so.
std::string short_id(const std::string& given, std::size_t place) {
  if (is_short_id(given)) return given;
  return hashed_id(given.empty() ? "\n" + std::to_string(place) : given);
}

struct NamedCall {
  std::string given;
  std::string id;
};

// The id of the call that a result with the id `given` answers, of those that have no result yet,
// which is taken from them. Empty: it answers none of them.
std::string answered_id(std::vector<NamedCall>& open, const std::string& given) {
  std::vector<NamedCall>::iterator found = std::find_if(
      open.begin(), open.end(), [&given](const NamedCall& call) { return call.given == given; });
  if (found == open.end()) {
    found = std::find_if(open.begin(), open.end(), [&given](const NamedCall& call) {
      return given.empty() || call.given.empty();
    });
  }
  if (found == open.end()) return "";
  std::string id = std::move(found->id);
  open.erase(found);
  return id;
}

}  // namespace

std::optional<std::vector<ChatMessage>> with_short_ids(const std::vector<ChatMessage>& messages) {
  std::vector<ChatMessage> named = messages;
  std::vector<NamedCall> open;
  std::size_t n_ids = 0;
  bool changed = false;
  for (ChatMessage& message : named) {
    if (!message.tool_calls.empty()) open.clear();
    for (ToolCall& call : message.tool_calls) {
      std::string given = std::exchange(call.id, short_id(call.id, n_ids++));
      changed = changed || call.id != given;
      open.push_back({.given = std::move(given), .id = call.id});
    }
    if (message.role != "tool") continue;
    std::string id = answered_id(open, message.tool_call_id);
    if (id.empty()) id = short_id(message.tool_call_id, n_ids++);
    changed = changed || message.tool_call_id != id;
    message.tool_call_id = std::move(id);
  }
  if (!changed) return std::nullopt;
  return named;
}

std::vector<std::vector<ChatMessage>> retold(const std::vector<ChatMessage>& messages) {
  std::vector<std::vector<ChatMessage>> ways;
  const auto add = [&ways](std::optional<std::vector<ChatMessage>> way) {
    if (way) ways.push_back(std::move(*way));
  };
  std::optional<std::vector<ChatMessage>> named = with_short_ids(messages);
  std::optional<std::vector<ChatMessage>> both;
  if (named) both = without_late_instructions(*named);
  add(std::move(named));
  add(without_late_instructions(messages));
  add(std::move(both));
  return ways;
}

}  // namespace outrider::llama
