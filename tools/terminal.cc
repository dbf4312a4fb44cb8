#include "tools/terminal.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/options.h"

namespace outrider::tools {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};

}  // namespace

void add_output_options(CLI::App& app, OutputArguments& a) {
  OptionGroup group(app, "Output");
  group.add_switch(
      "--json", a.json,
      "print one JSON object on stdout, and nothing else there; messages stay on stderr");
  check_choices(
      group.declare("--log-level", "which of llama.cpp's own lines to show on stderr", "NAME",
                    a.log_level, [&a](const std::string& level) { a.log_level = level; }),
      {"off", "error", "warning", "info", "debug"});
  app.add_flag("-v,--verbose", a.verbose, "as --log-level info; -vv: debug")->group("Output");
}

LogSink log_sink(const OutputArguments& a, ProgressBar& bar) {
  const std::string level =
      a.verbose == 0 ? a.log_level : std::string(a.verbose == 1 ? "info" : "debug");
  const std::array<std::string_view, 4>::const_iterator least =
      std::find(kLevels.begin(), kLevels.end(), level);
  if (least == kLevels.end()) return {};
  return [&bar, least = static_cast<LogLevel>(least - kLevels.begin())](LogLevel of_line,
                                                                        std::string_view line) {
    if (of_line >= least) bar.print("llama.cpp: " + std::string(line));
  };
}

}  // namespace outrider::tools
