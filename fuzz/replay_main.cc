// fuzz_replay TARGET FOLDER [MUTATIONS]: runs every input of the folder, in the order of their
// names, and each of them again with so many random changes (by OUTRIDER_TEST_SEED, else the same
// each time; the last one is kept in fuzz_replay_TARGET.last). For compilers without libFuzzer, and
// as a test. Exit 0: all returned; 2: wrong usage, or there is no input.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/targets.h"

namespace outrider::fuzz {
namespace {

struct Target {
  const char* name;
  void (*run)(Bytes input);
};

constexpr Target kTargets[] = {
    {"json_rpc", json_rpc},
    {"c_abi", c_abi},
    {"http", http},
    {"http_access", http_access},
    {"store_file", store_file},
    {"kept_file", kept_file},
    {"llama_ngrams", llama_ngrams},
    {"wire", wire},
    {"packing", packing},
    {"gbnf", gbnf},
    {"json_schema", json_schema},
    {"chat_reader", chat_reader},
    {"chat_template", chat_template},
    {"toml", toml},
    {"command_line", command_line},
    {"gguf", gguf},
};

std::vector<std::uint8_t> read_input(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// One to four small changes, as libFuzzer makes them: a bit, a byte, a part left out or doubled.
std::vector<std::uint8_t> changed(std::vector<std::uint8_t> bytes, std::mt19937_64& random) {
  const auto draw = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t n = 1 + draw(4); n > 0 && !bytes.empty(); --n) {
    const std::size_t at = draw(bytes.size());
    const std::size_t length = std::min(bytes.size() - at, 1 + draw(8));
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    switch (draw(4)) {
      case 0:
        *begin = static_cast<std::uint8_t>(*begin ^ (1U << draw(8)));
        break;
      case 1:
        *begin = static_cast<std::uint8_t>(draw(256));
        break;
      case 2:
        bytes.erase(begin, end);
        break;
      default: {
        const std::vector<std::uint8_t> part(begin, end);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(draw(bytes.size())), part.begin(),
                     part.end());
      }
    }
  }
  return bytes;
}

int replay(const Target& target, const std::string& folder, int mutations) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  if (files.empty()) {
    std::fprintf(stderr, "there is no input in '%s'\n", folder.c_str());
    return 2;
  }
  std::sort(files.begin(), files.end());
  const char* const seed = std::getenv("OUTRIDER_TEST_SEED");
  std::mt19937_64 random(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 20261124);
  for (const std::filesystem::path& file : files) {
    const std::vector<std::uint8_t> input = read_input(file);
    // What was running is the last line when the process ends here.
    std::fprintf(stderr, "%s\n", file.filename().string().c_str());
    target.run(input);
    for (int i = 0; i < mutations; ++i) {
      const std::vector<std::uint8_t> other = changed(input, random);
      std::ofstream("fuzz_replay_" + std::string(target.name) + ".last", std::ios::binary)
          .write(reinterpret_cast<const char*>(other.data()),
                 static_cast<std::streamsize>(other.size()));
      target.run(other);
    }
  }
  std::printf("%s: %zu inputs, each with %d mutations\n", target.name, files.size(), mutations);
  return 0;
}

}  // namespace
}  // namespace outrider::fuzz

int main(int argc, char** argv) {
  using namespace outrider::fuzz;  // NOLINT: main cannot be inside it
  if (argc == 3 || argc == 4) {
    for (const Target& target : kTargets) {
      if (std::string(argv[1]) != target.name) continue;
      return replay(target, argv[2], argc == 4 ? std::atoi(argv[3]) : 0);
    }
  }
  std::fprintf(stderr, "usage: fuzz_replay TARGET FOLDER [MUTATIONS]; targets:\n");
  for (const Target& target : kTargets) std::fprintf(stderr, "  %s\n", target.name);
  return 2;
}
