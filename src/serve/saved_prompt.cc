#include "serve/saved_prompt.h"

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

Status no_prompt(const std::string& path) {
  return invalid_argument("'" + path + "' is no text of a prompt cache");
}

Status damaged_prompt(const std::string& path) {
  return data_loss("'" + path + "' is damaged or cut short");
}

// Takes what is behind the header off a file, straight into its place: a state may be gigabytes,
// and is not held twice.
class Rest {
 public:
  Rest(std::ifstream& file, std::uint64_t size) : file_(file), left_(size) {}

  bool take(SavedState& state) {
    return take(state.identity) && take(state.tokens) && take(state.bytes);
  }
  bool empty() const { return left_ == 0; }
  std::uint32_t sum() const { return sum_; }  // of what was taken

 private:
  // A number and as many elements; false where there are fewer.
  template <typename Container>
  bool take(Container& to) {
    std::uint64_t n = 0;
    if (!read(std::as_writable_bytes(std::span<std::uint64_t>(&n, 1)))) return false;
    if (n > left_ / sizeof(typename Container::value_type)) return false;
    to.resize(static_cast<std::size_t>(n));
    return read(std::as_writable_bytes(std::span(to.data(), to.size())));
  }

  bool read(std::span<std::byte> to) {
    if (to.size() > left_) return false;
    left_ -= to.size();
    file_.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    sum_ = crc32c(to, sum_);
    return static_cast<bool>(file_);
  }

  std::ifstream& file_;
  std::uint64_t left_;
  std::uint32_t sum_ = 0;
};

// Of a file that is open at its beginning, where it may have as many bytes.
Result<std::uint64_t> size_of(std::ifstream& file, const std::string& path,
                              std::uint64_t most_bytes) {
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  file.seekg(0);
  if (size < 0 || !file) return internal_error("cannot read '" + path + "'");
  if (static_cast<std::uint64_t>(size) <= most_bytes) return static_cast<std::uint64_t>(size);
  return invalid_argument("'" + path + "' has " + std::to_string(size) +
                          " bytes, more than the prompt cache may have (" +
                          std::to_string(most_bytes) + ")");
}

}  // namespace

std::uint64_t bytes_of_prompt(const SavedPrompt& prompt) {
  std::uint64_t bytes = kHeaderBytes;
  for (const SavedState* state : {&prompt.target, &prompt.draft}) {
    bytes += state->identity.size() + state->tokens.size() * sizeof(Token) + state->bytes.size() +
             3 * sizeof(std::uint64_t);
  }
  return bytes;
}

Status write_prompt(const std::string& path, const SavedPrompt& prompt) {
  const Pieces rest(prompt);
  PrivateFileOps ops;  // it holds a text
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
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read '" + path + "'");
  OUTRIDER_ASSIGN_OR_RETURN(const std::uint64_t n_bytes, size_of(file, path, most_bytes));
  std::string header(kHeaderBytes, '\0');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  header.resize(static_cast<std::size_t>(file.gcount()));
  if (!header.starts_with(kMagic.substr(0, header.size()))) return no_prompt(path);
  if (!file) return damaged_prompt(path);
  std::uint64_t size = 0;
  std::uint32_t sum = 0;
  std::memcpy(&size, header.data() + kMagic.size(), sizeof size);
  std::memcpy(&sum, header.data() + kMagic.size() + sizeof size, sizeof sum);
  if (size != n_bytes - kHeaderBytes) return damaged_prompt(path);
  Rest rest(file, size);
  SavedPrompt prompt;
  const bool whole = rest.take(prompt.target) && rest.take(prompt.draft) && rest.empty();
  if (!file) return internal_error("cannot read '" + path + "'");
  if (!whole || rest.sum() != sum) return damaged_prompt(path);
  return prompt;
}

}  // namespace outrider
