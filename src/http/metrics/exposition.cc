#include "http/metrics/exposition.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace outrider::http {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  const double size = std::abs(value);
  const bool plain = size == 0.0 || (size >= 1e-6 && size < 1e15);  // 0.0005, not 5e-04
  std::array<char, 32> text{};
  const std::to_chars_result end =
      std::to_chars(text.data(), text.data() + text.size(), value,
                    plain ? std::chars_format::fixed : std::chars_format::general);
  return {text.data(), end.ptr};
}

void append_escaped(std::string_view text, bool quoted, std::string& out) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quoted && c == '"')) out += '\\';
    out += c;
  }
}

}  // namespace

void Histogram::add(double seconds, std::int64_t times) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  counts_[static_cast<std::size_t>(bound - kBounds.begin())] += times;
  sum_ += seconds * static_cast<double>(times);
}

std::int64_t Histogram::count() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ");
  append_escaped(help, /*quoted=*/false, text_);
  text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void Exposition::line(std::string_view suffix, Labels labels, const Label* more, double value) {
  text_.append(name_).append(suffix);
  char before = '{';
  const auto add = [&](const Label& label) {
    text_ += before;
    before = ',';
    text_.append(label.first).append("=\"");
    append_escaped(label.second, /*quoted=*/true, text_);
    text_ += '"';
  };
  for (const Label& label : labels) add(label);
  if (more != nullptr) add(*more);
  if (before == ',') text_ += '}';
  text_.append(" ").append(number(value)).append("\n");
}

void Exposition::sample(Labels labels, double value) { line("", labels, nullptr, value); }

void Exposition::sample(Labels labels, const Histogram& histogram) {
  std::int64_t so_far = 0;
  for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
    so_far += histogram.counts()[i];
    const std::string bound =
        i < Histogram::kBounds.size() ? number(Histogram::kBounds[i]) : "+Inf";
    const Label upper{"le", bound};
    line("_bucket", labels, &upper, static_cast<double>(so_far));
  }
  line("_sum", labels, nullptr, histogram.sum());
  line("_count", labels, nullptr, static_cast<double>(so_far));
}

}  // namespace outrider::http
