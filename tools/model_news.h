// What whoever runs a server should hear of its models, each once, in sentences: what a target says
// of itself although it works, drafts and files that cannot be used, loads that failed, and targets
// that were lost. Clients are told only of their own requests.
//
// Tested by model_news_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "catalog/catalog.h"

namespace outrider::tools {

// Why a model that is complete drafts less than it was told to; ok where it does not. What was
// called off is no error.
Status drafting_error(const CatalogStatus& model);

// One thread at a time.
class ModelNews {
 public:
  // What is new since the last call. A load that fails as the last one did is told once, until one
  // succeeds: clients may ask every second.
  std::vector<std::string> of(const std::vector<CatalogStatus>& models);

 private:
  struct Told {
    std::uint64_t loads_ended = 0;
    std::string failure;  // of the last load, where it failed
    std::uint64_t n_lost = 0;
    std::set<std::string> sentences;
  };
  std::map<std::string, Told> told_;  // by the models' names
};

}  // namespace outrider::tools
