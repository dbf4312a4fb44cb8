// One file of a model: fetched by llama-common, watched and checked.
#pragma once

#include <string>

#include "base/status.h"
#include "hf-cache.h"
#include "llama/download/download_job.h"

namespace outrider::llama {

// The last part of a file's path in its repository.
std::string base_name(const std::string& path);

// Nothing where the file is in the cache; waits where somebody else downloads it. `what` is told
// while it is downloaded. Afterwards it is at `file.local_path`, and a model in GGUF format.
// Errors: those of download_model.
Status fetch_file(DownloadJob& job, const hf_cache::hf_file& file, std::string what);

}  // namespace outrider::llama
