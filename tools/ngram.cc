// outrider ngram: files for the drafter "ngram-cache".
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/list_of.h"
#include "base/nearest.h"
#include "draft/ngram/llama_ngram_file.h"
#include "draft/ngram/ngram_file.h"
#include "json/json.h"
#include "tools/command.h"
#include "tools/corpus.h"
#include "tools/options.h"
#include "tools/report.h"
#include "tools/terminal.h"
#include "tools/usage.h"
#include "tools/vocabulary_file.h"

namespace outrider::tools {
namespace {

using json::Json;

constexpr const char* kNgramDetails =
    "  ngram create --vocab T.gguf TEXT... -o F   count texts (JSON lines, too) for "
    "--ngram-static;\n"
    "                                             with --dynamic for --ngram-dynamic\n"
    "  ngram merge FILE FILE... -o F              add files of one tokenizer up\n"
    "  ngram stats FILE...                        what files hold\n"
    "  ngram import --vocab T.gguf FILE -o F      from llama.cpp (llama-lookup-create, -merge)\n"
    "  ngram export FILE -o F                     for llama.cpp\n"
    "Files carry their tokenizer and checksums, and are replaced whole or not at all. llama.cpp's "
    "have\n"
    "neither: one that was cut between two n-grams, or made with another model whose ids this one "
    "has\n"
    "too, cannot be told from a good one.";

const std::vector<std::string>& actions() {
  static const std::vector<std::string> all = {"create", "merge", "stats", "import", "export"};
  return all;
}

class NgramCommand : public Command {
 public:
  std::string name() const override { return "ngram"; }
  std::string summary() const override {
    return "make, merge, describe and convert files of n-gram caches";
  }
  std::string details() const override { return kNgramDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  // A cache and whose ids it holds.
  Result<NgramFile> create(const VocabularyFile& vocabulary, Terminal& terminal) const;
  Result<NgramFile> merge() const;
  Result<NgramFile> import(const VocabularyFile& vocabulary) const;
  int save(const NgramFile& file) const;
  int stats() const;
  int print(const std::vector<Json>& files) const;

  std::vector<std::string> arguments_;  // the action and its files
  std::vector<std::string> files_;
  std::string action_;
  std::optional<std::string> vocab_;
  std::optional<std::string> out_;
  bool dynamic_ = false;
  OutputArguments output_;
};

void NgramCommand::add_options(CLI::App& app) {
  OptionGroup group(app, "Files");
  CLI::Option* arguments =
      app.add_option("action", arguments_,
                     "create, merge, stats, import or export, and the files that it reads (see "
                     "below)");
  arguments->type_name("ACTION FILE...")->group("Files");
  group.add_text("-o,--output", out_, "FILE", "the file to write; replaced if it exists");
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
  const bool reads_text = action_ == "create" || action_ == "import";
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
  if (dynamic_ && action_ != "create") {
    throw UsageError("--dynamic is given, but only ngram create takes it", usage);
  }
}

Result<NgramFile> NgramCommand::create(const VocabularyFile& vocabulary, Terminal& terminal) const {
  NgramFile result{.cache = {}, .tokenizer = vocabulary.id()};
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (terminal.signals.raised()) return cancelled("interrupted");
    terminal.progress.update("counting",
                             static_cast<double>(i) / static_cast<double>(files_.size()));
    const Result<std::vector<std::string>> corpus = read_corpus(files_[i]);
    if (!corpus.ok()) return corpus.status();
    for (std::string text : *corpus) {
      // As llama.cpp's tools: without a newline at the end, with special tokens spelled out or not.
      if (!text.empty() && text.back() == '\n') text.pop_back();
      const Result<std::vector<Token>> tokens =
          vocabulary.vocabulary().tokenize(text, /*add_special=*/true, /*parse_special=*/true);
      if (!tokens.ok()) return tokens.status().with_context("'" + files_[i] + "'");
      result.cache.count(*tokens, 0, dynamic_ ? 1 : kStaticNgram,
                         dynamic_ ? kMaxNgram : kStaticNgram);
    }
  }
  return result;
}

Result<NgramFile> NgramCommand::merge() const {
  NgramFile result;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    Result<NgramFile> file = load_ngrams(files_[i]);
    if (!file.ok()) return file.status();
    if (i == 0) {
      result = std::move(*file);
    } else if (file->tokenizer == result.tokenizer) {
      result.cache.merge(file->cache);
    } else {
      return invalid_argument("'" + files_[i] + "' is for another tokenizer than '" + files_[0] +
                              "': " + describe(file->tokenizer) + ", not " +
                              describe(result.tokenizer));
    }
  }
  return result;
}

Result<NgramFile> NgramCommand::import(const VocabularyFile& vocabulary) const {
  Result<ImportedNgrams> imported =
      import_llama_ngrams(files_.front(), vocabulary.vocabulary().size());
  if (!imported.ok()) return imported.status();
  if (imported->n_saturated > 0) {
    print_warning(std::to_string(imported->n_saturated) + " counts were above " +
                  std::to_string(kMaxNgramCount) + ", which is the most that is kept");
  }
  return NgramFile{.cache = std::move(imported->cache), .tokenizer = vocabulary.id()};
}

Json describe_file(const std::string& path, const NgramFile& file, double load_ms) {
  std::uint64_t counts = 0;
  for (std::size_t i = 0; i < file.cache.size(); ++i) counts += file.cache.part(i).total;
  char hash[20];
  std::snprintf(hash, sizeof(hash), "%016llx",
                static_cast<unsigned long long>(file.tokenizer.hash));
  return {{"file", path},
          {"ngrams", file.cache.size()},
          {"by_order", file.cache.sizes()},
          {"followers", file.cache.followers()},
          {"counts", counts},
          {"vocabulary", file.tokenizer.n_vocab},
          {"tokenizer", hash},
          {"memory_bytes", file.cache.memory_bytes()},
          {"load_ms", load_ms}};
}

int NgramCommand::print(const std::vector<Json>& files) const {
  std::string text;
  for (const Json& file : files) {
    if (output_.json) continue;
    char line[400];
    std::snprintf(line, sizeof(line),
                  "  n-grams       %llu (order 1 to 4: %llu, %llu, %llu, %llu)\n"
                  "  followers     %llu, seen %llu times\n"
                  "  tokenizer     %lld tokens, hash %s\n"
                  "  memory        %.1f MiB, loaded in %.1f ms\n",
                  static_cast<unsigned long long>(file["ngrams"].get<std::uint64_t>()),
                  static_cast<unsigned long long>(file["by_order"][0].get<std::uint64_t>()),
                  static_cast<unsigned long long>(file["by_order"][1].get<std::uint64_t>()),
                  static_cast<unsigned long long>(file["by_order"][2].get<std::uint64_t>()),
                  static_cast<unsigned long long>(file["by_order"][3].get<std::uint64_t>()),
                  static_cast<unsigned long long>(file["followers"].get<std::uint64_t>()),
                  static_cast<unsigned long long>(file["counts"].get<std::uint64_t>()),
                  static_cast<long long>(file["vocabulary"].get<std::int64_t>()),
                  file["tokenizer"].get<std::string>().c_str(),
                  file["memory_bytes"].get<double>() / (1 << 20), file["load_ms"].get<double>());
    text += one_line(file["file"].get<std::string>()) + "\n" + line;
  }
  if (output_.json) text = json::encode(Json{{"files", files}}) + "\n";
  return print_result(text);
}

int NgramCommand::stats() const {
  std::vector<Json> files;
  for (const std::string& path : files_) {
    const Stopwatch watch;
    const Result<NgramFile> file = load_ngrams(path);
    if (!file.ok()) return fail(file.status());
    files.push_back(describe_file(path, *file, watch.elapsed_ms()));
  }
  return print(files);
}

int NgramCommand::save(const NgramFile& file) const {
  const Status saved = action_ == "export" ? export_llama_ngrams(file.cache, *out_)
                                           : save_ngrams(file.cache, file.tokenizer, *out_);
  if (!saved.ok()) return fail(saved);
  return print({describe_file(*out_, file, 0.0)});
}

int NgramCommand::run() {
  if (action_ == "stats") return stats();
  Terminal terminal(output_);
  Result<NgramFile> file = NgramFile();
  if (vocab_) {
    const Result<VocabularyFile> vocabulary = VocabularyFile::open(*vocab_, terminal);
    if (!vocabulary.ok()) {
      file = vocabulary.status();
    } else {
      file = action_ == "create" ? create(*vocabulary, terminal) : import(*vocabulary);
    }
  } else {
    file = action_ == "merge" ? merge() : load_ngrams(files_.front());
  }
  terminal.progress.clear();
  if (file.ok() && !terminal.signals.raised()) return save(*file);
  return fail(file.ok() ? cancelled("interrupted") : file.status(), terminal.signals);
}

}  // namespace

std::unique_ptr<Command> make_ngram_command() { return std::make_unique<NgramCommand>(); }

}  // namespace outrider::tools
