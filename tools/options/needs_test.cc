// The table of options that do nothing alone, row by row, on the commands as they are declared.
#include "tools/options/needs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "draft/drafter_table.h"
#include "tools/command.h"
#include "tools/options/config.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

// A call, its command's name first, parsed and not run.
class Parsed {
 public:
  // Throws CLI::ParseError.
  explicit Parsed(const std::vector<std::string>& call) : root_("tested", "outrider") {
    root_.allow_extras();
    for (const std::unique_ptr<Command>& command : commands_) {
      if (command->name() != call.front()) continue;
      app_ = root_.add_subcommand(command->name(), command->summary());
      app_->allow_extras();
      command->add_options(*app_);
    }
    add_layers(root_);
    std::vector<const char*> argv = {"outrider"};
    for (const std::string& argument : call) argv.push_back(argument.c_str());
    root_.parse(arguments_to_parse(root_, static_cast<int>(argv.size()), argv.data()));
  }

  const CLI::App& app() const { return *app_; }

 private:
  std::vector<std::unique_ptr<Command>> commands_ = make_commands();
  CLI::App root_;
  CLI::App* app_ = nullptr;
};

// A value that the option takes, and that is not its default.
std::string value_for(const std::string& command, const std::string& option) {
  static std::map<std::string, std::string> found;  // parsing takes a millisecond
  std::string& known = found[command + " " + option];
  if (!known.empty()) return known;
  for (const char* value : {"7", "0.25", "q8_0", "stock", "on", "off", "true", "1"}) {
    try {
      const Parsed parsed({command, "--" + option + "=" + value});
      const CLI::Option* const taken = parsed.app().get_option("--" + option);
      if (taken->results().back() != taken->get_default_str()) return known = value;
    } catch (const CLI::ParseError&) {  // another one
    }
  }
  ADD_FAILURE() << "no value fits " << option;
  return "";
}

// A command with these options typed behind it.
std::vector<std::string> call_of(const std::string& command,
                                 const std::vector<std::string>& options) {
  std::vector<std::string> call = {command};
  for (const std::string& option : options) {
    call.push_back("--" + option + "=" + value_for(command, option));
  }
  return call;
}

// What is refused, "" where nothing is; a warning behind "warning: ".
std::string answer(const std::vector<std::string>& call, const OptionFacts& facts = {}) {
  const Parsed parsed(call);
  try {
    const std::vector<std::string> warnings = check_needs(parsed.app(), facts);
    return warnings.empty() ? "" : "warning: " + warnings.front();
  } catch (const UsageError& error) {
    return error.what() + std::string(" | ") + error.hint();
  }
}

struct Case {
  const Need& need;
  std::string command;
  std::string option;
  std::vector<std::string> any;  // of the need's, those that the command has
};

// Each row for each command and option.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::unique_ptr<Command>& command : make_commands()) {
    const Parsed parsed({command->name()});
    const auto has = [&parsed](std::string_view name) {
      return parsed.app().get_option_no_throw("--" + std::string(name)) != nullptr;
    };
    for (const Need& need : option_needs()) {
      bool holds = need.commands.empty();
      for (const std::string_view name : need.commands) holds = holds || name == command->name();
      std::vector<std::string> any;
      for (const std::string_view name : need.any) {
        if (has(name)) any.emplace_back(name);
      }
      if (!holds || (any.empty() && need.used_by == nullptr)) continue;
      for (const std::string_view option : need.options) {
        if (has(option)) cases.push_back({need, command->name(), std::string(option), any});
      }
    }
  }
  return cases;
}

