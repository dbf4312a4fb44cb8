// The cmd of init and init_async, read into what is to be loaded and the defaults of all requests.
//
// The options of llama.cpp of October 2023 that still mean something are honoured. What would
// change the text and cannot be honoured is refused by name (lora_base); what only concerns speed,
// or has no use any more, is a warning (numa, chat_template, n_threads_batch).
//
// Tested by init_command_test.cc, in both forms of cmd.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model_options.h"
#include "rpcserver/request_options.h"
#include "rpcserver/seed_object.h"

namespace outrider::rpcserver {

struct InitCommand {
  ModelOptions target;                // its path is empty when cmd names no model
  ModelOptions draft;                 // likewise model_draft; the rest as the cmd has it for drafts
  std::optional<std::int32_t> n_ctx;  // when it was given
  std::string alias;                  // not empty when cmd names a model
  RequestDefaults defaults;
  std::vector<std::string> warnings;
  Status refusal;  // then the rest is of no use
};

// `cmd` may be null.
InitCommand parse_command(const char* cmd);

}  // namespace outrider::rpcserver
