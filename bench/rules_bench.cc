// What each acceptance rule accepts, on a real pair: the table and the plot of
// docs/benchmarks-counts.md.
//
//   bench_rules TARGET.gguf NAME=DRAFT.gguf... --prompts FILE [--tokens N] [--one-token] [--svg
//   FILE]
//
// Every prompt is continued with two seeds, all texts at once (what is accepted does not depend on
// that), for each draft, temperature, filter and rule: chains of three, and trees of six nodes with
// at most three leaves. "argmax" is what a draft gains that proposes its likeliest token against a
// target that samples: the coupled rule with a greedy draft.
//
// First, without drafting, for one token: both models read the same plain texts, and at each
// position the chances are computed: of rejection from the distributions, of the coupled choice
// over 32 seeds.
//
// Prints Markdown tables; the second: the chance that a step's first drafted token stays, the share
// of all drafted tokens that stay, and tokens a step. No times: these counts are the same on any
// machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "bench/give_up.h"
#include "bench/rules_plot.h"
#include "dist/gumbel.h"
#include "dist/pmf.h"
#include "draft/model/draft_model.h"
#include "engine/engine.h"
#include "json/json.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "llama/open_target.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider {
namespace {

constexpr std::int32_t kSequences = 8;
constexpr std::int32_t kContext = 1024;

// A draft model that proposes its likeliest token, whatever the request's sampler.
class ArgmaxDrafter : public Drafter {
 public:
  ArgmaxDrafter(Drafter& inner, Sampler& greedy) : inner_(inner), greedy_(greedy) {}
  std::string_view name() const override { return inner_.name(); }
  Status begin(SeqId seq, std::size_t kept) override { return inner_.begin(seq, kept); }
  Status draft(std::span<DraftRequest> requests) override {
    for (DraftRequest& request : requests) request.sampler = &greedy_;
    return inner_.draft(requests);
  }
  void accept(SeqId seq, std::span<const Token> text) override { inner_.accept(seq, text); }
  void end(SeqId seq) override { inner_.end(seq); }
  void set_interrupt(const std::atomic<bool>* flag) override { inner_.set_interrupt(flag); }
  std::string limit_reason(SeqId seq) const override { return inner_.limit_reason(seq); }

 private:
  Drafter& inner_;
  Sampler& greedy_;
};

struct Bench {
  std::unique_ptr<llama::LlamaModel> target;
  const llama::LlamaVocabulary* vocabulary = nullptr;
  std::vector<std::vector<Token>> prompts;
  std::vector<std::vector<Token>> texts;  // the prompts and their plain continuations
  std::int32_t tokens = 200;

  std::unique_ptr<Sampler> sampler(float temperature, float top_p) const {
    SamplingOptions options;
    options.temperature = temperature;
    options.top_k = 0;
    options.top_p = top_p;
    options.min_p = 0.0f;
    return need(llama::make_sampler(options, *vocabulary), "sampler");
  }

  // Plain decoding of every prompt.
  void write_texts(float temperature) {
    texts.clear();
    Engine engine(*target, target->file()->text_vocabulary(), {});
    for (const std::vector<Token>& prompt : prompts) {
      Request r;
      r.prompt = prompt;
      r.sampler = sampler(temperature, 1.0f);
      r.seed = 5;
      r.max_tokens = tokens;
      const RequestId id = need(engine.add(std::move(r)), "request");
      while (engine.busy()) engine.step();
      texts.push_back(prompt);
      const Completion c = need(engine.take(id), "completion");
      texts.back().insert(texts.back().end(), c.tokens.begin(), c.tokens.end());
    }
  }

