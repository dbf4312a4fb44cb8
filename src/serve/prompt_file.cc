#include "serve/prompt_file.h"

#include <cstring>
#include <fstream>
#include <span>
#include <string_view>

#include "store/atomic_file.h"
#include "store/crc32c.h"

namespace outrider {
namespace {

constexpr std::string_view kMagic = "OUTRPRM1";
constexpr std::uint64_t kMostIdentityBytes = 1 << 20;  // it is a line
constexpr std::size_t kHeaderBytes = kMagic.size() + sizeof(std::uint64_t) + sizeof(std::uint32_t);

// The file behind its header, in pieces: a state may be gigabytes, and is not copied for this.
class Pieces {
 public:
  explicit Pieces(const SavedPrompt& prompt) {
    for (const SavedState* state : {&prompt.target, &prompt.draft}) {
      add(state->identity.data(), state->identity.size());
      add(state->tokens.data(), state->tokens.size());
      add(state->bytes.data(), state->bytes.size());
    }
    for (Piece& piece : pieces_) {
      piece.n_bytes = std::as_bytes(std::span<const std::uint64_t>(&piece.n, 1));
      size += piece.n_bytes.size() + piece.data.size();
      sum = crc32c(piece.data, crc32c(piece.n_bytes, sum));
    }
  }

  Status write_to(AtomicFile& file) const {
    for (const Piece& piece : pieces_) {
      OUTRIDER_RETURN_IF_ERROR(file.write(piece.n_bytes));
      OUTRIDER_RETURN_IF_ERROR(file.write(piece.data));
    }
    return Status();
  }

  std::uint64_t size = 0;
  std::uint32_t sum = 0;

 private:
  struct Piece {
    std::uint64_t n = 0;  // elements
    std::span<const std::byte> data;
    std::span<const std::byte> n_bytes;  // of `n`
  };

  template <typename T>
  void add(const T* data, std::size_t n) {
    pieces_.push_back({.n = n, .data = std::as_bytes(std::span<const T>(data, n)), .n_bytes = {}});
  }

  std::vector<Piece> pieces_;
};

// Takes `n` and as many elements off the front; false where there are fewer.
template <typename Container>
bool take(std::string_view& from, Container& to) {
  using T = typename Container::value_type;
  std::uint64_t n = 0;
  if (from.size() < sizeof n) return false;
  std::memcpy(&n, from.data(), sizeof n);
  from.remove_prefix(sizeof n);
  if (n > from.size() / sizeof(T)) return false;
  to.resize(static_cast<std::size_t>(n));
  const std::size_t size = to.size() * sizeof(T);
  if (size > 0) std::memcpy(to.data(), from.data(), size);
  from.remove_prefix(size);
  return true;
}

bool take(std::string_view& from, SavedState& state) {
  return take(from, state.identity) && take(from, state.tokens) && take(from, state.bytes);
}

std::uint32_t checksum(std::string_view bytes) {
  return crc32c(std::as_bytes(std::span<const char>(bytes)));
}

Result<std::string> read_all(const std::string& path, std::uint64_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read '" + path + "'");
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  if (size < 0) return internal_error("cannot read '" + path + "'");
  if (static_cast<std::uint64_t>(size) > most_bytes) {
    return invalid_argument("'" + path + "' has " + std::to_string(size) +
                            " bytes, more than the prompt cache may have (" +
                            std::to_string(most_bytes) + ")");
  }
  std::string all(static_cast<std::size_t>(size), '\0');
  file.seekg(0);
  if (!file.read(all.data(), size)) return internal_error("cannot read '" + path + "'");
  return all;
}

Status no_prompt(const std::string& path) {
  return invalid_argument("'" + path + "' is no text of a prompt cache");
}

Status damaged_prompt(const std::string& path) {
  return data_loss("'" + path + "' is damaged or cut short");
}

}  // namespace

Status write_prompt(const std::string& path, const SavedPrompt& prompt) {
  const Pieces rest(prompt);
  FileOps ops;
  OUTRIDER_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path, ops));
  OUTRIDER_RETURN_IF_ERROR(file.write(std::as_bytes(std::span<const char>(kMagic))));
  OUTRIDER_RETURN_IF_ERROR(
      file.write(std::as_bytes(std::span<const std::uint64_t>(&rest.size, 1))));
  OUTRIDER_RETURN_IF_ERROR(file.write(std::as_bytes(std::span<const std::uint32_t>(&rest.sum, 1))));
  OUTRIDER_RETURN_IF_ERROR(rest.write_to(file));
  return file.commit();
}

Result<std::string> load_prompt_identity(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read '" + path + "'");
  std::string start(kHeaderBytes + sizeof(std::uint64_t), '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  if (!start.starts_with(kMagic.substr(0, start.size()))) return no_prompt(path);
  if (!file) return damaged_prompt(path);
  std::uint64_t n = 0;
  std::memcpy(&n, start.data() + kHeaderBytes, sizeof n);
  if (n > kMostIdentityBytes) return damaged_prompt(path);
  std::string identity(static_cast<std::size_t>(n), '\0');
  if (!file.read(identity.data(), static_cast<std::streamsize>(n))) return damaged_prompt(path);
  return identity;
}

Result<SavedPrompt> load_saved_prompt(const std::string& path, std::uint64_t most_bytes) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::string all, read_all(path, most_bytes));
  std::string_view rest = all;
  if (!rest.starts_with(kMagic.substr(0, rest.size()))) {
    return no_prompt(path);
  }
  const Status damaged = damaged_prompt(path);
  if (rest.size() < kHeaderBytes) return damaged;
  std::uint64_t size = 0;
  std::uint32_t sum = 0;
  std::memcpy(&size, rest.data() + kMagic.size(), sizeof size);
  std::memcpy(&sum, rest.data() + kMagic.size() + sizeof size, sizeof sum);
  rest.remove_prefix(kHeaderBytes);
  if (size != rest.size() || sum != checksum(rest)) return damaged;
  SavedPrompt prompt;
  const bool good = take(rest, prompt.target) && take(rest, prompt.draft) && rest.empty();
  if (!good) return damaged;
  return prompt;
}

}  // namespace outrider
