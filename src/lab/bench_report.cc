#include "lab/bench_report.h"

#include <utility>

#include "base/numbers.h"
#include "lab/bench_plots.h"
#include "lab/markup.h"
#include "run/stats_table.h"

namespace outrider::lab {
namespace {

constexpr const char* kStyle =
    ":root{color-scheme:light dark;--ink:#1f2328;--muted:#59636e;--line:#d8dde3;--paper:#fff;"
    "--card:#f5f7f9}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--muted:#9da7b1;--line:#343b44;"
    "--paper:#12161c;--card:#1a2028}}"
    "body{margin:0 auto;max-width:960px;padding:24px 20px 60px;background:var(--paper);"
    "color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',"
    "sans-serif}"
    "h1{font-size:26px;margin:0 0 4px}h2{font-size:18px;margin:36px 0 10px}"
    "p{margin:6px 0}.muted{color:var(--muted)}"
    ".cards{display:flex;flex-wrap:wrap;gap:12px;margin:20px 0}"
    ".card{background:var(--card);border-radius:8px;padding:12px 18px;min-width:130px}"
    ".card b{display:block;font-size:24px}.card span{color:var(--muted);font-size:13px}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{text-align:right;padding:6px 10px;border-bottom:1px solid var(--line)}"
    "td{white-space:nowrap}table.facts td:last-child{white-space:normal}"
    "th:first-child,td:first-child{text-align:left}th{font-weight:600;color:var(--muted)}"
    "tr.all td{font-weight:600;border-top:2px solid var(--line)}"
    "table.facts td{text-align:left}table.facts td:first-child{color:var(--muted);width:150px;"
    "white-space:nowrap}"
    "code{font:13px ui-monospace,'DejaVu Sans Mono',monospace;overflow-wrap:anywhere}"
    "figure{margin:18px 0}figure svg{max-width:100%;height:auto;border:1px solid var(--line);"
    "border-radius:8px}figcaption{color:var(--muted);font-size:13px;margin-top:6px}"
    ".scroll{overflow-x:auto}";

std::string cell(const std::string& text) { return "<td>" + escape_markup(text) + "</td>"; }

std::string card(const std::string& value, const std::string& label) {
  return "<div class=\"card\"><b>" + escape_markup(value) + "</b><span>" + escape_markup(label) +
         "</span></div>\n";
}

std::string number(const std::optional<double>& value, int digits) {
  return value ? fixed(*value, digits) : "-";
}

std::string per_step(const BenchGroup& g) {
  return g.steps > 0 ? fixed(static_cast<double>(g.emitted) / static_cast<double>(g.steps), 2)
                     : "-";
}

std::string accepted(const BenchGroup& g) {
  return percent(static_cast<double>(g.accepted), static_cast<double>(g.drafted));
}

std::string identical(const BenchGroup& g) {
  return g.identical == g.pairs ? "yes, all " + std::to_string(g.pairs)
                                : std::to_string(g.identical) + " of " + std::to_string(g.pairs);
}

std::string cards(const BenchResult& r) {
  const BenchGroup& all = r.overall;
  std::string html = "<div class=\"cards\">\n";
  html += card(all.speedup ? fixed(*all.speedup, 2) + "\xC3\x97" : "-",
               all.interval ? "as fast as plain (95 %: " + fixed(all.interval->low, 2) + " to " +
                                  fixed(all.interval->high, 2) + ")"
                            : "as fast as plain");
  html += card(number(all.speculative_tps, 1),
               "tokens a second (plain: " + number(all.plain_tps, 1) + ")");
  html += card(per_step(all), "tokens a step");
  html += card(accepted(all), "of the guesses accepted");
  html += card(identical(all), "texts as plain decoding's");
  return html + "</div>\n";
}

std::string row(const BenchGroup& g, bool all) {
  return std::string(all ? "<tr class=\"all\">" : "<tr>") + cell(g.name) +
         cell(number(g.plain_tps, 1)) + cell(number(g.speculative_tps, 1)) + cell(speedup_text(g)) +
         cell(per_step(g)) + cell(accepted(g)) +
         cell(fixed(g.plain_first_token_ms, 0) + " / " + fixed(g.speculative_first_token_ms, 0)) +
         cell(identical(g)) + "</tr>\n";
}

std::string results(const BenchResult& r) {
  std::string html =
      "<h2>Results</h2>\n<div class=\"scroll\"><table>\n<tr><th>category</th><th>plain, tokens/s"
      "</th><th>speculative</th><th>speed-up (95 %)</th><th>tokens a step</th><th>accepted</th>"
      "<th>first token, ms</th><th>same text</th></tr>\n";
  for (const BenchGroup& group : r.categories) html += row(group, false);
  if (r.categories.size() != 1) html += row(r.overall, true);
  html += "</table></div>\n<p class=\"muted\">Speeds are of the tokens after the first one. ";
  if (r.categories.size() > 1) html += "Overall is the geometric mean over the categories. ";
  return html +
         "Intervals are Student's t over the logarithms of the repetitions' ratios; each prompt is "
         "run plain and speculative in turn with the same seed, the order changing from "
         "repetition to repetition. First token: median, plain / speculative.</p>\n";
}

std::string fact(const std::string& name, const std::string& value, bool code = false) {
  if (value.empty()) return "";
  const std::string text = escape_markup(value);
  return "<tr><td>" + escape_markup(name) + "</td><td>" +
         (code ? "<code>" + text + "</code>" : text) + "</td></tr>\n";
}

std::string facts(const BenchResult& r) {
  const BenchSetting& s = r.setting;
  std::string html = "<h2>What was measured</h2>\n<table class=\"facts\">\n";
  html += fact("command", s.command, /*code=*/true);
  html += fact("target",
               s.target + (s.target_description.empty() ? "" : " (" + s.target_description + ")"));
  html += fact("draft model", s.draft.value_or("none"));
  html += fact("speculation", "drafter " + s.drafter + ", width " + s.width + ", rule " + s.rule);
  html += fact("sampling", "temperature " + shortly(static_cast<double>(s.temperature)) +
                               ", seed " + std::to_string(s.seed));
  const std::string most =
      s.max_tokens < 0 ? "no limit of" : "at most " + std::to_string(s.max_tokens);
  html += fact("work", std::to_string(s.prompts) + " prompts, " + most + " tokens each, " +
                           std::to_string(r.repetitions) + " of " + std::to_string(s.repetitions) +
                           " repetitions" + (r.interrupted ? " (interrupted)" : ""));
  html +=
      fact("exactness",
           s.exactness + (s.exactness_coverage.empty() ? "" : " (" + s.exactness_coverage + ")"));
  html += fact("machine", machine_text(s.machine) + ", " + std::to_string(s.threads) +
                              (s.threads == 1 ? " thread" : " threads"));
  html += fact("kernels", kernels_text(s.kernels));
  html += fact("devices", s.machine.devices);
  html += fact("system", s.machine.system);
  html += fact("versions", s.machine.build);
  html += fact("date", s.machine.date);
  return html + "</table>\n";
}

std::string figure(const std::string& svg, const std::string& caption) {
  if (svg.empty()) return "";
  return "<figure>\n" + svg + "<figcaption>" + escape_markup(caption) +
         "</figcaption>\n</figure>\n";
}

std::string reliability(const BenchResult& r) {
  if (r.score.n() == 0) {
    return "<p class=\"muted\">There are no predictions to look at: the planner makes them with "
           "--width auto.</p>\n";
  }
  return figure(reliability_plot(r),
                "Every guess that was put to the test, by what the planner predicted for it; "
                "whiskers: 95 % of a share. " +
                    std::to_string(r.score.n()) + " guesses; calibration error " +
                    fixed(r.score.calibration_error(), 3) + "; Brier score " +
                    fixed(r.score.brier(), 3) + ", and " + fixed(r.score.brier_of_means(), 3) +
                    " for predicting the mean of each depth.");
}

}  // namespace

std::string bench_report(const BenchResult& r) {
  const std::string title =
      "outrider bench: " + r.setting.target.substr(r.setting.target.rfind('/') + 1);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      escape_markup(title) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" +
      escape_markup(title) + "</h1>\n<p class=\"muted\">" + escape_markup(r.setting.machine.date) +
      "</p>\n";
  if (r.interrupted) {
    html += "<p><b>Interrupted:</b> these are the results of what was done until then.</p>\n";
  }
  html += cards(r) + results(r);
  html += "<h2>Plots</h2>\n";
  html += figure(speedup_plot(r),
                 "Whiskers: 95 % intervals over the repetitions; one without an end goes on.");
  html += figure(time_plot(r),
                 "Rest: what is between the parts, such as text, stop rules and the drafters' "
                 "bookkeeping.");
  html += figure(depth_plot(r), "A guess is put to the test when all before it were right.");
  html += figure(cost_plot(r), "A step pays when it says more than T(b)/T(1) tokens.");
  if (!r.floor_reason.empty()) {
    html += "<p class=\"muted\">The least that steps could take here was not measured: " +
            escape_markup(r.floor_reason) + "</p>\n";
  }
  html += reliability(r) + facts(r);
  return html + "</body>\n</html>\n";
}

}  // namespace outrider::lab
