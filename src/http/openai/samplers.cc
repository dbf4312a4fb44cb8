#include "http/openai/samplers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <variant>

namespace outrider::http {
namespace {

using json::Json;
using Options = SamplingOptions;

// llama.cpp's samplers in the order in which they work, each with its letter and the fields that
// switch it off, as their table has it; empty: no further one.
struct NamedSampler {
  std::string_view name;
  char letter;
  std::array<std::string_view, 3> fields;
};
constexpr NamedSampler kSamplers[] = {
    {"penalties", 'e', {"repeat_penalty", "frequency_penalty", "presence_penalty"}},
    {"dry", 'd', {"dry_multiplier"}},
    {"top_n_sigma", 's', {"top_n_sigma"}},
    {"top_k", 'k', {"top_k"}},
    {"typ_p", 'y', {"typical"}},
    {"top_p", 'p', {"top_p"}},
    {"min_p", 'm', {"min_p"}},
    {"xtc", 'x', {"xtc_probability"}},
    {"temperature", 't', {"dynatemp_range"}},
};

// To what it is without being set, where that is off.
void switch_off(const Field<Options>& field, Options& options) {
  static const Options kDefaults;
  const auto off = [&field](double usual) {
    return field.off.covers(usual) ? usual : field.off.value;
  };
  if (const auto* at = std::get_if<float Options::*>(&field.place)) {
    options.*(*at) = static_cast<float>(off(kDefaults.*(*at)));
  }
  if (const auto* at = std::get_if<std::int32_t Options::*>(&field.place)) {
    options.*(*at) = static_cast<std::int32_t>(off(kDefaults.*(*at)));
  }
}

std::string known_samplers() {
  std::string names;
  for (const std::string_view name : sampler_names()) {
    names.append(names.empty() ? "" : ", ").append(name);
  }
  return names;
}

// The names of `given`, each as an index of kSamplers; what is none is an error of `fields`.
std::vector<std::size_t> sampler_order(api::JsonFields& fields, const Json& given) {
  std::vector<std::string> names;
  if (given.is_string()) {
    for (const char letter : given.get_ref<const std::string&>()) names.emplace_back(1, letter);
  } else {
    fields.texts("samplers", names);
  }
  std::vector<std::size_t> order;
  for (const std::string& name : names) {
    std::size_t i = 0;
    while (i < std::size(kSamplers) && kSamplers[i].name != name &&
           (name.size() != 1 || kSamplers[i].letter != name[0])) {
      ++i;
    }
    if (i < std::size(kSamplers)) {
      order.push_back(i);
    } else {
      fields.fail("samplers", "samplers names " + api::shown(Json(name)) +
                                  ", which is not among those here: " + known_samplers());
    }
  }
  return order;
}

}  // namespace

std::vector<std::string_view> sampler_names() {
  std::vector<std::string_view> names;
  for (const NamedSampler& sampler : kSamplers) names.push_back(sampler.name);
  return names;
}

std::vector<std::string_view> read_samplers(api::JsonFields& fields, Options& options) {
  const Json* given = fields.any("samplers");
  if (given == nullptr) return sampler_names();
  const std::vector<std::size_t> order = sampler_order(fields, *given);
  if (!fields.ok()) return {};
  // Those that are out of order, where they are all on, would give another distribution.
  if (std::adjacent_find(order.begin(), order.end(), std::greater_equal<>()) != order.end()) {
    fields.fail("samplers", "samplers must be named once, in the order in which they work here: " +
                                known_samplers());
    return {};
  }
  for (std::size_t i = 0; i < std::size(kSamplers); ++i) {
    if (std::find(order.begin(), order.end(), i) != order.end()) continue;
    for (const std::string_view name : kSamplers[i].fields) {
      if (!name.empty()) switch_off(field_named(sampling_fields(), name), options);
    }
    // Its table cannot say it: 0 is greedy. Mirostat has its own, whatever samplers are named.
    if (kSamplers[i].name == "temperature" && options.mirostat == 0) options.temperature = 1.0f;
  }
  std::vector<std::string_view> names;
  for (const std::size_t i : order) names.push_back(kSamplers[i].name);
  return names;
}

}  // namespace outrider::http
