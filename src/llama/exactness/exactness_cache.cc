#include "llama/exactness/exactness_cache.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "json/json.h"
#include "llama/exactness/exactness_key.h"
#include "store/cache_folder.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr int kVersion = 2;
constexpr std::uintmax_t kMostBytes = 1 << 20;  // of a file that is worth reading
constexpr std::int32_t kMostWidth = 1 << 20;

const char* kind_name(Exactness::Kind kind) {
  switch (kind) {
    case Exactness::Kind::kExact:
      return "exact";
    case Exactness::Kind::kUpToWidth:
      return "up_to_width";
    case Exactness::Kind::kDistributional:
      return "distributional";
  }
  return "distributional";
}

std::optional<Exactness::Kind> kind_of(const std::string& name) {
  for (const Exactness::Kind kind :
       {Exactness::Kind::kExact, Exactness::Kind::kUpToWidth, Exactness::Kind::kDistributional}) {
    if (name == kind_name(kind)) return kind;
  }
  return std::nullopt;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// [kind, start, width, round] each.
Json units_json(const std::vector<ProbeUnit>& units) {
  Json all = Json::array();
  for (const ProbeUnit& unit : units) {
    all.push_back({static_cast<int>(unit.kind), unit.start, unit.width, unit.round});
  }
  return all;
}

Json to_json(const std::string& key, const CachedProbe& probe) {
  const ProbeReport& report = probe.report;
  return {{"version", kVersion},
          {"key", key},
          {"kind", kind_name(report.exactness.kind)},
          {"width", report.exactness.width},
          {"coverage", report.exactness.coverage},
          {"reason", report.exactness.reason},
          {"complete", report.complete},
          {"everywhere", report.everywhere},
          {"longest_piece", report.longest_piece},
          {"pieces_differ", report.pieces_differ},
          {"rows", report.rows},
          {"elapsed_ms", report.elapsed_ms},
          {"passed", units_json(report.passed)},
          {"widest", probe.widest},
          {"budget_ms", probe.budget_ms}};
}

// A file may hold anything: whatever does not fit is an exception of the JSON library's, or false.
bool plausible(const CachedProbe& probe) {
  const ProbeReport& report = probe.report;
  const bool kind_fits =
      report.exactness.kind == Exactness::Kind::kDistributional || report.exactness.width > 1;
  return kind_fits && report.exactness.width >= 1 && report.exactness.width <= probe.widest &&
         probe.widest >= 2 && probe.widest <= kMostWidth && report.everywhere >= 1 &&
         report.everywhere <= probe.widest && report.longest_piece >= 0 && report.rows > 0 &&
         std::isfinite(report.elapsed_ms) && std::isfinite(probe.budget_ms);
}

std::int64_t integer(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (!value.is_number_integer()) throw std::invalid_argument(name);
  return value.get<std::int64_t>();
}

std::int32_t small_integer(const Json& json, const char* name) {
  const std::int64_t value = integer(json, name);
  if (value < 0 || value > kMostWidth) throw std::invalid_argument(name);
  return static_cast<std::int32_t>(value);
}

std::vector<ProbeUnit> units_of(const Json& json) {
  std::vector<ProbeUnit> units;
  for (const Json& unit : json) {
    const auto [kind, start, width, round] = unit.get<std::array<std::int32_t, 4>>();
    if (kind < 0 || kind > static_cast<int>(ProbeUnit::Kind::kPiece)) {
      throw std::invalid_argument("passed");
    }
    units.push_back({.kind = static_cast<ProbeUnit::Kind>(kind),
                     .start = start,
                     .width = width,
                     .round = round});
  }
  return units;
}

std::optional<CachedProbe> from_json(const Json& json, const std::string& key) {
  if (json.at("version") != kVersion || json.at("key") != key) return std::nullopt;
  const std::optional<Exactness::Kind> kind = kind_of(json.at("kind").get<std::string>());
  if (!kind) return std::nullopt;
  CachedProbe probe;
  ProbeReport& report = probe.report;
  report.exactness.kind = *kind;
  report.exactness.width = small_integer(json, "width");
  json.at("coverage").get_to(report.exactness.coverage);
  json.at("reason").get_to(report.exactness.reason);
  json.at("complete").get_to(report.complete);
  report.everywhere = small_integer(json, "everywhere");
  report.longest_piece = small_integer(json, "longest_piece");
  json.at("pieces_differ").get_to(report.pieces_differ);
  report.rows = integer(json, "rows");
  json.at("elapsed_ms").get_to(report.elapsed_ms);
  report.passed = units_of(json.at("passed"));
  probe.widest = small_integer(json, "widest");
  json.at("budget_ms").get_to(probe.budget_ms);
  if (!plausible(probe)) return std::nullopt;
  return probe;
}

}  // namespace

bool CachedProbe::answers(std::int32_t widest_now, double budget_now) const {
  if (widest < widest_now) return false;
  return report.complete || (budget_ms >= budget_now && !report.could_go_on(widest_now));
}

bool CachedProbe::says_more_than(const CachedProbe& other) const {
  if (other.report.passed.empty()) return false;  // something differed
  return widest >= other.widest && report.passed.size() >= other.report.passed.size();
}

std::filesystem::path ExactnessCache::file_of(const std::string& key) const {
  return cache_file(folder_, "exactness", key, ".json");
}

std::optional<CachedProbe> ExactnessCache::load(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::filesystem::path path = file_of(key);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMostBytes) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const json::Parsed parsed = json::parse(text);
  if (!parsed.ok()) return std::nullopt;
  try {
    return from_json(*parsed.value, key);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

Status ExactnessCache::store(const std::string& key, const CachedProbe& probe) const {
  if (folder_.empty()) return Status();
  const std::filesystem::path path = file_of(key);
  std::string text;
  try {
    text = json::encode(to_json(key, probe));
  } catch (const std::exception& reason) {
    return internal_error("cannot write '" + path.string() + "': " + reason.what());
  }
  const Status written = write_cache_file(path, text + '\n');
  return written.ok() ? Status() : internal_error(written.message());
}

std::filesystem::path cache_file(const std::filesystem::path& folder, const char* kind,
                                 const std::string& key, const char* extension) {
  Fingerprint fingerprint;
  fingerprint.add(key);
  return folder / kind / (fingerprint.hex() + extension);
}

std::filesystem::path default_cache_folder() {
  if (const std::string own = environment("OUTRIDER_CACHE"); !own.empty()) return own;
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) {
    return std::filesystem::path(xdg) / "outrider";
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    return std::filesystem::path(home) / ".cache" / "outrider";
  }
  return {};
}

}  // namespace outrider::llama
