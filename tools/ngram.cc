// outrider ngram: files for the drafter "ngram-cache".
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/list_of.h"
#include "base/nearest.h"
#include "draft/ngram/llama_ngram_file.h"
#include "draft/ngram/ngram_file.h"
#include "input/corpus.h"
#include "run/store_stats.h"
#include "tools/command.h"
#include "tools/options/needs.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"
#include "tools/output_file.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

using json::Json;

constexpr const char* kNgramDetails =
    R"(  ngram create --vocab T.gguf TEXT... -o F   count texts (JSON lines, too) for
                                             --ngram-static; with --dynamic for
                                             --ngram-dynamic
  ngram merge FILE FILE... -o F              add files of one tokenizer up
  ngram stats FILE...                        what files hold
  ngram import --vocab T.gguf FILE -o F      from llama.cpp
                                             (llama-lookup-create, -merge)
  ngram export FILE -o F                     for llama.cpp

Files carry their tokenizer and checksums, and are replaced whole or not at all. llama.cpp's have
neither: one that was cut between two n-grams, or made with another model whose ids this one has
too, cannot be told from a good one.)";

const std::vector<std::string>& actions() {
  static const std::vector<std::string> all = {"create", "merge", "stats", "import", "export"};
  return all;
}

class NgramCommand : public Command {
 public:
  NgramCommand()
      : Command("ngram", "make, merge, describe and convert files of n-gram caches",
                kNgramDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  Result<int> run() override;

 private:
  Status check_out() const;
  // A cache and whose ids it holds.
  Result<NgramFile> create(const Vocabulary& vocabulary, Terminal& terminal) const;
  Result<NgramFile> import(const Vocabulary& vocabulary) const;
  Result<NgramFile> make(Terminal& terminal);
  Result<int> stats();
  Result<int> print_files(const std::vector<Json>& files);

  const CLI::App* app_ = nullptr;       // of add_options
  std::vector<std::string> arguments_;  // the action and its files
  std::vector<std::string> files_;
  std::string action_;
  std::optional<std::string> vocab_;
  std::optional<std::string> out_;
  bool dynamic_ = false;
};

void NgramCommand::add_options(CLI::App& app) {
  app_ = &app;
  OptionGroup group(app, "Files");
  CLI::Option* arguments =
      app.add_option("action", arguments_,
                     "create, merge, stats, import or export, and the files that it reads (see "
                     "below)");
  set_choices(arguments->type_name("ACTION FILE...")->group("Files"), actions());
  group.add_text("-o,--output", out_, "FILE",
                 "the file to write; one of the same kind is replaced");
  group.add_text("--vocab", vocab_, "FILE", "a GGUF file with the target's vocabulary");
  group.add_switch("--dynamic", dynamic_,
                   "create: count n-grams of 1 to 4 tokens, as a dynamic cache has them, not of 2, "
                   "as a static one");
  add_output_options(app, output_);
}

void NgramCommand::check() {
  const std::string usage = "'outrider ngram --help' shows how it is used";
  if (arguments_.empty()) {
    throw UsageError("an action is missing; actions are " + list_of(actions()), usage);
  }
  action_ = arguments_.front();
  files_.assign(arguments_.begin() + 1, arguments_.end());
  if (std::find(actions().begin(), actions().end(), action_) == actions().end()) {
    const std::string near = nearest(action_, actions());
    throw UsageError("unknown action '" + action_ + "'; actions are " + list_of(actions()),
                     near.empty() ? usage : "did you mean " + near + "?");
  }
  const std::string what = "ngram " + action_;
  const bool one = action_ == "import" || action_ == "export";
  if (files_.empty() || (one && files_.size() > 1)) {
    throw UsageError(what + " takes " + (one ? "one file" : "at least one file") + ", but " +
                         std::to_string(files_.size()) + " are given",
                     usage);
  }
  // What an action has no use for is wrong only where it was typed: the environment and a config
  // file are shared by several calls.
  const bool reads_text = action_ == "create" || action_ == "import";
  if (!reads_text && !was_typed(*app_, "vocab")) vocab_.reset();
  if (action_ == "stats" && !was_typed(*app_, "output")) out_.reset();
  if (reads_text != vocab_.has_value()) {
    throw UsageError(reads_text
                         ? what + " needs --vocab FILE, a GGUF file with the target's vocabulary"
                         : "--vocab is given, but " + what + " takes the tokenizer from its files",
                     usage);
  }
  if ((action_ == "stats") == out_.has_value()) {
    throw UsageError(out_ ? "--output is given, but ngram stats writes no file"
                          : what + " needs -o FILE, the file to write",
                     usage);
  }
  if (dynamic_ && action_ != "create" && was_typed(*app_, "dynamic")) {
    throw UsageError("--dynamic is given, but only ngram create takes it", usage);
  }
}

// llama.cpp's files say nothing of themselves but that they can be read.
Status is_llama_ngrams(const std::string& path) {
  const Status read = import_llama_ngrams(path, std::numeric_limits<std::int32_t>::max()).status();
  return read.code() == StatusCode::kDataLoss ? invalid_argument(read.message()) : read;
}

// Before the texts are read. Files may be merged into one of them, which then holds all.
Status NgramCommand::check_out() const {
  OutputFile output{.option = "--output", .path = *out_, .check_old = is_store(kNgramStore)};
  if (action_ == "export") output.check_old = is_llama_ngrams;
  if (action_ != "merge") output.reads = files_;
  if (vocab_) output.reads.push_back(*vocab_);
  return check_output_file(output);
}

Result<NgramFile> NgramCommand::create(const Vocabulary& vocabulary, Terminal& terminal) const {
  NgramFile result{.cache = {}, .tokenizer = tokenizer_id(vocabulary)};
  const auto count = [&](const std::vector<Token>& tokens) {
    result.cache.count(tokens, 0, dynamic_ ? 1 : kStaticNgram, dynamic_ ? kMaxNgram : kStaticNgram);
    return Status();
  };
  OUTRIDER_RETURN_IF_ERROR(for_each_text(files_, vocabulary, CorpusForm::kAsLlama,
                                         terminal.watcher(), "counting", count));
  return result;
}

Result<NgramFile> NgramCommand::import(const Vocabulary& vocabulary) const {
  OUTRIDER_ASSIGN_OR_RETURN(ImportedNgrams imported,
                            import_llama_ngrams(files_.front(), vocabulary.size()));
  if (imported.n_saturated > 0) {
    print_warning(std::to_string(imported.n_saturated) + " counts were above " +
                  std::to_string(kMaxNgramCount) + ", which is the most that is kept");
  }
  return NgramFile{.cache = std::move(imported.cache), .tokenizer = tokenizer_id(vocabulary)};
}

Result<NgramFile> NgramCommand::make(Terminal& terminal) {
  if (!vocab_) return action_ == "merge" ? merge_ngrams(files_) : load_ngrams(files_.front());
  OUTRIDER_ASSIGN_OR_RETURN(const std::shared_ptr<const Vocabulary> vocabulary,
                            read_vocabulary(*vocab_));
  return action_ == "create" ? create(*vocabulary, terminal) : import(*vocabulary);
}

Result<int> NgramCommand::print_files(const std::vector<Json>& files) {
  std::string text;
  for (const Json& file : files) text += ngram_stats_table(file);
  return print({{"files", files}}, text);
}

Result<int> NgramCommand::stats() {
  std::vector<Json> files;
  for (const std::string& path : files_) {
    const Stopwatch watch;
    OUTRIDER_ASSIGN_OR_RETURN(const NgramFile file, load_ngrams(path));
    files.push_back(ngram_stats_json(path, file, watch.elapsed_ms()));
  }
  return print_files(files);
}

Result<int> NgramCommand::run() {
  if (action_ == "stats") return stats();
  OUTRIDER_RETURN_IF_ERROR(check_out());
  Terminal& terminal = watch();
  OUTRIDER_ASSIGN_OR_RETURN(const NgramFile file, make(terminal));
  if (terminal.signals.raised()) return cancelled("interrupted");
  OUTRIDER_RETURN_IF_ERROR(action_ == "export" ? export_llama_ngrams(file.cache, *out_)
                                               : save_ngrams(file.cache, file.tokenizer, *out_));
  return print_files({ngram_stats_json(*out_, file, 0.0)});
}

}  // namespace

std::unique_ptr<Command> make_ngram_command() { return std::make_unique<NgramCommand>(); }

}  // namespace outrider::tools