  Counts run(Drafter& drafter, const Setting& s) {
    const std::unique_ptr<Sampler> greedy = sampler(0.0f, 1.0f);
    ArgmaxDrafter argmax(drafter, *greedy);
    Drafter* used = s.rule == "argmax" ? static_cast<Drafter*>(&argmax) : &drafter;
    Engine engine(*target, target->file()->text_vocabulary(), {used});
    std::vector<RequestId> ids;
    for (std::int32_t i = 0; i < kSequences; ++i) {
      Request r;
      r.prompt = prompts[static_cast<std::size_t>(i) % prompts.size()];
      r.sampler = sampler(s.temperature, s.top_p);
      r.seed = 100 + static_cast<std::uint64_t>(i);
      r.max_tokens = tokens;
      r.width = s.tree ? 7 : 4;
      if (s.tree) r.draft = {.branches = 3, .split_p = 0.1f};
      if (s.rule == "rejection") r.rule = AcceptanceRule::kRejection;
      if (s.rule == "block") r.rule = AcceptanceRule::kBlock;
      ids.push_back(need(engine.add(std::move(r)), "request"));
    }
    while (engine.busy()) engine.step();
    Counts counts;
    for (const RequestId id : ids) {
      const Completion c = need(engine.take(id), "completion");
      if (!c.error.ok()) give_up(c.error.message());
      const SpeculationStats& stats = c.speculation;
      counts.drafts += stats.drafters[0].drafts;
      counts.first += stats.drafters[0].accepted_drafts;
      counts.drafted += stats.drafted;
      counts.accepted += stats.accepted;
      counts.emitted += stats.emitted;
      counts.steps += stats.steps;
    }
    return counts;
  }
};

// One model's rows behind a text's positions from `from` on, a few at a time.
void read_rows(LanguageModel& model, const std::vector<Token>& text, std::size_t from,
               const std::function<void(std::size_t position, std::span<const float> row)>& take) {
  constexpr std::size_t kChunk = 7;
  for (std::size_t at = from; at < text.size(); at += kChunk) {
    const std::size_t n = std::min(kChunk, text.size() - at);
    TokenTree tree(text[at]);
    std::vector<NodeId> path = {kRoot};
    for (std::size_t i = 1; i < n; ++i)
      path.push_back(tree.add(path.back(), text[at + i], 1.0f, 1));
    const std::size_t begin = at == from ? 0 : at;
    const EvalItem item{
        .seq = 0, .prefix = std::span<const Token>(text).subspan(begin, at - begin), .tree = &tree};
    if (!model.evaluate({&item, 1}).ok()) give_up("a text could not be evaluated");
    for (std::size_t i = 0; i < n; ++i) take(at + i, model.logits(0, static_cast<NodeId>(i)));
    if (!model.commit(0, path).ok()) give_up("a text could not be kept");
  }
  if (!model.truncate(0, 0).ok()) give_up("a text could not be forgotten");
}

// The chance that one drafted token stays, by rule.
struct OneToken {
  double rejection = 0.0;
  double coupled[3] = {};  // the draft's first, first two, first four
  double argmax[3] = {};
  double n = 0.0;

  void add(const Distribution& q, const Distribution& p) {
    constexpr std::size_t kFirst[3] = {1, 2, 4};
    constexpr std::uint64_t kSeeds = 32;
    const Pmf target = Pmf::of(q);
    const Pmf draft = Pmf::of(p);
    for (std::size_t i = 0; i < target.size(); ++i) {
      rejection += std::min(target.p(i), draft.at(target.token(i)));
    }
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const NoiseKey key = noise_key(seed, static_cast<std::uint64_t>(n));
      const Token choice = perturbed_argmax(q, key);
      const std::vector<PerturbedChoice> guesses = perturbed_top(p, key, 4);
      for (std::size_t k = 0; k < 3; ++k) {
        for (std::size_t i = 0; i < std::min(kFirst[k], guesses.size()); ++i) {
          coupled[k] += guesses[i].token == choice ? 1.0 / kSeeds : 0.0;
        }
      }
    }
    std::vector<std::pair<double, Token>> best;
    for (std::size_t i = 0; i < draft.size(); ++i) best.emplace_back(-draft.p(i), draft.token(i));
    const std::size_t four = std::min<std::size_t>(4, best.size());
    std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(four), best.end());
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t i = 0; i < std::min(kFirst[k], four); ++i) {
        argmax[k] += target.at(best[i].second);
      }
    }
    n += 1.0;
  }
};

OneToken one_token(Bench& bench, LanguageModel& draft, float temperature, float top_p) {
  OneToken result;
  const std::unique_ptr<Sampler> q_chain = bench.sampler(temperature, top_p);
  const std::unique_ptr<Sampler> p_chain = bench.sampler(temperature, top_p);
  for (const std::vector<Token>& text : bench.texts) {
    const std::size_t from = text.size() - static_cast<std::size_t>(bench.tokens) / 2;
    std::vector<std::vector<float>> rows;
    read_rows(*bench.target, text, from, [&](std::size_t, std::span<const float> row) {
      rows.emplace_back(row.begin(), row.end());
    });
    read_rows(draft, text, from, [&](std::size_t position, std::span<const float> row) {
      result.add(q_chain->apply(rows[position - from]), p_chain->apply(row));
    });
  }
  return result;
}

std::vector<Setting> settings_for(const std::string& draft) {
  std::vector<Setting> all;
  for (const float temperature : {0.7f, 1.0f}) {
    for (const float top_p : {1.0f, 0.95f}) {
      for (const char* rule : {"argmax", "coupled", "rejection", "block"}) {
        all.push_back({draft, temperature, top_p, rule, false});
      }
      for (const char* rule : {"coupled", "rejection"}) {
        all.push_back({draft, temperature, top_p, rule, true});
      }
    }
  }
  return all;
}

ModelOptions model_options(const std::string& path) {
  ModelOptions options;
  options.path = path;
  options.n_ctx = kContext;
  options.n_sequences = kSequences;
  return options;
}

struct Arguments {
  std::string target;
  std::string prompts;
  std::string svg;
  std::vector<std::pair<std::string, std::string>> drafts;  // name, path
  std::int32_t tokens = 200;
  bool only_one_token = false;
};

