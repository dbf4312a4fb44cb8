// outrider replay: what a drafter would have drafted and had accepted over given texts.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draft/lookup_table.h"

#include "base/clock.h"
#include "draft/base/drafter_plan.h"
#include "draft/suffix/suffix_drafter.h"
#include "draft/text_replay.h"
#include "json/json.h"
#include "lab/cost_file.h"
#include "lab/replay_texts.h"
#include "tools/command.h"
#include "tools/field_options.h"
#include "tools/ngram_options.h"
#include "tools/options.h"
#include "tools/output_options.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/request_options.h"
#include "tools/signals.h"
#include "tools/text_output.h"
#include "tools/usage.h"
#include "tools/vocabulary_file.h"

namespace outrider::tools {

using namespace lab;  // NOLINT: what it measures and writes is most of what is said here
namespace {

using json::Json;

constexpr const char* kReplayDetails =
    "No model runs: a text that was once said tells what each step would have accepted.\n"
    "JSON lines with 'messages' are conversations: the assistant's turns are drafted, what comes "
    "before\n"
    "each is its prompt. Other texts (a plain file, or 'turns', 'prompt' or 'text' of each line) "
    "are\n"
    "drafted from their second token on.\n"
    "With --chunk a plain text is cut into pieces of so many tokens, each as if it were generated "
    "by\n"
    "itself; an incomplete one at the end is skipped. With ngram-cache, what a piece held goes "
    "into "
    "the\n"
    "dynamic cache behind it (the file is not changed): together this is what llama.cpp's "
    "lookup-stats\n"
    "does (its --spec-draft-n-max N is --width N+1).";

// A piece of the corpus that is gone through at once.
struct Piece {
  std::span<const Token> tokens;
  std::size_t given = 1;
};

// The drafters and what they read; those that --drafter does not name are null.
struct Drafting {
  NgramDrafting ngrams;
  std::unique_ptr<SuffixDrafter> suffix;
  std::size_t store_bytes = 0;  // of the suffix stores' files, mapped

