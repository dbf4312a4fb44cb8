// What the planner chooses, without a machine's noise: texts of a real pair, played to the engine
// with the real draft model on made-up clocks.
//
//   bench_planner TARGET.gguf DRAFT.gguf --prompts FILE [--tokens N] [--seeds N] [--branches N]
//                 [--suffix] [--keep PREFIX] [--clients | --informed]
//
// The target says its texts once, by plain decoding, at temperatures 0, 0.8 (default filters)
// and 1. Since the coupled rule's target says the same whatever is guessed, a model that knows the
// text stands in for it afterwards, and costs what a machine is said to cost. So speeds, beside
// plain decoding, chains of fixed length and an oracle (lab/oracle.h), are the same on any
// machine up to rounding in the draft model. Each row is one process: its planner and drafters
// begin with nothing and learn from text to text. Reading prompts is not counted. The oracle takes
// one chain of the draft model a step, the planner up to three branches.
//
// --clients: the texts asked for by 1, 4 and 16 clients at once, answers cut to 16 and 48 tokens,
// with the draft model and with one that is always wrong and takes as long as the target, beside
// plain batching; reading prompts is counted there, the draft's too, from a process's first request
// on. --informed: what a planner could do that knows each guess's chance (planner_informed.h).
// --keep: texts and rows are read from files of that name, and kept there.
//
// Prints a Markdown table for each temperature, and, as errors, what choosing the nodes took here.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/give_up.h"
#include "bench/planner_clients.h"
#include "bench/planner_informed.h"
#include "bench/planner_setting.h"
#include "bench/planner_texts.h"
#include "draft/model/draft_model.h"
#include "draft/suffix/suffix_drafter.h"
#include "engine/engine.h"
#include "lab/oracle.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "llama/open_target.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"
#include "request/draft_defaults.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

using namespace lab;  // NOLINT: the oracle

class Bench {
 public:
  explicit Bench(Setting setting) : setting_(std::move(setting)) {
    llama::TargetOptions how;
    how.widest = 1;
    llama::OpenedTarget opened =
        need(llama::open_target(options(setting_.target, 8), {}, how), setting_.target);
    target_ = std::move(opened.model);
    vocabulary_ = &target_->file()->vocabulary();
    draft_ = need(llama::open_draft(options(setting_.draft, 1), {}), setting_.draft);
    draft_rows_ =
        std::make_unique<Remembered>(*draft_, setting_.keep.empty() ? "" : setting_.keep + ".rows");
    prompts_ = read_prompts(setting_.prompts, *vocabulary_);
  }

