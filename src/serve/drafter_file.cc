#include "serve/drafter_file.h"

#include <algorithm>
#include <utility>

namespace outrider {

std::uint64_t OpenedDrafterFile::file_bytes() const {
  return suffix == nullptr ? 0 : suffix->file().file_bytes();
}

Status OpenedDrafterFile::damage() const {
  return suffix == nullptr ? Status() : suffix->file().damage();
}

Status check_file_drafter(std::string_view drafter) {
  if (std::find(kFileDrafters.begin(), kFileDrafters.end(), drafter) != kFileDrafters.end()) {
    return Status();
  }
  std::string known;
  for (const std::string_view name : kFileDrafters) {
    known += (known.empty() ? "" : " or ") + std::string(name);
  }
  return invalid_argument("--drafter is '" + std::string(drafter) + "', but must be " + known +
                          ": no other drafter takes files");
}

Result<OpenedDrafterFile> open_drafter_file(const DrafterFile& file, const TokenizerId& tokenizer) {
  OUTRIDER_RETURN_IF_ERROR(check_file_drafter(file.drafter));
  Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(file.path, tokenizer);
  if (!store.ok()) return store.status();
  return OpenedDrafterFile{.file = file, .suffix = *std::move(store)};
}

}  // namespace outrider
