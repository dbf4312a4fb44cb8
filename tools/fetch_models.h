// Models that are named by their place in the hub, -hf and -hfd, become files.
#pragma once

#include "base/status.h"
#include "tools/options/model_options.h"
#include "tools/terminal.h"

namespace outrider::tools {

// Downloads what --hf-repo and --hf-repo-draft name and is not in the cache, with a progress bar
// and Ctrl-C as an end that keeps the part, and puts the files' paths where -m and -d would have
// them. Returns kDone; or the exit code, and has said why. Fine where nothing is to be fetched.
// REQUIRES: no other SignalWatch lives; require_model() has passed, or there is no --hf-repo
int fetch_models(ModelArguments& arguments);

// Finds out what the draft is called (ModelArguments::draft_name), by its file's header.
// REQUIRES: fetch_models() or download_models() has passed
void name_draft(ModelArguments& arguments);

// On a terminal, for a target without a draft: a line about the file beside it that could be one
// (tools/options/model_folder.h), with the option to type. It is never taken unasked. None for an
// isolated target, whose file this process does not read. `serve` says it with its other models'
// (tools/catalog_options.h).
void offer_draft(const ModelArguments& arguments);

// The same for those who have a Terminal and report themselves: the failure as it is, kCancelled
// where a signal came. The draft is not named.
Status download_models(ModelArguments& arguments, Terminal& terminal);

}  // namespace outrider::tools