Arguments parse_arguments(const std::vector<std::string>& arguments) {
  Arguments result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& a = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    if (a == "--prompts" && has_value) {
      result.prompts = arguments[++i];
    } else if (a == "--tokens" && has_value) {
      result.tokens = std::stoi(arguments[++i]);
    } else if (a == "--svg" && has_value) {
      result.svg = arguments[++i];
    } else if (a == "--one-token") {
      result.only_one_token = true;
    } else if (const std::size_t equal = a.find('='); equal != std::string::npos) {
      result.drafts.emplace_back(a.substr(0, equal), a.substr(equal + 1));
    } else if (result.target.empty()) {
      result.target = a;
    } else {
      give_up("unexpected argument '" + a + "'");
    }
  }
  if (result.target.empty() || result.drafts.empty() || result.prompts.empty()) {
    give_up("give TARGET.gguf NAME=DRAFT.gguf... --prompts FILE [--tokens N] [--svg FILE]");
  }
  return result;
}

Bench open_bench(const Arguments& a) {
  Bench bench;
  bench.tokens = a.tokens;
  llama::TargetOptions how;
  how.widest = 7;
  how.speculation = true;
  llama::OpenedTarget opened = need(llama::open_target(model_options(a.target), {}, how), a.target);
  bench.target = std::move(opened.model);
  bench.vocabulary = &bench.target->file()->vocabulary();
  std::ifstream file(a.prompts);
  const std::string lines((std::istreambuf_iterator<char>(file)), {});
  const std::string error = json::parse_lines(lines, [&](const json::Json& line, std::size_t) {
    bench.prompts.push_back(need(
        bench.vocabulary->tokenize(line.at("prompt").get<std::string>(), true, true), "prompt"));
    return std::string();
  });
  if (!error.empty()) give_up(a.prompts + ": " + error);
  if (bench.prompts.empty()) give_up("no prompts in '" + a.prompts + "'");
  return bench;
}

// The first table.
void print_one_token(Bench& bench, const Arguments& a) {
  for (const float temperature : {0.7f, 1.0f}) {
    bench.write_texts(temperature);
    for (const std::pair<std::string, std::string>& path : a.drafts) {
      const std::unique_ptr<llama::LlamaModel> draft =
          need(llama::open_draft(model_options(path.second), {}), path.second);
      for (const float top_p : {1.0f, 0.95f}) {
        if (temperature == 0.7f && top_p == 1.0f && path == a.drafts.front()) {
          std::printf(
              "| draft | T | top-p | rejection | coupled | coupled, first 2 / 4 | argmax 1 / 2 "
              "/ 4 | positions |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
        }
        const OneToken one = one_token(bench, *draft, temperature, top_p);
        std::printf(
            "| %s | %.1f | %.2f | %.3f | %.3f | %.3f / %.3f | %.3f / %.3f / %.3f | %.0f |\n",
            path.first.c_str(), static_cast<double>(temperature), static_cast<double>(top_p),
            one.rejection / one.n, one.coupled[0] / one.n, one.coupled[1] / one.n,
            one.coupled[2] / one.n, one.argmax[0] / one.n, one.argmax[1] / one.n,
            one.argmax[2] / one.n, one.n);
        std::fflush(stdout);
      }
    }
  }
  std::printf("\n");
}

// The second one.
void print_rules(Bench& bench, const Arguments& a, RulesPlot& plot) {
  std::printf(
      "| draft | T | top-p | rule | shape | first token stays | drafted tokens that stay | "
      "tokens a step | steps |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const std::pair<std::string, std::string>& draft : a.drafts) {
    const std::unique_ptr<llama::LlamaModel> model =
        need(llama::open_draft(model_options(draft.second), {}), draft.second);
    DraftModelDrafter drafter(*model, bench.vocabulary->size(),
                              [&](Token t) { return bench.vocabulary->is_end_of_generation(t); });
    for (const Setting& s : settings_for(draft.first)) {
      const Counts c = bench.run(drafter, s);
      std::printf("| %s | %.1f | %.2f | %s | %s | %.3f | %.3f | %.2f | %lld |\n", s.draft.c_str(),
                  static_cast<double>(s.temperature), static_cast<double>(s.top_p), s.rule.c_str(),
                  s.tree ? "tree of 6" : "chain of 3", share(c.first, c.drafts),
                  share(c.accepted, c.drafted), share(c.emitted, c.steps),
                  static_cast<long long>(c.steps));
      std::fflush(stdout);
      plot.add(s, c);
    }
  }
}

}  // namespace

int rules_main(const std::vector<std::string>& arguments) {
  const Arguments a = parse_arguments(arguments);
  Bench bench = open_bench(a);
  print_one_token(bench, a);
  if (a.only_one_token) return 0;
  RulesPlot plot;
  print_rules(bench, a, plot);
  if (!a.svg.empty() && !plot.write(a.svg)) give_up("cannot write '" + a.svg + "'");
  return 0;
}

}  // namespace outrider

int main(int argc, char** argv) {
  return outrider::rules_main(std::vector<std::string>(argv + 1, argv + argc));
}