TEST(OptionNeeds, WhatWasTypedAloneIsRefusedAndNamesBoth) {
  const std::vector<Case> cases = all_cases();
  ASSERT_GT(cases.size(), 60U);
  for (const Case& c : cases) {
    if (c.need.used_by != nullptr) continue;
    SCOPED_TRACE(c.command + " --" + c.option);
    const std::vector<std::string> alone = call_of(c.command, {c.option});
    const std::string refused = answer(alone);
    EXPECT_EQ(refused.rfind("--" + c.option + " does nothing without --" + c.any.front(), 0), 0U)
        << refused;
    EXPECT_NE(refused.find("| give "), std::string::npos) << refused;
    EXPECT_NE(refused.find(", or leave --" + c.option + " out"), std::string::npos) << refused;
    for (const std::string& needed : c.any) {
      EXPECT_EQ(answer(call_of(c.command, {c.option, needed})).find("without --" + needed),
                std::string::npos)
          << needed;
      EXPECT_EQ(answer(alone, {.elsewhere = {needed}})
                    .find("--" + c.option + " does nothing without --" + c.any.front()),
                std::string::npos);
    }
  }
}

TEST(OptionNeeds, OfDraftersOneThatUsesItIsNeededAmongThoseThatAreAsked) {
  for (const Case& c : all_cases()) {
    if (c.need.used_by == nullptr) continue;
    SCOPED_TRACE(c.command + " --" + c.option);
    const std::vector<std::string> call = call_of(c.command, {c.option});
    int n_users = 0;
    for (const DrafterKind& kind : drafter_kinds()) {
      const OptionFacts facts{.drafters = DrafterPlan{.chains = {{std::string(kind.name)}}}};
      const std::string said = answer(call, facts);
      const bool uses = c.need.used_by(kind);
      n_users += uses ? 1 : 0;
      EXPECT_EQ(said.empty(), uses) << kind.name << ": " << said;
      if (uses) continue;
      EXPECT_EQ(said.rfind("warning: ", 0) == 0, c.need.warns) << said;
      EXPECT_NE(said.find("--" + c.option +
                          " does nothing for who guesses here: " + std::string(kind.name)),
                std::string::npos)
          << said;
    }
    EXPECT_GT(n_users, 0);
    EXPECT_FALSE(answer(call, {.drafters = DrafterPlan()}).empty()) << "nobody";
    EXPECT_EQ(answer(call), "") << "switched off, or to be chosen later";
  }
}

TEST(OptionNeeds, WhatTheEnvironmentGivesPasses) {
  for (const Case& c : all_cases()) {
    if (c.need.used_by != nullptr) continue;
    SCOPED_TRACE(c.command + " --" + c.option);
    const std::string value = value_for(c.command, c.option);
    const std::string variable = environment_name("--" + c.option);
    setenv(variable.c_str(), value.c_str(), /*overwrite=*/1);
    const Parsed parsed({c.command});
    EXPECT_EQ(parsed.app().count("--" + c.option), 1U);
    EXPECT_FALSE(was_typed(parsed.app(), c.option));
    EXPECT_EQ(answer({c.command}), "");
    unsetenv(variable.c_str());
  }
}

TEST(OptionNeeds, EachRowHoldsSomewhere) {
  const std::vector<Case> cases = all_cases();
  for (const Need& need : option_needs()) {
    for (const std::string_view option : need.options) {
      bool found = false;
      for (const Case& c : cases) found = found || (&c.need == &need && c.option == option);
      EXPECT_TRUE(found) << option;
    }
    EXPECT_NE(need.any.empty(), need.used_by == nullptr);
    EXPECT_EQ(need.any.empty(), need.give.empty());
  }
}

TEST(OptionNeeds, ADefaultAndANeedThatIsSwitchedOffPass) {
  EXPECT_EQ(answer({"run", "--logprobs", "-1"}), "");
  EXPECT_EQ(answer({"run", "--dry-base", "2", "--dry-multiplier", "0"}), "");
  EXPECT_EQ(answer({"run", "--draft-ctx", "512", "-d", ""}), "");
  EXPECT_EQ(answer({"chat", "--dry-base", "2"}), "") << "/set may bring the multiplier";
  EXPECT_EQ(answer({"make-draft", "--draft-ctx", "512"}), "");
}

}  // namespace
}  // namespace outrider::tools
