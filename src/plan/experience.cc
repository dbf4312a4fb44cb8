#include "plan/experience.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <locale>
#include <sstream>

namespace outrider {
namespace {

constexpr const char* kFirstLine = "drafter-experience 3";
constexpr std::size_t kMostNumbers = 4096;

void write(std::ostream& out, const char* name, const std::vector<double>& numbers) {
  out << name << ' ' << numbers.size();
  for (const double number : numbers) out << ' ' << number;
  out << '\n';
}

bool read(std::istream& in, const std::string& name, std::vector<double>* numbers) {
  std::string found;
  std::size_t n = 0;
  if (!(in >> found >> n) || found != name || n > kMostNumbers) return false;
  numbers->resize(n);
  for (double& number : *numbers) {
    if (!(in >> number) || !std::isfinite(number)) return false;
  }
  return true;
}

std::vector<double> flat(const std::vector<CostPoint>& points) {
  std::vector<double> numbers;
  for (const CostPoint& point : points) {
    numbers.push_back(static_cast<double>(point.width));
    numbers.push_back(point.ms);
  }
  return numbers;
}

bool unflatten(const std::vector<double>& numbers, std::vector<CostPoint>* points) {
  if (numbers.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const bool possible = numbers[i] >= 1.0 && numbers[i] < 1e6 && numbers[i + 1] > 0.0;
    if (!possible) return false;
    points->push_back({.width = static_cast<std::int32_t>(numbers[i]), .ms = numbers[i + 1]});
  }
  return true;
}

}  // namespace

std::string to_text(const DrafterExperience& e) {
  std::ostringstream out;
  out.imbue(std::locale::classic());  // an app that embeds this may have set another one
  out.precision(std::numeric_limits<double>::max_digits10);
  out << kFirstLine << '\n';
  write(out, "acceptance", e.acceptance);
  write(out, "first", flat(e.first_passes));
  write(out, "further", flat(e.further_passes));
  write(out, "reading", {e.reading_ms});
  write(out, "gained", e.gained);
  write(out, "own", e.own);
  return out.str();
}

std::optional<DrafterExperience> experience_from(std::string_view text) {
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  std::string first_line;
  std::getline(in, first_line);
  if (first_line != kFirstLine) return std::nullopt;
  DrafterExperience e;
  std::vector<double> first;
  std::vector<double> further;
  std::vector<double> reading;
  const bool whole = read(in, "acceptance", &e.acceptance) && read(in, "first", &first) &&
                     read(in, "further", &further) && read(in, "reading", &reading) &&
                     read(in, "gained", &e.gained) && read(in, "own", &e.own);
  if (!whole || reading.size() != 1 || reading[0] < 0.0 || e.gained.size() % 2 != 0) {
    return std::nullopt;
  }
  for (std::size_t i = 1; i < e.gained.size(); i += 2) {
    if (e.gained[i] < 0.0) return std::nullopt;
  }
  if (!unflatten(first, &e.first_passes) || !unflatten(further, &e.further_passes)) {
    return std::nullopt;
  }
  e.reading_ms = reading[0];
  return e;
}

}  // namespace outrider
