#include "testing/malformed_request.h"

#include <array>
#include <string_view>
#include <vector>

#include "api/methods.h"
#include "json/json.h"

namespace outrider::testing {
namespace {

using json::Json;

constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;

std::size_t below(std::mt19937_64& random, std::size_t n) {
  return static_cast<std::size_t>(random() % n);
}

// Parameters that are right, all required ones among them.
Json right_params(std::string_view method) {
  if (method == "model.load") return {{"role", "draft"}, {"path", "no-such-file.gguf"}};
  if (method.substr(0, 6) == "model.") return {{"role", "draft"}};
  if (method == "tokenize") return {{"text", "abc"}};
  if (method == "detokenize") return {{"tokens", {1, 2}}};
  if (method == "completion.start" || method == "completion.run") {
    return {{"prompt", "abc"}, {"max_tokens", 1}};
  }
  if (method == "completion.poll" || method == "completion.cancel") return {{"id", 1}};
  return Json::object();
}

Json request(std::string_view method, const Json& params) {
  return {{"jsonrpc", "2.0"}, {"id", 1}, {"method", std::string(method)}, {"params", params}};
}

// A value that is wrong for any parameter of this type.
Json wrong_value(std::string_view type, std::mt19937_64& random) {
  const bool takes_text = type.find("string") != std::string_view::npos;
  const bool takes_number = type == "integer" || type == "number" || type.find("integer") == 0;
  std::vector<Json> values = {nullptr, Json::array({Json::array()}), Json::array({Json::object()})};
  if (!takes_text) values.emplace_back("1");
  if (!takes_number) values.insert(values.end(), {Json(1.5), Json(-1), Json(1e308)});
  if (takes_number) {
    values.insert(values.end(), {Json(1e308), Json(-1e308), Json(true), Json::object()});
  }
  if (type == "integer") {
    values.insert(values.end(),
                  {Json(0.5), Json(-9223372036854775807 - 1), Json(18446744073709551615U)});
  }
  if (type != "boolean" && type != "boolean | object") values.emplace_back(false);
  return values[below(random, values.size())];
}

const api::Method& any_method(std::mt19937_64& random) {
  return api::methods()[below(random, api::methods().size())];
}

MalformedRequest wrong_parameter(std::mt19937_64& random) {
  for (;;) {
    const api::Method& method = any_method(random);
    if (method.parameters.empty()) continue;
    const api::Parameter& parameter = method.parameters[below(random, method.parameters.size())];
    const std::string name(parameter.name);
    Json params = right_params(method.name);
    if (name == "messages") params.erase("prompt");
    params[name] = wrong_value(parameter.type, random);
    return {.text = json::encode(request(method.name, params)),
            .code = kInvalidParams,
            .field = name,
            .what = "a parameter's value"};
  }
}

MalformedRequest unknown_parameter(std::mt19937_64& random) {
  const api::Method& method = any_method(random);
  Json params = right_params(method.name);
  std::string name = "x";
  for (std::size_t i = below(random, 12); i > 0; --i) {
    name += static_cast<char>('a' + below(random, 26));
  }
  params[name] = 1;
  return {.text = json::encode(request(method.name, params)),
          .code = kInvalidParams,
          .field = name,
          .what = "an unknown parameter"};
}

MalformedRequest wrong_request(std::mt19937_64& random) {
  Json whole = request("stats", Json::object());
  const std::array<const char*, 4> names = {"jsonrpc", "method", "id", "params"};
  const std::string name = names[below(random, names.size())];
  const std::array<Json, 3> wrong = {Json::array({1}), Json(true), Json(1.5)};
  whole[name] = wrong[below(random, wrong.size())];
  return {.text = json::encode(whole),
          .code = name == "params" ? kInvalidParams : kInvalidRequest,
          .field = name,
          .what = "a part of the request"};
}

MalformedRequest unknown_method(std::mt19937_64& random) {
  std::string name(any_method(random).name);
  name.insert(below(random, name.size() + 1), 1, static_cast<char>('A' + below(random, 26)));
  return {.text = json::encode(request(name, Json::object())),
          .code = kMethodNotFound,
          .field = "method",
          .what = "an unknown method"};
}

// What is no JSON: cut, or with something in it that JSON does not have.
MalformedRequest wrong_text(std::mt19937_64& random) {
  const api::Method& method = any_method(random);
  std::string text = json::encode(request(method.name, right_params(method.name)));
  const std::size_t kind = below(random, 6);
  if (kind == 0) {
    text.resize(below(random, text.size()));
    if (text.find_first_not_of(' ') == std::string::npos) text = "{";
  } else if (kind == 1) {  // inside the first string
    const std::array<const char*, 5> bytes = {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xE2\x82",
                                              "\x01"};
    text.insert(3, bytes[below(random, bytes.size())]);
  } else if (kind == 2) {
    const std::array<const char*, 7> values = {"NaN", "1e999", "Infinity", "01", "'x'", "+1", ".5"};
    text.insert(text.size() - 1, std::string(",\"v\":") + values[below(random, values.size())]);
  } else if (kind == 3) {
    text.insert(text.size() - 1, ",\"id\":2");  // twice
  } else if (kind == 4) {
    const std::size_t depth = 63 + below(random, 2000);
    text.insert(text.size() - 1, ",\"v\":" + std::string(depth, '[') + std::string(depth, ']'));
    if (depth == 63) text.insert(1, "\"w\":[[");  // and never closed
  } else {
    text += text;
  }
  return {.text = text, .code = kParseError, .field = "", .what = "the text itself"};
}

}  // namespace

MalformedRequest malformed_request(std::mt19937_64& random) {
  switch (below(random, 6)) {
    case 0:
      return wrong_text(random);
    case 1:
      return unknown_method(random);
    case 2:
      return wrong_request(random);
    case 3:
      return unknown_parameter(random);
    default:
      return wrong_parameter(random);
  }
}

}  // namespace outrider::testing
