// The commands of `outrider chat`, one table: what may be typed, what it does, what /help says.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tools/chat/chat_state.h"

namespace outrider::tools {

struct SlashCommand {
  std::string_view name;      // without its slash
  std::string_view argument;  // for /help: "FILE"; empty: it takes none
  bool needs_argument;
  std::string_view help;
  Status (*act)(ChatState& chat, const std::string& argument);
};

// In the order of /help. Static storage.
std::span<const SlashCommand> slash_commands();

// Does what `line` says, "/set top_k 40". Errors: the command's; kNotFound for one that there is
// not, which says which there are; kInvalidArgument for an argument too many or too few.
Status do_command(ChatState& chat, std::string_view line);

// What /help prints.
std::string command_help();

}  // namespace outrider::tools
