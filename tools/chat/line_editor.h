// Lines from a terminal with editing, history and pastes: libedit, where it is built in.
//
// libedit (BSD licence) and not readline, whose GPL would reach the command and whoever builds it
// into something else; and no editor of our own. docs/decisions.md has the comparison.
//
// A paste (tools/paste.h) reaches libedit as quoted characters, so it can be edited as one
// line that holds newlines, and comes back from the history as one. Tested by cli_chat_test.cc.
#pragma once

#include <memory>
#include <string>

#include "tools/chat/line_source.h"

namespace outrider::tools {

// Null where there is no editor: not built in, standard input or error is no terminal, or $TERM is
// one that cannot move its cursor. `history_file`: where messages are kept from chat to chat;
// empty: nowhere. A file that cannot be read is as good as none.
std::unique_ptr<LineSource> edited_lines(const std::string& history_file);

// Whether edited_lines() is built in.
bool has_line_editor();

// $XDG_STATE_HOME/outrider/chat_history, else in $HOME/.local/state/outrider; empty: neither is
// set.
std::string default_history_file();

}  // namespace outrider::tools