  void run(float temperature) {
    temperature_ = temperature;
    find_texts();
    if (setting_.clients) return run_clients();
    if (setting_.informed) return run_informed();
    std::int64_t n_tokens = 0;
    for (const Text& text : texts_) n_tokens += static_cast<std::int64_t>(text.said.size()) - 1;
    std::printf(
        "\nTemperature %.1f, %zu texts, %lld tokens; speeds in those of plain decoding.\n\n"
        "| machine | chain of 1, 2, 3 | planner | accepted of drafted | tokens a step | oracle | "
        "planner / oracle |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        static_cast<double>(temperature), texts_.size(), static_cast<long long>(n_tokens));
    for (const Machine& machine : machines()) {
      double fixed[3];
      for (std::int32_t n = 1; n <= 3; ++n) {
        fixed[n - 1] = static_cast<double>(n_tokens) / play(machine, n + 1).ms;
      }
      const Measured planned = play(machine, kAutoWidth);
      const double oracle = static_cast<double>(n_tokens) / oracle_of(machine);
      const double speed = static_cast<double>(n_tokens) / planned.ms;
      std::printf("| %s | %.3f, %.3f, %.3f | %.3f | %lld of %lld | %.2f | %.3f | %.3f |\n",
                  machine.name.c_str(), fixed[0], fixed[1], fixed[2], speed,
                  static_cast<long long>(planned.accepted), static_cast<long long>(planned.drafted),
                  static_cast<double>(n_tokens) / static_cast<double>(planned.steps), oracle,
                  speed / oracle);
      std::fflush(stdout);
      std::fprintf(stderr, "temperature %.1f, %s: the pass \"plan\" took %.2f us a step here\n",
                   static_cast<double>(temperature), machine.name.c_str(),
                   1e3 * planned.plan_ms / static_cast<double>(planned.steps));
    }
  }

 private:
  static ModelOptions options(const std::string& path, std::int32_t n_sequences) {
    ModelOptions options;
    options.path = path;
    options.n_ctx = kContext;
    options.n_sequences = n_sequences;
    return options;
  }

  std::unique_ptr<Sampler> sampler() const {
    SamplingOptions options;
    options.temperature = temperature_;
    if (temperature_ == 1.0f) {
      options.top_k = 0;
      options.top_p = 1.0f;
      options.min_p = 0.0f;
    }
    return need(llama::make_sampler(options, *vocabulary_), "sampler");
  }

  Request request(const Text& text) const {
    Request r;
    r.prompt = text.prompt;
    r.sampler = sampler();
    r.seed = text.seed;
    r.max_tokens = setting_.tokens;
    return r;
  }

  // Those that are kept, or said now.
  void find_texts() {
    const std::string path =
        setting_.keep + "-" + std::to_string(std::lround(10.0f * temperature_)) + ".texts";
    texts_.clear();
    if (!setting_.keep.empty()) texts_ = read_texts(path);
    if (!texts_.empty()) return;
    say_texts();
    if (!setting_.keep.empty()) write_texts(path, texts_);
  }

  void say_texts() {
    Engine engine(*target_, target_->file()->text_vocabulary(), {});
    std::vector<RequestId> ids;
    const std::int32_t seeds = temperature_ == 0.0f ? 1 : setting_.seeds;
    const auto take = [&] {
      while (engine.busy()) engine.step();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        texts_[texts_.size() - ids.size() + i].said =
            need(engine.take(ids[i]), "completion").tokens;
      }
      ids.clear();
    };
    for (std::int32_t seed = 0; seed < seeds; ++seed) {
      for (const std::vector<Token>& prompt : prompts_) {
        texts_.push_back({prompt, {}, 40 + static_cast<std::uint64_t>(seed)});
        ids.push_back(need(engine.add(request(texts_.back())), "request"));
        if (ids.size() == 8) take();
      }
    }
    take();
    std::erase_if(texts_, [](const Text& text) { return text.said.size() < 8; });
  }

  bool is_end(Token token) const { return vocabulary_->is_end_of_generation(token); }

  // All texts; if `warm` they are played once before, so that what can be learned of them is.
  std::vector<const Text*> order(bool warm) const {
    std::vector<const Text*> played;
    for (int round = warm ? 0 : 1; round < 2; ++round) {
      for (const Text& text : texts_) played.push_back(&text);
    }
    return played;
  }

