// The cache's folders, as llama.cpp and the hub's own tools have them, where llama-common says too
// little: whether they can be written, and what is there beside the newest commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "llama/download/hub_name.h"

namespace outrider::llama {

std::string lower_case(std::string text);

// Of a repository: "CACHE/models--USER--MODEL". It need not be there.
std::string repo_folder(const std::string& repo);

// Whether the folder can be made and a file in it be written. Errors: kResourceExhausted (the disk
// is full), kInternal (anything else), with what to do.
Status check_writable(const std::string& folder);

// The same for bytes at the end of a file, which is made where it is not there.
Status check_appendable(const std::string& path);

// Whether there is room beside `path` for that many bytes more. Errors: kResourceExhausted.
Status check_room(const std::string& path, const std::string& name, std::uint64_t bytes);

struct EarlierCopy {
  std::string path;
  std::string commit;
};

// A model in another commit than the one that the repository's `refs` name, of which llama-common
// looks at no other: the one that was written last.
std::optional<EarlierCopy> find_earlier_copy(const HubName& name);

}  // namespace outrider::llama
