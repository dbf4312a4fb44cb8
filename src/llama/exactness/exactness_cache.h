// Verdicts of the probe, kept in files: one per key, "<folder>/exactness/<hash of the key>.json".
//
// A cache and nothing more: a file that cannot be read, is damaged, or was written by another
// version is as if it were not there, and a folder that cannot be written is passed over. Files are
// written under a temporary name and renamed, so that two processes at once are safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/status.h"
#include "llama/probe/probe.h"

namespace outrider::llama {

struct CachedProbe {
  ProbeReport report;
  std::int32_t widest = 2;  // as asked for then
  double budget_ms = 0.0;   // as given then

  // True when a probe of `widest_now` within `budget_now` would not say more of widths: it was at
  // least as wide, and either complete or given at least this time and not cut off on the way to
  // its widest.
  bool answers(std::int32_t widest_now, double budget_now) const;

  // True when `other` adds nothing: it found no difference, and compared neither wider batches nor
  // more.
  bool says_more_than(const CachedProbe& other) const;
};

class ExactnessCache {
 public:
  // `folder`: the project's cache folder; empty: no cache.
  explicit ExactnessCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The verdict for `key`, or nothing. Never fails.
  std::optional<CachedProbe> load(const std::string& key) const;

  // Errors: kInternal with the reason, when the file cannot be written; callers may ignore it.
  Status store(const std::string& key, const CachedProbe& probe) const;

  std::filesystem::path file_of(const std::string& key) const;

 private:
  std::filesystem::path folder_;
};

// Where what is kept under `key` lies: "<folder>/<kind>/<hash of the key><extension>".
std::filesystem::path cache_file(const std::filesystem::path& folder, const char* kind,
                                 const std::string& key, const char* extension);

// $OUTRIDER_CACHE, else $XDG_CACHE_HOME/outrider, else $HOME/.cache/outrider, else empty.
std::filesystem::path default_cache_folder();

}  // namespace outrider::llama
