// README's plot: Outrider's speed in those of llama-server's best setting, one bar a measurement.
//
//   bench_gain docs/gain.svg "temperature 0=2.00" "16 requests at once=3.79"
//
// Each figure is measured by bench/compare_peers.py or bench/throughput.py (docs/benchmarks.md).
#include <cstdlib>
#include <string>

#include "bench/give_up.h"
#include "lab/svg_plot.h"
#include "store/atomic_file.h"

namespace outrider {
namespace {

lab::BarRow row_of(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos) give_up("'" + text + "' is not LABEL=NUMBER");
  const std::string number = text.substr(equals + 1);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(value > 0.0)) {
    give_up("'" + number + "' is not a number above 0");
  }
  return {.label = text.substr(0, equals), .parts = {value}};
}

int plot(int argc, char** argv) {
  if (argc < 3) give_up("give FILE.svg LABEL=NUMBER...");
  lab::BarChart chart;
  chart.title = "Outrider beside llama-server's best setting";
  chart.label = "tokens a second, llama-server's best setting = 1 (dashed)";
  chart.mark = 1.0;
  for (int i = 2; i < argc; ++i) chart.rows.push_back(row_of(argv[i]));
  const Status written = write_whole_file(argv[1], lab::svg_of(chart));
  if (!written.ok()) give_up(written.message());
  return 0;
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) { return outrider::plot(argc, argv); }
