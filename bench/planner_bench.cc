// What the planner chooses, without a machine's noise: texts of a real pair, played to the engine
// with the real draft model on made-up clocks.
//
//   bench_planner TARGET.gguf DRAFT.gguf --prompts FILE [--tokens N] [--seeds N] [--branches N]
//                 [--suffix]
//
// The target says its texts once, by plain decoding, at temperatures 0, 0.8 (default filters)
// and 1. Since the coupled rule's target says the same whatever is guessed, a model that knows the
// text stands in for it afterwards, and costs what a machine is said to cost. So speeds, beside
// plain decoding, chains of fixed length and an oracle (lab/oracle.h), are the same on any
// machine up to rounding in the draft model. Each row is one process: its planner and drafters
// begin with nothing and learn from text to text. Reading prompts is not counted. The oracle takes
// one chain of the draft model a step, the planner up to three branches.
//
// Prints a Markdown table for each temperature, and, as errors, what choosing the nodes took here.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "bench/give_up.h"
#include "draft/model/draft_model.h"
#include "draft/suffix/suffix_drafter.h"
#include "engine/engine.h"
#include "json/json.h"
#include "lab/oracle.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "llama/open_target.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

using namespace lab;  // NOLINT: the oracle

constexpr std::int32_t kContext = 2048;
constexpr std::int32_t kWidest = 16;

// What steps take, and single passes of the draft model, whose wider ones rise as the target's do.
// In single steps of the target.
struct Machine {
  std::string name;
  std::vector<CostPoint> steps;
  double draft_pass = 0.1;
};

const std::vector<Machine>& machines() {
  static const std::vector<Machine> kMachines = {
      {"Zen 4, own kernels",
       {{1, 1.0}, {2, 1.04}, {3, 1.1}, {4, 1.26}, {8, 2.05}, {16, 3.7}},
       0.13},
      {"Xeon, prototype", {{1, 1.0}, {2, 1.09}, {3, 1.28}, {4, 1.48}, {8, 2.13}, {16, 3.98}}, 0.13},
      {"Zen 4, llama.cpp's",
       {{1, 1.0}, {2, 1.74}, {3, 2.41}, {4, 2.13}, {8, 4.18}, {16, 6.78}},
       0.16},
      {"like a GPU", {{1, 1.0}, {2, 1.02}, {4, 1.05}, {8, 1.1}, {16, 1.25}}, 0.13},
  };
  return kMachines;
}

// The rows of a model, each computed once: all settings ask for much the same ones.
class Remembered {
 public:
  explicit Remembered(LanguageModel& model) : model_(model) {}

  std::vector<float> row(std::span<const Token> context) {
    std::uint64_t key = context.size();
    for (const Token token : context) key = mix64(key ^ static_cast<std::uint64_t>(token));
    const auto [found, is_new] = rows_.try_emplace(key);
    if (is_new) found->second = compute(context);
    return found->second;
  }

 private:
  std::vector<float> compute(std::span<const Token> context) {
    const std::size_t end = context.size() - 1;
    std::size_t common = 0;
    while (common < std::min(end, held_.size()) && held_[common] == context[common]) ++common;
    if (!model_.truncate(0, static_cast<Pos>(common)).ok()) give_up("cannot go back");
    const TokenTree root(context[end]);
    const std::size_t most = static_cast<std::size_t>(model_.capabilities().n_batch) - 1;
    for (; end - common > most; common += most) {
      const EvalItem part{.seq = 0, .prefix = context.subspan(common, most)};
      if (!model_.evaluate({&part, 1}).ok() || !model_.commit(0, {}).ok()) give_up("no row");
    }
    const EvalItem item{.seq = 0, .prefix = context.subspan(common, end - common), .tree = &root};
    if (!model_.evaluate({&item, 1}).ok()) give_up("no row");
    const std::span<const float> logits = model_.logits(0, kRoot);
    std::vector<float> row(logits.begin(), logits.end());
    if (!model_.commit(0, std::vector<NodeId>{kRoot}).ok()) give_up("cannot go on");
    held_.assign(context.begin(), context.end());
    return row;
  }

  LanguageModel& model_;
  std::vector<Token> held_;  // what the model has seen
  std::unordered_map<std::uint64_t, std::vector<float>> rows_;
};

struct Text {
  std::vector<Token> prompt;
  std::vector<Token> said;
  std::uint64_t seed = 0;
};

struct Setting {
  std::string target;
  std::string draft;
  std::string prompts;
  std::int32_t tokens = 96;
  std::int32_t seeds = 2;
  bool suffix = false;
  std::int32_t branches = 0;  // of the draft model; 0: as a client that says nothing
};

struct Measured {
  double ms = 0.0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t steps = 0;
  double plan_ms = 0.0;  // of this machine
};

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
    draft_rows_ = std::make_unique<Remembered>(*draft_);
    read_prompts();
  }

  void run(float temperature) {
    temperature_ = temperature;
    write_texts();
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

  void read_prompts() {
    std::ifstream file(setting_.prompts);
    const std::string lines((std::istreambuf_iterator<char>(file)), {});
    const std::string error = json::parse_lines(lines, [&](const json::Json& line, std::size_t) {
      const std::string text = line.contains("prompt")
                                   ? line.at("prompt").get<std::string>()
                                   : "<|im_start|>user\n" +
                                         line.at("turns").at(0).get<std::string>() +
                                         "<|im_end|>\n<|im_start|>assistant\n";
      std::vector<Token> tokens = need(vocabulary_->tokenize(text, true, true), "prompt");
      if (tokens.size() < kContext / 2) prompts_.push_back(std::move(tokens));
      return std::string();
    });
    if (!error.empty()) give_up(setting_.prompts + ": " + error);
    if (prompts_.empty()) give_up("no prompts in '" + setting_.prompts + "'");
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

  void write_texts() {
    texts_.clear();
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

  Measured play(const Machine& machine, std::int32_t width) {
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
    Measured measured;
    for (const Text& text : texts_) {
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
  Setting setting;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& a = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    if (a == "--prompts" && has_value) {
      setting.prompts = arguments[++i];
    } else if (a == "--tokens" && has_value) {
      setting.tokens = std::stoi(arguments[++i]);
    } else if (a == "--seeds" && has_value) {
      setting.seeds = std::stoi(arguments[++i]);
    } else if (a == "--branches" && has_value) {
      setting.branches = std::stoi(arguments[++i]);
    } else if (a == "--suffix") {
      setting.suffix = true;
    } else if (setting.target.empty()) {
      setting.target = a;
    } else if (setting.draft.empty()) {
      setting.draft = a;
    } else {
      give_up("unexpected argument '" + a + "'");
    }
  }
  if (setting.draft.empty() || setting.prompts.empty()) {
    give_up(
        "give TARGET.gguf DRAFT.gguf --prompts FILE [--tokens N] [--seeds N] [--branches N] "
        "[--suffix]");
  }
  Bench bench(setting);
  for (const float temperature : {0.0f, 0.8f, 1.0f}) bench.run(temperature);
  return 0;
}

}  // namespace outrider

int main(int argc, char** argv) {
  return outrider::planner_main(std::vector<std::string>(argv + 1, argv + argc));
}
