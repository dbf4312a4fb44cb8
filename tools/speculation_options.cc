#include "tools/speculation_options.h"

#include <algorithm>

#include "draft/lookup_table.h"
#include "draft/ngram_drafter.h"
#include "tools/options.h"
#include "tools/usage.h"

namespace outrider::tools {
namespace {

constexpr std::int32_t kMaxWidth = 64;
constexpr std::int32_t kComparedWidth = 4;  // compare's default

// Of those that the command gives files to and that are asked only with files.
std::vector<std::string_view> drafters_with_files(const SpeculationArguments& a) {
  if (!a.ngrams.any()) return {};
  return {NgramDrafter::kName};
}

// "draft-model, a (what it guesses from), or b (...)".
std::string drafters_for_help() {
  std::string text(kDraftModelName);
  const std::span<const LookupKind> kinds = lookup_kinds();
  for (const LookupKind& kind : kinds) {
    text += &kind == &kinds.back() ? ", or " : ", ";
    text += std::string(kind.name) + " (" + std::string(kind.help) + ")";
  }
  return text;
}

void add_width_option(CLI::App& app, SpeculationArguments& a) {
  CLI::Option* option = app.add_option(
      "--width",
      [&a](const CLI::results_t& results) {
        a.width = results.back();
        if (a.width != "auto") {
          (void)parse_integer("--width", a.width, 1, kMaxWidth,
                              "auto, or a whole number from 1 (no speculation) to 64");
        }
        return true;
      },
      "tokens of one target step at most, its own last one included: 1 (plain decoding) to 64, or "
      "auto: in each step as many as pay, by what steps cost here and how often guesses are right "
      "(4 with the rules rejection and block)");
  option->group("Speculation")->type_name("N")->default_str(a.width);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace

void add_widths_option(CLI::App& app, std::vector<std::int32_t>& widths) {
  widths.push_back(kComparedWidth);
  CLI::Option* option = app.add_option(
      "--width",
      [&widths](const CLI::results_t& results) {
        widths.clear();
        std::string rest = results.back() + ",";
        for (std::size_t comma; (comma = rest.find(',')) != std::string::npos;
             rest.erase(0, comma + 1)) {
          widths.push_back(static_cast<std::int32_t>(
              parse_integer("--width", rest.substr(0, comma), 2, kMaxWidth,
                            "whole numbers from 2 to 64 with commas between them (1 is plain "
                            "decoding, with nothing to compare)")));
        }
        std::sort(widths.begin(), widths.end());
        widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
        return true;
      },
      "tokens of one target step at most, its own last one included; several widths are compared "
      "one after the other");
  option->group("Speculation")->type_name("N,...")->default_str(std::to_string(kComparedWidth));
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_tree_options(CLI::App& app, DraftShape& shape) {
  OptionGroup group(app, "Speculation");
  CLI::Option* branches = group.add_integer(
      "--branches", shape.branches, 1, kMaxWidth,
      "leaves of each drafter's guesses at most; 1: a chain (chains of several drafters may part). "
      "Without it: 1 for the draft model, else as --width; with --width auto 3 and 8");
  branches->default_str("by --width");
  group.add_number("--split-p", shape.split_p,
                   "branch where the next likeliest token has at least this probability, 0 to 1");
  group.add_number("--draft-p-min", shape.p_min,
                   "stop drafting where the likeliest token is less probable than this, 0 to 1");
  group.add_number("--draft-p-ratio", shape.p_ratio,
                   "stop drafting where the likeliest token is less than this many times as likely "
                   "as the next one; 0: no such stop");
  return branches;
}

void check_shape(const DraftShape& shape) {
  const Status status = validate(shape);
  if (!status.ok()) throw UsageError(status.message());
}

void add_suffix_store_option(OptionGroup& group, std::vector<std::string>& files) {
  group.add_texts(
      "--suffix-store", files, "FILE",
      "a store of texts for the drafter suffix, made by 'outrider suffix build'; may be "
      "given several times");
}

void check_suffix_stores(const std::vector<std::string>& files, const DrafterPlan& plan,
                         const std::string& drafter) {
  if (files.empty() || plan.mentions("suffix")) return;
  throw UsageError("--suffix-store is given, but --drafter is '" + drafter + "'",
                   "add --drafter suffix, or leave the store out");
}

void add_drafter_options(CLI::App& app, SpeculationArguments& a, const std::string& automatic) {
  OptionGroup group(app, "Speculation");
  CLI::Option* drafter =
      app.add_option("--drafter", a.drafter,
                     "who guesses ahead: " + automatic + ", " + drafters_for_help() +
                         ". Several: "
                         "'a,b' merges their "
                         "guesses into one tree, 'a/b' asks b only where a has none");
  drafter->group("Speculation")->type_name("EXPR")->default_str(a.drafter);
  drafter->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_suffix_store_option(group, a.suffix_stores);
  add_ngram_options(app, a.ngrams, "Speculation");
}

void add_speculation_options(CLI::App& app, SpeculationArguments& a, ModelArguments& model) {
  OptionGroup group(app, "Speculation");
  add_drafter_options(app, a,
                      "auto (the draft model and n-gram files, if given, and suffix; with --rule "
                      "rejection and block the draft model alone), none (plain decoding)");
  add_width_option(app, a);
  group.add_choice(
      "--rule", a.rule, {"coupled", "rejection", "block"},
      "how guesses are accepted. coupled: the target draws its own token with noise that "
      "depends on seed and position only, and a guess counts when it is that token, so the text is "
      "that of plain decoding. rejection and block (which judges a chain as a whole) draw from the "
      "same distribution, but the text differs from run setting to run setting");
  a.branches = add_tree_options(app, a.shape);
  add_exact_option(app, "Speculation", model);
}

void check_drafters(const SpeculationArguments& a, const ModelArguments& model,
                    const DrafterPlan& automatic) {
  const bool named = a.drafter != "auto" && a.drafter != "none";
  const Result<DrafterPlan> plan =
      named ? parse_drafter_plan(a.drafter, kDrafterNames)
            : Result<DrafterPlan>(a.drafter == "auto" ? automatic : DrafterPlan());
  if (!plan.ok()) {
    throw UsageError(plan.status().message() + "; or auto, or none");
  }
  check_suffix_stores(a.suffix_stores, *plan, a.drafter);
  check_ngram_options(a.ngrams, a.drafter, plan->mentions(NgramDrafter::kName));
  if (named && plan->mentions("draft-model") && !model.draft_model) {
    throw UsageError("--drafter is '" + a.drafter + "', but there is no draft model",
                     "give one with -d FILE, a GGUF file");
  }
}

void check_speculation(const SpeculationArguments& a, const ModelArguments& model) {
  check_shape(a.shape);
  if (a.rule != "coupled" && model.exact == "on") {
    throw UsageError("--exact on cannot be kept with --rule " + a.rule +
                         ", which keeps the distribution, not the text",
                     "take --rule coupled, or leave --exact out");
  }
  if (a.rule == "block" && a.shape.branches > 1) {
    throw UsageError("--branches is '" + std::to_string(a.shape.branches) +
                         "', but must be 1 with --rule block, which judges chains",
                     "take --rule coupled or rejection for trees");
  }
  check_drafters(a, model,
                 chosen_width(a) == 1 ? DrafterPlan()
                                      : automatic_drafters(chosen_rule(a), drafters_with_files(a)));
}

std::int32_t chosen_width(const SpeculationArguments& a) {
  return a.width == "auto" ? kAutoWidth : static_cast<std::int32_t>(std::stol(a.width));
}

std::int32_t opened_width(const SpeculationArguments& a) {
  const std::int32_t width = chosen_width(a);
  if (width == kAutoWidth) return kOpenedWidth;
  return width == 1 ? kComparedWidth : width;
}

DrafterPlan chosen_drafters(const SpeculationArguments& a) {
  if (a.drafter == "none") return {};
  if (a.drafter == "auto") return automatic_drafters(chosen_rule(a), drafters_with_files(a));
  return *parse_drafter_plan(a.drafter, kDrafterNames);
}

DraftShape chosen_shape(const SpeculationArguments& a, std::int32_t width) {
  DraftShape shape = a.shape;
  const bool given = a.branches != nullptr && a.branches->count() > 0;
  if (!given) set_default_branches(shape, chosen_rule(a), width);
  return shape;
}

DraftShape chosen_shape(const SpeculationArguments& a) { return chosen_shape(a, chosen_width(a)); }

AcceptanceRule chosen_rule(const SpeculationArguments& a) {
  if (a.rule == "rejection") return AcceptanceRule::kRejection;
  if (a.rule == "block") return AcceptanceRule::kBlock;
  return AcceptanceRule::kCoupled;
}

SpeculationPlan plan_drafters(DrafterPlan drafters) {
  SpeculationPlan plan;
  plan.use_draft_model = drafters.mentions(kDraftModelName);
  plan.use_suffix = drafters.mentions("suffix");
  plan.use_recycle = drafters.mentions("recycle");
  plan.use_ngrams = drafters.mentions(NgramDrafter::kName);
  plan.drafters = std::move(drafters);
  return plan;
}

void choose_drafters(const SpeculationPlan& plan, const SpeculationArguments& a,
                     const ModelArguments& model, SessionOptions& session) {
  if (plan.use_draft_model) session.draft = draft_options(model);
  session.suffix = plan.use_suffix;
  session.suffix_stores = a.suffix_stores;
  session.recycle = plan.use_recycle;
  if (plan.use_ngrams) session.ngrams = a.ngrams;
}

namespace {

void without(DrafterPlan& plan, std::string_view name) {
  for (std::vector<std::string>& chain : plan.chains) std::erase(chain, name);
  std::erase_if(plan.chains, [](const std::vector<std::string>& chain) { return chain.empty(); });
}

}  // namespace

SpeculationPlan plan_speculation(const SpeculationArguments& a, const ModelArguments& model) {
  SpeculationPlan off;
  if (a.drafter == "none") {
    off.off_reason = "switched off with --drafter none";
  } else if (chosen_width(a) == 1) {
    off.off_reason = "--width 1 is plain decoding";
  }
  if (!off.off_reason.empty()) return off;
  DrafterPlan drafters = chosen_drafters(a);
  if (a.drafter == "auto" && !model.draft_model) without(drafters, kDraftModelName);
  if (drafters.empty()) {
    off.off_reason = "no draft model was given (-d FILE), and --rule " + a.rule +
                     " takes no other drafter unasked (--drafter)";
    return off;
  }
  SpeculationPlan plan = plan_drafters(std::move(drafters));
  plan.width = chosen_width(a);
  return plan;
}

}  // namespace outrider::tools
