// outrider suffix: makes and describes the stores that the suffix drafter looks things up in.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "draft/suffix/suffix_store.h"
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

constexpr const char* kSuffixDetails =
    "  outrider suffix build --vocab T.gguf FILES... -o STORE   from texts and JSON lines\n"
    "  outrider suffix merge STORES... -o STORE                 all their texts in one store\n"
    "  outrider suffix stats STORE...                           what they hold; checks every "
    "byte\n\n"
    "FILES that end in .jsonl hold a JSON object a line, with 'prompt', 'turns' or 'messages'; "
    "all\n"
    "others are plain text. A store serves models with the tokenizer that it was built for only.\n"
    "Use it with run --drafter suffix --suffix-store STORE.";

class SuffixCommand : public Command {
 public:
  std::string name() const override { return "suffix"; }
  std::string summary() const override {
    return "build, merge and describe stores of texts that the suffix drafter guesses from";
  }
  std::string details() const override { return kSuffixDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  int build();
  int merge();
  int stats();
  int write(const SuffixStoreBuilder& builder);
  int print(const Json& object, const std::string& text);

  std::vector<std::string> words_;  // the action, then files
  std::string action_;
  std::vector<std::string> files_;
  std::optional<std::string> vocab_;
  std::optional<std::string> store_;
  OutputArguments output_;
};

void SuffixCommand::add_options(CLI::App& app) {
  CLI::Option* words =
      app.add_option("action", words_, "build, merge or stats, and the files that it is about");
  words->type_name("build|merge|stats FILE...")->group("Store");
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
  const bool writes = action_ != "stats";
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

int SuffixCommand::print(const Json& object, const std::string& text) {
  return print_result(output_.json ? json::encode(object) + "\n" : text);
}

int SuffixCommand::write(const SuffixStoreBuilder& builder) {
  const Status written = builder.write(*store_);
  if (!written.ok()) return fail(written);
  return print({{"store", *store_}, {"texts", builder.n_texts()}, {"tokens", builder.n_tokens()}},
               "'" + *store_ + "': " + std::to_string(builder.n_texts()) + " texts, " +
                   std::to_string(builder.n_tokens()) + " tokens\n");
}

int SuffixCommand::build() {
  Terminal terminal(output_);
  const Result<VocabularyFile> file = VocabularyFile::open(*vocab_, terminal);
  if (!file.ok()) return fail(file.status(), terminal.signals);
  const Vocabulary& vocabulary = file->vocabulary();
  SuffixStoreBuilder builder(file->id());
  for (std::size_t i = 0; i < files_.size(); ++i) {
    terminal.progress.update("reading texts",
                             static_cast<double>(i) / static_cast<double>(files_.size()));
    Result<std::vector<std::string>> texts = read_corpus(files_[i]);
    if (!texts.ok()) return fail(texts.status());
    for (const std::string& text : *texts) {
      if (terminal.signals.raised()) return terminal.signals.exit_code();
      // A text's own "<|im_end|>" is text: nothing in a file becomes a control token.
      Result<std::vector<Token>> tokens =
          vocabulary.tokenize(text, /*add_special=*/false, /*parse_special=*/false);
      if (!tokens.ok()) return fail(tokens.status().with_context("'" + files_[i] + "'"));
      const Status added = builder.add(*tokens);
      if (!added.ok()) return fail(added.with_context("'" + files_[i] + "'"));
    }
  }
  terminal.progress.clear();
  return write(builder);
}

int SuffixCommand::merge() {
  std::unique_ptr<SuffixStoreBuilder> builder;
  TokenizerId tokenizer;
  for (const std::string& file : files_) {
    Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(file);
    if (!store.ok()) return fail(store.status());
    if (!builder) {
      tokenizer = (*store)->file().tokenizer();
      builder = std::make_unique<SuffixStoreBuilder>(tokenizer);
    }
    if ((*store)->file().tokenizer() != tokenizer) {
      return fail(invalid_argument("'" + file + "' (" + describe((*store)->file().tokenizer()) +
                                   ") was built for another tokenizer than '" + files_.front() +
                                   "' (" + describe(tokenizer) + ")"));
    }
    const Status copied = (*store)->copy_to(*builder);
    if (!copied.ok()) return fail(copied);
  }
  return write(*builder);
}

int SuffixCommand::stats() {
  Json list = Json::array();
  std::string table;
  for (const std::string& file : files_) {
    Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(file);
    if (!store.ok()) return fail(store.status());
    const Status verified = (*store)->verify();
    if (!verified.ok()) return fail(verified);
    char hash[17];
    std::snprintf(hash, sizeof(hash), "%016llx",
                  static_cast<unsigned long long>((*store)->file().tokenizer().hash));
    list.push_back({{"store", file},
                    {"texts", (*store)->n_texts()},
                    {"tokens", (*store)->n_tokens()},
                    {"bytes", (*store)->file().file_bytes()},
                    {"n_vocab", (*store)->file().tokenizer().n_vocab},
                    {"tokenizer_hash", hash}});
    table += "'" + one_line(file) + "': " + std::to_string((*store)->n_texts()) + " texts, " +
             std::to_string((*store)->n_tokens()) + " tokens, " +
             std::to_string((*store)->file().file_bytes()) +
             " bytes; tokenizer: " + describe((*store)->file().tokenizer()) + "\n";
  }
  return print({{"stores", list}}, table);
}

int SuffixCommand::run() {
  if (action_ == "build") return build();
  return action_ == "merge" ? merge() : stats();
}

}  // namespace

std::unique_ptr<Command> make_suffix_command() { return std::make_unique<SuffixCommand>(); }

}  // namespace outrider::tools
