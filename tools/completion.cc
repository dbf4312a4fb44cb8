// outrider completion and outrider man: what shells and man need, of the options as they are
// declared.
#include <algorithm>

#include "base/list_of.h"
#include "tools/command.h"
#include "tools/command_table.h"
#include "tools/completion_scripts.h"
#include "tools/man_page.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

constexpr const char* kCompletionDetails =
    "  bash  source <(outrider completion bash)\n"
    "  zsh   source <(outrider completion zsh), behind compinit;\n"
    "        or as _outrider in a folder of $fpath\n"
    "  fish  outrider completion fish >~/.config/fish/completions/outrider.fish\n\n"
    "Packages install them.";

class CompletionCommand : public Command {
 public:
  CompletionCommand()
      : Command("completion", "print a script that completes in a shell", kCompletionDetails) {}
  void add_options(CLI::App& app) override {
    app_ = &app;
    CLI::Option* shell = app.add_option("shell", shell_, "which shell");
    set_choices(shell->type_name("SHELL")->group("Shell"), completion_shells());
  }
  void check() override {
    const std::vector<std::string>& shells = completion_shells();
    if (std::find(shells.begin(), shells.end(), shell_) != shells.end()) return;
    const std::string known = list_of(shells, " or ");
    if (shell_.empty()) throw UsageError("a shell is missing; give " + known);
    throw UsageError("no completion for '" + shell_ + "'; give " + known);
  }
  bool computes() const override { return false; }
  Result<int> run() override {
    return print(completion_script(command_table(*app_->get_parent()), shell_));
  }

 private:
  CLI::App* app_ = nullptr;  // of add_options
  std::string shell_;
};

class ManCommand : public Command {
 public:
  ManCommand()
      : Command("man", "print the manual page",
                "  outrider man | man -l -\n\nPackages install it as outrider(1).") {}
  void add_options(CLI::App& app) override { app_ = &app; }
  void check() override {}
  bool computes() const override { return false; }
  Result<int> run() override { return print(man_page(command_table(*app_->get_parent()))); }

 private:
  CLI::App* app_ = nullptr;  // of add_options
};

}  // namespace

std::unique_ptr<Command> make_completion_command() { return std::make_unique<CompletionCommand>(); }
std::unique_ptr<Command> make_man_command() { return std::make_unique<ManCommand>(); }

}  // namespace outrider::tools
