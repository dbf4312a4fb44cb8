#include "llama/download/sha256.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <vector>

// llama.cpp's HTTP client says by its flag whether there is OpenSSL.
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
#include <openssl/evp.h>
#endif

namespace outrider::llama {

#ifdef CPPHTTPLIB_OPENSSL_SUPPORT

Result<std::optional<std::string>> sha256_of(const std::string& path,
                                             const std::function<bool(std::uint64_t)>& progress) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(),
                                                                     &EVP_MD_CTX_free);
  std::ifstream file(path, std::ios::binary);
  if (!file || !hash || EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) != 1) {
    return internal_error("cannot read '" + path + "'");
  }
  std::vector<char> part(std::size_t{4} << 20);
  std::uint64_t done = 0;
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    const std::size_t n = static_cast<std::size_t>(file.gcount());
    EVP_DigestUpdate(hash.get(), part.data(), n);
    done += n;
    if (!progress(done)) return cancelled("checking '" + path + "' was interrupted");
  }
  if (file.bad()) return internal_error("cannot read all of '" + path + "'");
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int n = 0;
  EVP_DigestFinal_ex(hash.get(), bytes.data(), &n);
  std::string text;
  for (unsigned int i = 0; i < n; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return std::optional<std::string>(std::move(text));
}

#else

Result<std::optional<std::string>> sha256_of(const std::string& /*path*/,
                                             const std::function<bool(std::uint64_t)>&) {
  return std::optional<std::string>();
}

#endif

}  // namespace outrider::llama
