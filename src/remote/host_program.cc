#include "remote/host_program.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace outrider {
namespace {

constexpr const char* kName = "outrider";
constexpr const char* kVariable = "OUTRIDER_HOST_PROGRAM";

bool is_program(const std::string& path) {
  struct stat facts = {};
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// "a/b/c" -> "a/b"; "c" -> "."
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// The running program by the kernel's own link to it, which leads to the same build even when the
// file has been replaced since; empty when it is another program, or where there is no such link.
std::string running_program() {
#if defined(__linux__)
  constexpr const char* kSelf = "/proc/self/exe";
  std::string path(4096, '\0');
  const ssize_t length = readlink(kSelf, path.data(), path.size());
  if (length <= 0) return "";
  path.resize(static_cast<std::size_t>(length));
  constexpr std::string_view kReplaced = " (deleted)";
  if (path.ends_with(kReplaced)) path.resize(path.size() - kReplaced.size());
  if (path.substr(path.rfind('/') + 1) == kName) return kSelf;
#endif
  return "";
}

std::string beside_this_code() {
  Dl_info facts = {};
  if (dladdr(reinterpret_cast<const void*>(&find_host_program), &facts) == 0) return "";
  if (facts.dli_fname == nullptr) return "";
  return host_program_near(facts.dli_fname);
}

std::string on_the_path() {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string path = std::string(rest.substr(0, colon)) + "/" + kName;
    if (path.front() == '/' && is_program(path)) return path;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return "";
}

}  // namespace

std::string host_program_near(const std::string& code) {
  const std::string folder = folder_of(code);
  for (const char* place : {"/", "/bin/", "/../bin/", "/../../bin/"}) {
    const std::string path = folder + place + kName;
    if (is_program(path)) return path;
  }
  return "";
}

Result<std::string> find_host_program() {
  if (const char* chosen = std::getenv(kVariable); chosen != nullptr && *chosen != 0) {
    if (is_program(chosen)) return std::string(chosen);
    return not_found(std::string(kVariable) + " is '" + chosen +
                     "', which is no program; it must be the path of the command outrider");
  }
  for (std::string (*find)() : {running_program, beside_this_code, on_the_path}) {
    std::string path = find();
    if (!path.empty()) return path;
  }
  return not_found(
      "a model in a process of its own needs the command outrider, which is neither beside this "
      "library, nor in bin, ../bin or ../../bin from there, nor on the PATH; install it, or give "
      "its path in " +
      std::string(kVariable));
}

}  // namespace outrider
