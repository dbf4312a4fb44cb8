// outrider suffix: makes and describes the stores that the suffix drafter looks things up in.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "draft/suffix/suffix_store.h"
#include "input/corpus.h"
#include "run/store_stats.h"
#include "store/tokenizer_id.h"
#include "tools/command.h"
#include "tools/options/needs.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"
#include "tools/output_file.h"

namespace outrider::tools {
namespace {

using json::Json;

constexpr const char* kSuffixDetails =
    R"(  suffix build --vocab T.gguf FILES... -o STORE   from texts and JSON lines
  suffix merge STORES... -o STORE                 all their texts in one store
  suffix stats STORE...                           what they hold;
                                                  checks every byte

FILES that end in .jsonl hold a JSON object a line, with 'prompt', 'turns' or 'messages'; all
others are plain text. A store serves models with the tokenizer that it was built for only.
Use it with run --drafter suffix --suffix-store STORE.)";

class SuffixCommand : public Command {
 public:
  SuffixCommand()
      : Command("suffix",
                "build, merge and describe stores of texts that the suffix drafter guesses from",
                kSuffixDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  Result<int> run() override;

 private:
  Status check_store() const;
  Result<SuffixStoreBuilder> build(Terminal& terminal);
  Result<int> stats();

  const CLI::App* app_ = nullptr;   // of add_options
  std::vector<std::string> words_;  // the action, then files
  std::string action_;
  std::vector<std::string> files_;
  std::optional<std::string> vocab_;
  std::optional<std::string> store_;
};

void SuffixCommand::add_options(CLI::App& app) {
  app_ = &app;
  CLI::Option* words =
      app.add_option("action", words_, "build, merge or stats, and the files that it is about");
  set_choices(words->type_name("build|merge|stats FILE...")->group("Store"),
              {"build", "merge", "stats"});
  OptionGroup group(app, "Store");
  group.add_text("--vocab", vocab_, "FILE",
                 "build: the GGUF file of the model whose tokenizer cuts the texts");
  group.add_text("-o,--output", store_, "FILE",
                 "build, merge: the store to write; an old one stays until the new one is whole");
  add_output_options(app, output_);
}

void SuffixCommand::check() {
  const std::string usage = "'outrider suffix --help' shows how it is used";
  if (words_.empty()) throw UsageError("an action is missing: build, merge or stats", usage);
  action_ = words_.front();
  files_.assign(words_.begin() + 1, words_.end());
  if (action_ != "build" && action_ != "merge" && action_ != "stats") {
    throw UsageError("unknown action '" + action_ + "'; actions are build, merge and stats", usage);
  }
  if (files_.empty()) throw UsageError("suffix " + action_ + " needs a file at least", usage);
  // What an action has no use for is wrong only where it was typed: the environment and a config
  // file are shared by several calls.
  const bool writes = action_ != "stats";
  if (!writes && !was_typed(*app_, "output")) store_.reset();
  if (action_ != "build" && !was_typed(*app_, "vocab")) vocab_.reset();
  if (writes != store_.has_value()) {
    throw UsageError(writes ? "-o FILE is missing: the store to write"
                            : "--output is not an option of suffix stats",
                     usage);
  }
  if ((action_ == "build") != vocab_.has_value()) {
    throw UsageError(action_ == "build" ? "--vocab FILE is missing: the model's GGUF file"
                                        : "--vocab is an option of suffix build only",
                     usage);
  }
}

// Before the texts are read. Stores may be merged into one of them, which then holds all.
Status SuffixCommand::check_store() const {
  OutputFile output{.option = "--output", .path = *store_, .check_old = is_store(kSuffixStore)};
  if (action_ == "build") output.reads = files_;
  if (vocab_) output.reads.push_back(*vocab_);
  return check_output_file(output);
}

Result<SuffixStoreBuilder> SuffixCommand::build(Terminal& terminal) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::shared_ptr<const Vocabulary> vocabulary,
                            read_vocabulary(*vocab_));
  SuffixStoreBuilder builder(tokenizer_id(*vocabulary));
  OUTRIDER_RETURN_IF_ERROR(
      for_each_text(files_, *vocabulary, CorpusForm::kPlain, terminal.watcher(), "reading texts",
                    [&](const std::vector<Token>& tokens) { return builder.add(tokens); }));
  return builder;
}

Result<int> SuffixCommand::stats() {
  Json list = Json::array();
  std::string table;
  for (const std::string& file : files_) {
    OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<SuffixStore> store, SuffixStore::open(file));
    OUTRIDER_RETURN_IF_ERROR(store->verify());
    list.push_back(suffix_stats_json(file, *store));
    table += suffix_stats_line(file, *store);
  }
  return print({{"stores", list}}, table);
}

Result<int> SuffixCommand::run() {
  if (action_ == "stats") return stats();
  OUTRIDER_RETURN_IF_ERROR(check_store());
  Terminal& terminal = watch();
  OUTRIDER_ASSIGN_OR_RETURN(const SuffixStoreBuilder builder,
                            action_ == "build" ? build(terminal) : merge_suffix_stores(files_));
  if (terminal.signals.raised()) return cancelled("interrupted");
  OUTRIDER_RETURN_IF_ERROR(builder.write(*store_));
  return print({{"store", *store_}, {"texts", builder.n_texts()}, {"tokens", builder.n_tokens()}},
               "'" + *store_ + "': " + std::to_string(builder.n_texts()) + " texts, " +
                   std::to_string(builder.n_tokens()) + " tokens\n");
}

}  // namespace

std::unique_ptr<Command> make_suffix_command() { return std::make_unique<SuffixCommand>(); }

}  // namespace outrider::tools
