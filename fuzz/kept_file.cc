// What Outrider keeps between runs and reads again. The first byte chooses: a text of the prompt
// cache as it is, one with a header that fits, a verdict of the probe, or what was learned of a
// drafter. (Remembered texts are a kind of store_file.)
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/targets.h"
#include "llama/exactness/exactness_cache.h"
#include "plan/drafter_account.h"
#include "plan/experience.h"
#include "serve/saved_prompt.h"
#include "store/crc32c.h"
#include "testing/tiny_dir.h"

namespace outrider::fuzz {
namespace {

const testing::TempDir& kept_folder() {
  static const testing::TempDir dir;
  return dir;
}

template <typename T>
void append_number(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// With the length and the checksum that saved_prompt.h describes.
std::string with_header(std::string_view rest) {
  std::string file = "OUTRPRM1";
  append_number(file, static_cast<std::uint64_t>(rest.size()));
  append_number(file, crc32c(std::as_bytes(std::span(rest))));
  return file.append(rest);
}

void use_prompt(const std::string& bytes) {
  const std::string path = kept_folder().file("prompt");
  testing::write_bytes(path, bytes);
  static_cast<void>(load_prompt_identity(path));
  const Result<SavedPrompt> prompt = load_saved_prompt(path, 1 << 20);
  if (!prompt.ok()) {
    if (prompt.status().message().find(path) == std::string::npos) {
      violated("an error that names no file: " + prompt.status().message());
    }
    return;
  }
  if (bytes_of_prompt(*prompt) != bytes.size()) violated("a prompt of another size");
  if (!write_prompt(path, *prompt).ok()) violated("what was read is not written");
  const Result<SavedPrompt> again = load_saved_prompt(path, 1 << 20);
  if (!again.ok() || again->target.tokens != prompt->target.tokens ||
      again->draft.bytes != prompt->draft.bytes) {
    violated("not the same prompt again");
  }
}

void use_verdict(std::string_view bytes) {
  const llama::ExactnessCache cache(kept_folder().path());
  const std::string key = "fuzzed";
  const std::filesystem::path path = cache.file_of(key);
  std::filesystem::create_directories(path.parent_path());
  testing::write_bytes(path.string(), std::string(bytes));
  const std::optional<llama::CachedProbe> probe = cache.load(key);
  if (!probe) return;
  static_cast<void>(probe->answers(16, 1000.0));
  if (!cache.store(key, *probe).ok() || !cache.load(key)) violated("a verdict that is kept once");
}

void use_experience(std::string_view text) {
  const std::optional<DrafterExperience> experience = experience_from(text);
  if (!experience) return;
  const std::string written = to_text(*experience);
  const std::optional<DrafterExperience> again = experience_from(written);
  if (!again || to_text(*again) != written) violated("not the same experience again");
  DrafterAccount account;
  account.recall(*experience);
  DrafterExperience told;
  account.tell(&told);
}

}  // namespace

void kept_file(Bytes input) {
  Reader reader(input);
  const std::size_t kind = reader.below(4);
  const std::string_view rest = text(reader.rest());
  if (kind == 0) use_prompt(std::string(rest));
  if (kind == 1) use_prompt(with_header(rest));
  if (kind == 2) use_verdict(rest);
  if (kind == 3) use_experience(rest);
}

}  // namespace outrider::fuzz
