#include "tools/options/needs.h"

#include <algorithm>

#include "base/list_of.h"
#include "draft/drafter_table.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

using Names = std::vector<std::string_view>;

bool branches(const DrafterKind& kind) { return shape_use(kind).branches; }
bool splits(const DrafterKind& kind) { return shape_use(kind).split_p; }
bool stops(const DrafterKind& kind) { return shape_use(kind).stops; }
bool is_draft(const DrafterKind& kind) { return kind.model == NeededModel::kDraft; }

// Of the models.
std::vector<Need> model_needs() {
  constexpr std::string_view kTarget = "the target with -m FILE or -hf USER/REPO";
  constexpr std::string_view kRpcTarget =
      "the target with -m FILE or -hf USER/REPO, or these fields to model.load";
  return {
      {.options = {"draft-ctx", "draft-threads", "draft-gpu-layers", "draft-cache-type-k",
                   "draft-cache-type-v"},
       .any = {"draft-model", "hf-repo-draft"},
       .give = "a draft with -d FILE or -hfd USER/REPO"},
      // The models of a table or a folder have files of their own.
      {.options = {"draft-model", "hf-repo-draft", "suffix-store", "ngram-static", "ngram-dynamic"},
       .any = {"model", "hf-repo"},
       .give = kTarget,
       .commands = {"serve"}},
      {.options = {"ctx", "threads", "batch", "gpu-layers", "cache-type-k", "cache-type-v",
                   "kernels", "flash-attn", "exact", "workers", "isolate", "mtp"},
       .any = {"model", "hf-repo"},
       .give = kRpcTarget,
       .commands = {"rpc"}},
      {.options = {"worker-timeout-s"},
       .any = {"workers"},
       .give = "workers with --workers HOST:PORT,..."}};
}

// Of those who guess. `settled`: commands for which samplers and drafters are when they begin.
std::vector<Need> drafter_needs(const Names& settled) {
  return {// A call to which --drafter suffix is added, to compare, is right; so no error.
          {.options = {"draft-model", "hf-repo-draft"},
           .used_by = is_draft,
           .commands = settled,
           .warns = true},
          {.options = {"branches"}, .used_by = branches},
          {.options = {"split-p"}, .used_by = splits},
          {.options = {"draft-p-min", "draft-p-ratio"}, .used_by = stops},
          {.options = {"ngram-dynamic-mib"},
           .any = {"ngram-dynamic"},
           .give = "the file with --ngram-dynamic FILE"}};
}

// Of what is kept and told. --remember-folder likewise, which every interface refuses
// (serve/runtime_options.h).
std::vector<Need> keeping_needs() {
  return {{.options = {"namespace"},
           .any = {"remember-tokens"},
           .give = "--remember-tokens N, how many"},
          {.options = {"prompt-cache-mib"},
           .any = {"prompt-cache"},
           .give = "the folder with --prompt-cache FOLDER"},
          {.options = {"tensor-cache-mib"},
           .any = {"tensor-cache"},
           .give = "the folder with --tensor-cache FOLDER"},
          {.options = {"access-log-mib"},
           .any = {"access-log"},
           .give = "the file with --access-log FILE"},
          // The text does not show them.
          {.options = {"logprobs"},
           .any = {"json", "result"},
           .give = "--json, whose object has them"}};
}

std::vector<Need> sampling_needs(const Names& settled) {
  return {
      {.options = {"xtc-threshold"},
       .any = {"xtc-probability"},
       .give = "--xtc-probability X",
       .commands = settled},
      {.options = {"dynatemp-exp"},
       .any = {"dynatemp-range"},
       .give = "--dynatemp-range X",
       .commands = settled},
      {.options = {"repeat-last-n"},
       .any = {"repeat-penalty", "frequency-penalty", "presence-penalty"},
       .give = "one of these penalties",
       .commands = settled},
      {.options = {"dry-base", "dry-allowed-length", "dry-penalty-last-n", "dry-sequence-breaker"},
       .any = {"dry-multiplier"},
       .give = "--dry-multiplier X",
       .commands = settled},
      {.options = {"mirostat-ent", "mirostat-lr"},
       .any = {"mirostat"},
       .give = "--mirostat N, its version",
       .commands = settled},
  };
}

std::vector<Need> make_needs() {
  const Names settled = {"run", "compare", "bench"};
  std::vector<Need> all;
  for (const std::vector<Need>& needs :
       {model_needs(), drafter_needs(settled), keeping_needs(), sampling_needs(settled)}) {
    all.insert(all.end(), needs.begin(), needs.end());
  }
  return all;
}

const CLI::Option* find_option(const CLI::App& command, std::string_view name) {
  return command.get_option_no_throw("--" + std::string(name));
}

bool is_typed(const CLI::App& command, const CLI::Option& option) {
  // CLI11 notes there what it took from the arguments, and nothing else.
  const std::vector<CLI::Option*>& typed = command.parse_order();
  return std::find(typed.begin(), typed.end(), &option) != typed.end();
}

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Of what a row needs: whether it is there, and what to say where it is not.
struct Answer {
  bool there = true;
  std::string what;  // behind the option
  std::string give;  // of the hint
};

Answer look_for_options(const CLI::App& command, const Need& need, const OptionFacts& facts) {
  std::vector<std::string> names;
  for (const std::string_view name : need.any) {
    const CLI::Option* const option = find_option(command, name);
    if (option == nullptr) continue;
    const bool elsewhere =
        std::find(facts.elsewhere.begin(), facts.elsewhere.end(), name) != facts.elsewhere.end();
    if (elsewhere || option->count() > 0) return {};
    names.push_back("--" + std::string(name));
  }
  if (names.empty()) return {};
  return {.there = false,
          .what = " does nothing without " + list_of(names, " or "),
          .give = "give " + std::string(need.give)};
}

Answer look_for_drafters(const Need& need, const OptionFacts& facts) {
  if (!facts.drafters) return {};
  std::vector<std::string> users;
  for (const DrafterKind& kind : drafter_kinds()) {
    if (!need.used_by(kind)) continue;
    if (facts.drafters->mentions(kind.name)) return {};
    users.emplace_back(kind.name);
  }
  const std::string asked = facts.drafters->empty() ? "nobody" : to_string(*facts.drafters);
  return {.there = false,
          .what = " does nothing for who guesses here: " + asked,
          .give = "it is for " + list_of(users) + ": name one with --drafter"};
}

}  // namespace

const std::vector<Need>& option_needs() {
  static const std::vector<Need> needs = make_needs();
  return needs;
}

bool was_typed(const CLI::App& command, std::string_view name) {
  const CLI::Option* const option = find_option(command, name);
  return option != nullptr && is_typed(command, *option);
}

std::vector<std::string> check_needs(const CLI::App& command, const OptionFacts& facts) {
  std::vector<std::string> warnings;
  for (const Need& need : option_needs()) {
    if (!need.commands.empty() && !contains(need.commands, command.get_name())) continue;
    for (const std::string_view name : need.options) {
      const CLI::Option* const option = find_option(command, name);
      if (option == nullptr || !is_typed(command, *option)) continue;
      if (option->results().back() == option->get_default_str()) continue;
      const Answer answer = need.used_by != nullptr ? look_for_drafters(need, facts)
                                                    : look_for_options(command, need, facts);
      if (answer.there) continue;
      const std::string spelled = "--" + std::string(name);
      const std::string hint = answer.give + ", or leave " + spelled + " out";
      if (!need.warns) throw UsageError(spelled + answer.what, hint);
      warnings.push_back(spelled + answer.what + "; " + hint);
    }
  }
  return warnings;
}

}  // namespace outrider::tools
