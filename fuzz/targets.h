// The fuzz targets: each takes bytes that a stranger may send, and does with them what the product
// does. A target returns for every input; what must not happen is an abort, a sanitizer's report,
// or a time without end. Where there is a property to hold, the target ends the process with
// violated().
//
// Each is compiled into a program of its own with clang's libFuzzer (libfuzzer_entry.cc,
// `./dev fuzz`), and all of them into fuzz_replay, which runs the inputs that are kept in
// fuzz/corpus as tests (replay_main.cc).
//
// The same input does the same thing each time: a target begins anew for each, and reads no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace outrider::fuzz {

using Bytes = std::span<const std::uint8_t>;

void json_rpc(Bytes input);       // lines, each a request of outrider_call
void c_abi(Bytes input);          // calls of the C interface, in any order
void http(Bytes input);           // a request: method and path, headers, an empty line, the body
void http_access(Bytes input);    // the same, for a server with keys: whether it is let in
void store_file(Bytes input);     // a file of n-grams, of suffixes or of remembered texts
void kept_file(Bytes input);      // a prompt that was kept, a verdict or an experience in the cache
void llama_ngrams(Bytes input);   // a file of llama.cpp's n-gram caches
void wire(Bytes input);           // a byte for the kind, then a message of a host process
void packing(Bytes input);        // weights and activations
void gbnf(Bytes input);           // a grammar
void json_schema(Bytes input);    // a schema
void chat_reader(Bytes input);    // a byte for the template, then an answer
void chat_template(Bytes input);  // a template, a NUL, a message's text
void toml(Bytes input);           // a configuration file
void command_line(Bytes input);  // arguments, one a line; behind an empty line a configuration file
void gguf(Bytes input);          // a model file's beginning, or an 'A' and what one says

// Takes an input apart. Behind its end everything is 0.
class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  // 0 to n - 1
  std::size_t below(std::size_t n) { return byte() % n; }
  Bytes take(std::size_t n) {
    const Bytes taken = bytes_.first(n < bytes_.size() ? n : bytes_.size());
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  Bytes rest() const { return bytes_; }
  bool done() const { return bytes_.empty(); }

 private:
  Bytes bytes_;
};

inline std::string_view text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Says what does not hold, and aborts.
[[noreturn]] void violated(const std::string& what);

}  // namespace outrider::fuzz
