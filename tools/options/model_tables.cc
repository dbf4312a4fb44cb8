#include "tools/options/model_tables.h"

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "tools/options/drafter_files.h"
#include "tools/options/options.h"
#include "tools/options/toml.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

// One table's options, declared as a command's are.
class TableReader {
 public:
  TableReader(ModelTable& table, std::string where) : where_(std::move(where)) {
    add_model_options(app_, table.model);
    add_exact_option(app_, "Model", table.model);
    OptionGroup group(app_, "Model");
    add_drafter_files(group, table.files);
    group.add_texts("--aliases", table.aliases, "NAME", "further names");
  }

  void take(const TomlEntry& entry) {
    std::string key = entry.key;
    std::replace(key.begin(), key.end(), '_', '-');
    const CLI::Option* const option = app_.get_option_no_throw("--" + key);
    if (option == nullptr || option == app_.get_help_ptr()) refuse_key(entry, key);
    std::vector<std::string> words;  // last first, as CLI11 wants them
    for (const std::string& value : entry.values) {
      if (option->get_expected_max() == 0) {
        if (value != "true" && value != "false") {
          refuse(entry, "'" + key + "' is " + value + ", but must be true or false");
        }
        // "false" is said as well: the server's own options may have set it.
        words.push_back("--" + key + "=" + value);
      } else if (value.empty()) {
        words.insert(words.begin(), {"", "--" + key});
      } else {
        words.insert(words.begin(), "--" + key + "=" + value);
      }
    }
    const bool many = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    if (!many && entry.values.size() != 1) refuse(entry, "'" + key + "' takes one value");
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& error) {
      const UsageError wrong = translate(error);
      refuse(entry, wrong.what(), wrong.hint());
    }
  }

 private:
  [[noreturn]] void refuse(const TomlEntry& entry, const std::string& what,
                           const std::string& hint = "") const {
    throw UsageError(where_ + std::to_string(entry.line) + ": [" + entry.table + "] " + what, hint);
  }

  [[noreturn]] void refuse_key(const TomlEntry& entry, const std::string& key) const {
    std::vector<std::string> keys;
    for (const std::string& name : option_names(app_)) keys.push_back(name.substr(2));
    const std::string near = nearest(key, keys);
    refuse(entry, "has no option '" + entry.key + "'",
           near.empty() ? "its keys are those of 'outrider run --help' under Model"
                        : "did you mean '" + near + "'?");
  }

  CLI::App app_;
  std::string where_;  // "config file 'x', line "
};

}  // namespace

std::vector<ModelTable> read_model_tables(const std::string& file, std::string_view text,
                                          const ModelArguments& defaults) {
  const std::string where = "config file '" + file + "', line ";
  const Result<TomlFile> parsed = parse_toml(text);
  if (!parsed.ok()) throw UsageError("config file '" + file + "', " + parsed.status().message());
  std::vector<ModelTable> tables;
  for (const TomlModel& model : parsed->models) {
    ModelTable& table = tables.emplace_back();
    table.name = model.name;
    table.line = model.line;
    table.model = defaults;
    table.model.model = table.model.draft_model = std::nullopt;
    table.model.hf_repo = table.model.hf_repo_draft = std::nullopt;
    {
      TableReader reader(table, where);
      for (const TomlEntry& entry : parsed->entries) {
        if (entry.table == std::string(kModelTables) + "." + model.name) reader.take(entry);
      }
    }
    const std::string here = where + std::to_string(model.line) + ": [models." + model.name + "] ";
    try {
      require_model(table.model);
    } catch (const UsageError& error) {
      throw UsageError(here + error.what(), has_target(table.model)
                                                ? error.hint()
                                                : "give it model = \"FILE\" or hf-repo = "
                                                  "\"USER/REPO\"");
    }
  }
  return tables;
}

}  // namespace outrider::tools