  Measured play(const Machine& machine, std::int32_t width, bool warm = false) {
    double now = 0.0;
    const CostCurve costs(machine.steps);
    const std::vector<Token>* all = nullptr;
    const std::int32_t n_vocab = vocabulary_->size();
    const auto knows = [&all, n_vocab](std::span<const Token> context) {
      std::vector<float> row(static_cast<std::size_t>(n_vocab), -1e30f);
      const Token next = context.size() < all->size() ? (*all)[context.size()] : 0;
      row[static_cast<std::size_t>(next)] = 0.0f;
      return row;
    };
    Capabilities capabilities = draft_->capabilities();
    capabilities.n_vocab = n_vocab;
    capabilities.max_width = kWidest;
    testing::FakeModel target(capabilities, knows);
    bool reading = true;
    std::int32_t n_prompt = 0;
    target.on_evaluated([&](std::int64_t n) {
      // Of the step that reads the prompt, what is guessed in it.
      const auto batch = static_cast<std::int32_t>(n);
      now += costs.ms(batch) - (reading ? costs.ms(std::min(batch, n_prompt)) : 0.0);
    });
    testing::FakeModel draft(draft_->capabilities(), [this](std::span<const Token> context) {
      return draft_rows_->row(context);
    });
    draft.on_evaluated([&](std::int64_t n) {
      const bool reads = reading && n > kWidest;
      if (!reads) now += machine.draft_pass * costs.ms(static_cast<std::int32_t>(n));
    });
    DraftModelDrafter drafter(draft, n_vocab, [this](Token t) { return is_end(t); });
    SuffixDrafter suffix(1);
    std::vector<Drafter*> drafters = {&drafter};
    if (setting_.suffix) drafters.push_back(&suffix);
    Engine engine(target, target_->file()->text_vocabulary(), drafters,
                  {.now_ms = [&] { return now; }});
    engine.planner().set_target_cost(costs);
    engine.planner().expect_passes(0, machine.draft_pass);
    Measured measured;
    const std::vector<const Text*> played = order(warm);
    for (std::size_t i = 0; i < played.size(); ++i) {
      if (i == played.size() - texts_.size()) measured = Measured();
      const Text& text = *played[i];
      std::vector<Token> whole = text.prompt;
      whole.insert(whole.end(), text.said.begin(), text.said.end());
      all = &whole;
      Request r = request(text);
      r.width = width;
      set_default_branches(r.draft, r.rule, width);
      if (setting_.branches > 0) r.draft.model_branches = setting_.branches;
      const RequestId id = need(engine.add(std::move(r)), "request");
      reading = true;
      n_prompt = static_cast<std::int32_t>(text.prompt.size());
      const double before = now;
      while (engine.busy()) {
        const bool began = !engine.step().empty();
        if (began) reading = false;
      }
      const Completion c = need(engine.take(id), "completion");
      if (!c.error.ok()) give_up(c.error.message());
      if (c.tokens != text.said) give_up("a text came out otherwise");
      measured.ms += now - before;
      measured.drafted += c.speculation.drafted;
      measured.accepted += c.speculation.accepted;
      measured.steps += c.speculation.steps - 1;  // without that of the first token
      measured.plan_ms += c.speculation.plan_ms;
    }
    return measured;
  }

  void run_clients() {
    const ClientsPlay clients_play{.texts = texts_,
                                   .vocabulary = target_->file()->text_vocabulary(),
                                   .draft = draft_->capabilities(),
                                   .n_vocab = vocabulary_->size(),
                                   .request = [this](const Text& text) { return request(text); },
                                   .is_end = [this](Token t) { return is_end(t); }};
    const RowsOf real = [this](std::span<const Token> context) {
      return draft_rows_->row(context);
    };
    const RowsOf noise = noise_rows(draft_->capabilities().n_vocab);
    std::printf(
        "\nTemperature %.1f, %zu texts: of plain batching's speed, all charged.\n\n"
        "| machine | draft | answer | 1 client | 4 | 16 |\n| --- | --- | --- | --- | --- | "
        "--- |\n",
        static_cast<double>(temperature_), texts_.size());
    for (const Machine& machine : machines()) {
      for (const bool useful : {true, false}) {
        for (const std::int32_t tokens : {16, 48}) {
          std::printf("| %s | %s | %d |", machine.name.c_str(),
                      useful ? "useful" : "noise, as costly", tokens);
          for (const std::int32_t clients : {1, 4, 16}) {
            const double pass = useful ? machine.draft_pass : 1.0;
            const RowsOf& rows = useful ? real : noise;
            const double plain =
                play_clients(clients_play, machine, rows, pass, clients, tokens, 1);
            std::printf(" %.3f |", plain / play_clients(clients_play, machine, rows, pass, clients,
                                                        tokens, kAutoWidth));
            std::fflush(stdout);
          }
          std::printf("\n");
        }
      }
    }
  }

