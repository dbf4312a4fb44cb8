// What a message is made of: numbers and texts, one after the other, in the machine's own order of
// bytes (both ends run on it). A reader never reads beyond the end: what is missing becomes zero
// and the reader has failed for good.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace outrider {

class WireWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void text(std::string_view text) {
    number<std::uint64_t>(text.size());
    bytes_.append(text);
  }

  template <typename T>
  void numbers(std::span<const T> values) {
    static_assert(std::is_arithmetic_v<T>);
    number<std::uint64_t>(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }

  void texts(std::span<const std::string> values) {
    number<std::uint64_t>(values.size());
    for (const std::string& value : values) text(value);
  }

  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }  // and keep the memory

 private:
  std::string bytes_;
};

class WireReader {
 public:
  // `bytes` must outlive the reader.
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  explicit WireReader(std::string&& bytes) = delete;

  template <typename T>
  T number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    const std::string_view bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  bool flag() { return number<std::uint8_t>() != 0; }

  std::string text() { return std::string(take(number<std::uint64_t>())); }

  template <typename T>
  std::vector<T> numbers() {
    static_assert(std::is_arithmetic_v<T>);
    const std::uint64_t n = number<std::uint64_t>();
    if (n > rest_.size() / sizeof(T)) return fail<std::vector<T>>();
    std::vector<T> values(n);
    if (n > 0) std::memcpy(values.data(), take(n * sizeof(T)).data(), n * sizeof(T));
    return values;
  }

  std::vector<std::string> texts() {
    const std::uint64_t n = number<std::uint64_t>();
    if (n > rest_.size() / sizeof(std::uint64_t)) return fail<std::vector<std::string>>();
    std::vector<std::string> values;
    for (std::uint64_t i = 0; i < n; ++i) values.push_back(text());
    return values;
  }

  // A value of an enumeration whose last one is `last`.
  template <typename E>
  E choice(E last) {
    const std::uint32_t value = number<std::uint32_t>();
    if (value > static_cast<std::uint32_t>(last)) return fail<E>();
    return static_cast<E>(value);
  }

  // What was read makes no sense.
  void reject() { failed_ = true; }

  bool failed() const { return failed_; }
  bool finished() const { return !failed_ && rest_.empty(); }  // all was there, and nothing else is

 private:
  template <typename T>
  T fail() {
    failed_ = true;
    return T{};
  }

  std::string_view take(std::uint64_t n) {
    if (failed_ || n > rest_.size()) return fail<std::string_view>();
    const std::string_view bytes = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return bytes;
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace outrider
