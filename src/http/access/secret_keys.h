// SecretKeys: the keys that clients may show, and the only place that compares them.
//
// How. A comparison must not tell by its time how much of a guess was right, nor how long the key
// is. The usual way is to compare hashes of one length. Here both sides are padded to one length
// with their own length behind, which is as good and cannot collide: kMaxBytes + 2 bytes of the
// guess are compared with as many of every key, whatever they hold, and only the sum of all
// differences is looked at. What the padding of a guess takes depends on the guess alone, which
// its sender knows. The keys are padded once, when they are read.
//
// Immutable, any thread. Tested by secret_keys_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace outrider::http {

class SecretKeys {
 public:
  static constexpr std::size_t kMaxBytes = 256;

  // REQUIRES: each passes check_key()
  explicit SecretKeys(const std::vector<std::string>& keys);

  bool empty() const { return keys_.empty(); }
  bool contains(std::string_view guess) const { return place_of(guess) > 0; }
  // Its place among the keys, from 1, the first where it is there twice; 0: it is none of them.
  std::size_t place_of(std::string_view guess) const;

 private:
  using Padded = std::array<unsigned char, kMaxBytes + 2>;
  static Padded pad(std::string_view text);

  std::vector<Padded> keys_;
};

// 1 to kMaxBytes visible ASCII characters: what a header can carry. Errors: kInvalidArgument,
// about `field`; the message does not show the key.
Status check_key(const std::string& field, std::string_view key);

// "a, b": "a" and "b". What is empty between commas stays, for check_key() to refuse.
std::vector<std::string> keys_of(std::string_view list);

// The keys of a file, one a line; empty lines and those that begin with # are passed over. Errors:
// kNotFound, kInvalidArgument (a line that is no key, by its number; no key at all).
Result<std::vector<std::string>> read_key_file(const std::string& path);

}  // namespace outrider::http