  void run_informed() {
    testing::FakeModel draft(draft_->capabilities(), [this](std::span<const Token> context) {
      return draft_rows_->row(context);
    });
    DraftModelDrafter drafter(draft, vocabulary_->size(), [this](Token t) { return is_end(t); });
    std::vector<SeenChains> seen;
    for (const Text& text : texts_) {
      const std::unique_ptr<Sampler> chain = sampler();
      seen.push_back(look(text, *chain, drafter));
    }
    const Informed informed(seen);
    std::printf(
        "\nTemperature %.1f, %zu texts; chains only, speeds in those of plain decoding.\n\n"
        "| machine | planner | the second time | knows the chances | by the whole's rate | and "
        "those "
        "of guesses to come | oracle | shares |\n| --- | --- | --- | --- | --- | --- | --- | --- "
        "|\n",
        static_cast<double>(temperature_), texts_.size());
    for (const Machine& machine : machines()) {
      const CostCurve costs(machine.steps);
      const auto step_ms = [&](std::int32_t tokens) {
        double least = costs.ms(tokens);
        for (std::int32_t w = tokens; w <= kWidest; ++w) least = std::min(least, costs.ms(w));
        return least;
      };
      const auto speed = [](const Informed::Played& p) { return p.tokens / p.ms; };
      const Informed::Played knows = informed.play(step_ms, machine.draft_pass, false);
      const Informed::Played foresees = informed.play(step_ms, machine.draft_pass, true);
      const Informed::Played own = informed.play(step_ms, machine.draft_pass, false, true);
      const Measured planned = play(machine, kAutoWidth);
      const double warm = said_tokens() / play(machine, kAutoWidth, true).ms;
      const double oracle = said_tokens() / oracle_of(machine);
      const double planner = said_tokens() / planned.ms;
      std::printf(
          "| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f, %.3f, %.3f, %.3f, %.3f |\n",
          machine.name.c_str(), planner, warm, speed(own), speed(knows), speed(foresees), oracle,
          planner / oracle, warm / oracle, speed(own) / oracle, speed(knows) / oracle,
          speed(foresees) / oracle);
      std::fflush(stdout);
      std::fprintf(stderr, "tokens said, and expected: %.0f, %.0f\n", foresees.tokens,
                   foresees.expected);
    }
  }

  double said_tokens() const {
    double n = 0.0;
    for (const Text& text : texts_) n += static_cast<double>(text.said.size()) - 1.0;
    return n;
  }

  double oracle_of(const Machine& machine) {
    const CostCurve costs(machine.steps);
    double ms = 0.0;
    testing::FakeModel draft(draft_->capabilities(), [this](std::span<const Token> context) {
      return draft_rows_->row(context);
    });
    // One for all texts, as in play(): it learns.
    DraftModelDrafter drafter(draft, vocabulary_->size(), [this](Token t) { return is_end(t); });
    for (const Text& text : texts_) {
      const OracleDrafter with{
          .drafter = &drafter, .first_ms = machine.draft_pass, .further_ms = machine.draft_pass};
      const std::unique_ptr<Sampler> chain = sampler();
      OracleOptions how;
      how.seed = text.seed;
      how.width = kWidest;
      how.step_ms = [&](std::int32_t w) { return costs.ms(w); };
      ms += need(oracle_ms(text.prompt, text.said, *chain, std::span(&with, 1), how), "oracle");
    }
    return ms;
  }

  Setting setting_;
  std::unique_ptr<llama::LlamaModel> target_;
  std::unique_ptr<llama::LlamaModel> draft_;
  std::unique_ptr<Remembered> draft_rows_;
  const llama::LlamaVocabulary* vocabulary_ = nullptr;
  std::vector<std::vector<Token>> prompts_;
  std::vector<Text> texts_;
  float temperature_ = 0.0f;
};

}  // namespace

int planner_main(const std::vector<std::string>& arguments) {
  Bench bench(setting_of(arguments));
  for (const float temperature : {0.0f, 0.8f, 1.0f}) bench.run(temperature);
  return 0;
}

}  // namespace outrider

int main(int argc, char** argv) {
  return outrider::planner_main(std::vector<std::string>(argv + 1, argv + argc));
}