  std::vector<Drafter*> drafters() const {
    std::vector<Drafter*> result;
    if (suffix) result.push_back(suffix.get());
    if (ngrams.drafter) result.push_back(ngrams.drafter.get());
    return result;
  }
  std::size_t memory_bytes() const {
    return (suffix ? suffix->memory_bytes() : 0) +
           (ngrams.drafter ? ngrams.drafter->memory_bytes() : 0);
  }
};

constexpr std::array<std::string_view, 2> kTextDrafters = {"suffix", NgramDrafter::kName};

// Throws UsageError for an expression with a drafter that needs more than text.
DrafterPlan text_drafters(const std::string& expression) {
  const Result<DrafterPlan> any = parse_drafter_plan(expression, kDrafterNames);
  for (const auto& [name, why] : {std::pair("recycle", " lives on the target's logits, and"),
                                  std::pair("draft-model", " needs its model, but")}) {
    if (!any.ok() || !any->mentions(name)) continue;
    throw UsageError("--drafter is '" + expression + "', but " + name + why + " no model runs here",
                     "drafters that need only text: suffix and ngram-cache");
  }
  Result<DrafterPlan> plan = parse_drafter_plan(expression, kTextDrafters);
  if (!plan.ok()) throw usage_error(plan.status());
  return *std::move(plan);
}

class ReplayCommand : public Command {
 public:
  std::string name() const override { return "replay"; }
  std::string summary() const override {
    return "measure a drafter over given texts, without running a model";
  }
  std::string details() const override { return kReplayDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  Result<Drafting> open_drafting(const TokenizerId& tokenizer) const;
  std::vector<Piece> cut(const ReplayTexts& corpus);
  Status replay(const std::vector<Piece>& pieces, Drafting& drafting, TextReplay& replay,
                bool plain, const SignalWatch& signals, ProgressBar& progress);
  Json report(const ReplayStats& stats, const Drafting& drafting,
              std::optional<double> speedup) const;
  std::string table(const ReplayStats& stats, const Drafting& drafting,
                    std::optional<double> speedup) const;

  std::optional<std::string> vocab_;
  std::optional<std::string> corpus_;
  std::optional<std::string> cost_;
  std::optional<std::string> drafter_;
  DrafterPlan plan_;
  std::int32_t width_ = 16;
  std::int32_t chunk_ = 0;
  DraftShape shape_;
  std::optional<std::int32_t> branches_;
  NgramArguments ngrams_;
  std::vector<std::string> suffix_stores_;
  OutputArguments output_;

  std::size_t skipped_ = 0;  // tokens of an incomplete tail
};

void ReplayCommand::add_options(CLI::App& app) {
  const std::string heading = "Texts";
  OptionGroup texts(app, heading);
  texts.add_text("--vocab", vocab_, "FILE", "a GGUF file with the target's vocabulary (required)");
  CLI::Option* corpus = app.add_option(
      "corpus",
      [this](const CLI::results_t& results) {
        corpus_ = results.back();
        return true;
      },
      "a text, or JSON lines (name.jsonl) with 'messages', 'turns', 'prompt' or 'text'; - is "
      "standard input (required)");
  corpus->type_name("FILE")->group(heading);
  texts.add_integer("-c,--chunk", chunk_, 0, 1 << 30,
                    "tokens of the pieces that a plain text is cut into; 0: the whole text");
  OptionGroup drafting(app, "Drafting");
  drafting.add_text(
      "--drafter", drafter_, "EXPR",
      "who guesses: suffix or ngram-cache (drafters with a model, and recycle, which needs the "
      "target's logits, cannot be replayed); 'a,b' merges their guesses, 'a/b' asks b only where a "
      "has none");
  drafting.add_integer("--width", width_, 1, 1024,
                       "tokens of a step at most, its own last one included");
  drafting.add_integer("--branches", branches_, 1, 1024, "as --width",
                       "leaves of the suffix drafter's guesses at most; 1: a chain");
  add_drafter_files(app, "Drafting", suffix_stores_, ngrams_);
  drafting.add_text("--cost", cost_, "FILE",
                    "what a step of each width costs, as JSON [{\"width\": 1, \"ms\": 72.0}, ...]: "
                    "predicts the speed-up");
  add_output_options(app, output_);
}

void ReplayCommand::check() {
  if (!vocab_) {
    throw UsageError("--vocab is missing", "give a GGUF file with the target's vocabulary");
  }
  if (!corpus_) {
    throw UsageError("a text is missing",
                     "usage: outrider replay --vocab T.gguf --drafter NAME corpus.jsonl|text");
  }
  if (!drafter_) throw UsageError("--drafter is missing", "give --drafter suffix or ngram-cache");
  plan_ = text_drafters(*drafter_);
  shape_.branches = branches_.value_or(width_);  // as `run` has it for drafters without a model
  check_drafter_files(suffix_stores_, ngrams_, plan_, *drafter_);
}

Result<Drafting> ReplayCommand::open_drafting(const TokenizerId& tokenizer) const {
  Drafting result;
  if (plan_.mentions(NgramDrafter::kName)) {
    Result<NgramDrafting> ngrams = open_ngram_drafting(ngrams_, tokenizer);
    if (!ngrams.ok()) return ngrams.status();
    result.ngrams = std::move(*ngrams);
  }
  if (!plan_.mentions("suffix")) return result;
  SuffixStores stores;
  for (const std::string& path : suffix_stores_) {
    Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(path, tokenizer);
    if (!store.ok()) return store.status();
    result.store_bytes += (*store)->file().file_bytes();
    stores.push_back(*std::move(store));
  }
  result.suffix = std::make_unique<SuffixDrafter>(/*n_sequences=*/1, std::move(stores));
  return result;
}

// With --chunk as lookup-stats has it: a piece must be followed by at least one more token.
std::vector<Piece> ReplayCommand::cut(const ReplayTexts& corpus) {
  std::vector<Piece> pieces;
  for (const ReplayText& text : corpus.texts) {
    const std::span<const Token> tokens(text.tokens);
    if (!corpus.plain || chunk_ == 0) {
      pieces.push_back({.tokens = tokens, .given = text.given});
      continue;
    }
    const std::size_t chunk = static_cast<std::size_t>(chunk_);
    std::size_t start = 0;
    for (; start + chunk < tokens.size(); start += chunk) {
      pieces.push_back({.tokens = tokens.subspan(start, chunk)});
    }
    skipped_ += tokens.size() - start;
  }
  return pieces;
}

std::string time_left(double seconds) {
  char text[32];
  const long long s = static_cast<long long>(seconds + 0.5);
  std::snprintf(text, sizeof(text), "%02lld:%02lld left", s / 60, s % 60);
  return text;
}

Status ReplayCommand::replay(const std::vector<Piece>& pieces, Drafting& drafting,
                             TextReplay& replay, bool plain, const SignalWatch& signals,
                             ProgressBar& progress) {
  double total = 0.0;
  for (const Piece& piece : pieces) total += static_cast<double>(piece.tokens.size());
  double before = 0.0;
  const Stopwatch watch;
  for (const Piece& piece : pieces) {
    const auto show = [&](std::size_t done) {
      const double share = (before + static_cast<double>(done)) / total;
      const double left = watch.elapsed_ms() / 1000.0 * (1.0 - share) / share;
      progress.update("replaying, " + time_left(left), share);
    };
    OUTRIDER_RETURN_IF_ERROR(
        replay.run(piece.tokens, piece.given, /*keep=*/!plain, signals.flag(), show));
    before += static_cast<double>(piece.tokens.size());
    show(0);
    if (plain && chunk_ > 0 && drafting.ngrams.drafter) drafting.ngrams.drafter->learn(0);
  }
  return Status();
}

double ratio(double a, double b) { return b > 0.0 ? a / b : 0.0; }

Json or_null(double value, bool known) { return known ? Json(value) : Json(); }

Json by_drafter(const ReplayStats& stats) {
  Json result = Json::object();
  for (const ReplayDrafterStats& d : stats.drafters) {
    const double drafted = static_cast<double>(d.drafted);
    result[d.name] = {
        {"calls", d.calls},
        {"drafts", d.drafts},
        {"accepted_drafts", d.accepted_drafts},
        {"drafted", d.drafted},
        {"accepted", d.accepted},
        {"acceptance_rate", or_null(ratio(static_cast<double>(d.accepted), drafted), drafted > 0)},
        {"foregone", d.foregone}};
  }
  return result;
}

Json ReplayCommand::report(const ReplayStats& s, const Drafting& drafting,
                           std::optional<double> speedup) const {
  const double steps = static_cast<double>(s.steps);
  const double drafted = static_cast<double>(s.drafted);
  const double draft_ms = s.draft_ms + s.accept_ms;
  return {
      {"drafter", *drafter_},
      {"width", width_},
      {"branches", shape_.branches},
      {"texts", s.texts},
      {"tokens", s.tokens},
      {"skipped", skipped_},
      {"steps", s.steps},
      {"drafted", s.drafted},
      {"accepted", s.accepted},
      {"acceptance_rate", or_null(ratio(static_cast<double>(s.accepted), drafted), drafted > 0)},
      {"tokens_per_step", or_null(ratio(static_cast<double>(s.tokens), steps), steps > 0)},
      {"draft_us_per_step", or_null(1000.0 * ratio(draft_ms, steps), steps > 0)},
      {"draft_us_per_token", or_null(1000.0 * ratio(draft_ms, drafted), drafted > 0)},
      {"draft_ms", draft_ms},
      {"prompt_ms", s.begin_ms},
      {"load_ms", {{"static", drafting.ngrams.static_ms}, {"dynamic", drafting.ngrams.dynamic_ms}}},
      {"memory_bytes",
       {{"context", drafting.memory_bytes()},
        {"static", drafting.ngrams.corpus ? drafting.ngrams.corpus->memory_bytes() : 0},
        {"dynamic", drafting.ngrams.dynamic ? drafting.ngrams.dynamic->memory_bytes() : 0},
        {"stores_mapped", drafting.store_bytes}}},
      {"drafters", by_drafter(s)},
      {"predicted_speedup", speedup ? Json(*speedup) : Json()}};
}

std::string ReplayCommand::table(const ReplayStats& s, const Drafting& drafting,
                                 std::optional<double> speedup) const {
  const double steps = static_cast<double>(s.steps);
  const double drafted = static_cast<double>(s.drafted);
  const double draft_ms = s.draft_ms + s.accept_ms;
  std::string text;
  const auto add = [&text](const char* label, const char* format, auto... values) {
    char line[160];
    std::snprintf(line, sizeof(line), format, values...);
    std::string row = label;
    row.resize(14, ' ');
    text += row + line + "\n";
  };
  add("drafter", "%s, width %d", drafter_->c_str(), width_);
  add("texts", "%lld, %lld tokens drafted through, %zu skipped", static_cast<long long>(s.texts),
      static_cast<long long>(s.tokens), skipped_);
  add("loading", "%.2f ms static, %.2f ms dynamic", drafting.ngrams.static_ms,
      drafting.ngrams.dynamic_ms);
  add("drafted", "%lld", static_cast<long long>(s.drafted));
  add("accepted", "%lld (%.3f %%)", static_cast<long long>(s.accepted),
      100.0 * ratio(static_cast<double>(s.accepted), drafted));
  add("steps", "%lld, %.3f tokens a step", static_cast<long long>(s.steps),
      ratio(static_cast<double>(s.tokens), steps));
  add("drafting", "%.2f ms, %.2f us a step, %.2f us per drafted token; prompts %.2f ms", draft_ms,
      1000.0 * ratio(draft_ms, steps), 1000.0 * ratio(draft_ms, drafted), s.begin_ms);
  for (const ReplayDrafterStats& d : s.drafters) {
    if (s.drafters.size() == 1) break;
    add(("  " + d.name).c_str(), "%lld drafted, %lld accepted, %lld foregone; %lld calls",
        static_cast<long long>(d.drafted), static_cast<long long>(d.accepted),
        static_cast<long long>(d.foregone), static_cast<long long>(d.calls));
  }
  if (speedup) add("speed-up", "%.2fx predicted", *speedup);
  return text;
}

int ReplayCommand::run() {
  SignalWatch signals;
  ProgressBar progress;
  const LoadHooks hooks{.progress = [&](double f) { progress.update("reading the vocabulary", f); },
                        .cancel = signals.flag(),
                        .log = log_sink(output_, progress)};
  std::optional<CostFile> cost;
  if (cost_) {
    Result<CostFile> file = CostFile::read(*cost_);
    if (!file.ok()) return fail(file.status());
    cost = std::move(*file);
  }
  const Result<VocabularyFile> vocabulary = VocabularyFile::open(*vocab_, hooks);
  progress.clear();
  if (!vocabulary.ok()) return fail(vocabulary.status(), signals);
  Result<Drafting> drafting = open_drafting(vocabulary->id());
  if (!drafting.ok()) return fail(drafting.status(), signals);
  const Result<ReplayTexts> corpus = read_replay_texts(*corpus_, vocabulary->vocabulary());
  if (!corpus.ok()) return fail(corpus.status(), signals);
  for (const std::string& note : corpus->notes) print_warning(note);
  // Behind a chunk its context goes into the dynamic cache, whether a file began it or not.
  NgramDrafting& ngrams = drafting->ngrams;
  if (corpus->plain && chunk_ > 0 && ngrams.drafter && !ngrams.dynamic) {
    ngrams.dynamic = std::make_shared<NgramCache>();
    ngrams.drafter = std::make_unique<NgramDrafter>(ngrams.corpus, ngrams.dynamic);
  }
  if (chunk_ > 0 && !corpus->plain) {
    return fail(invalid_argument("--chunk cuts a plain text into pieces, but '" + *corpus_ +
                                 "' has JSON lines, which are texts of their own; leave it out"),
                signals);
  }
  const std::vector<Piece> pieces = cut(*corpus);
  TextReplay replay(drafting->drafters(), plan_, {.width = width_, .shape = shape_});
  const Status done = this->replay(pieces, *drafting, replay, corpus->plain, signals, progress);
  progress.clear();
  if (!done.ok()) return fail(done, signals);
  const ReplayStats& stats = replay.stats();
  if (stats.steps == 0) {
    return fail(invalid_argument("there is nothing to draft: the text has not more than " +
                                 std::to_string(chunk_ > 0 ? chunk_ : 1) +
                                 " tokens; give a longer one, or a smaller --chunk"));
  }
  std::optional<double> speedup;
  if (cost) {
    const Result<double> predicted = cost->speedup(stats);
    if (!predicted.ok()) return fail(predicted.status());
    speedup = *predicted;
  }
  TextOutput output(STDOUT_FILENO, /*color=*/false);
  output.write(output_.json ? json::encode(report(stats, *drafting, speedup)) + "\n"
                            : table(stats, *drafting, speedup));
  return output.status().ok() ? kDone : fail(output.status());
}

}  // namespace

std::unique_ptr<Command> make_replay_command() { return std::make_unique<ReplayCommand>(); }

}  // namespace outrider::tools
