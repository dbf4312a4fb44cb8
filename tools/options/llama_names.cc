#include "tools/options/llama_names.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace outrider::tools {
namespace {

struct Renamed {
  std::array<std::string_view, 6> theirs;
  std::string_view ours;
};

constexpr std::string_view kPlanned =
    "not needed in Outrider: who guesses and how much is chosen in each step; --drafter and "
    "--width "
    "fix it";
constexpr std::string_view kNotThere = "not an option of Outrider";

// docs/llama-server.md has them with what is different.
constexpr Renamed kRenamed[] = {
    {{"-md", "--model-draft", "--spec-draft-model"}, "-d, --draft-model"},
    {{"--spec-type", "--draft", "--draft-n", "--draft-max", "--spec-draft-n-max"}, kPlanned},
    {{"--draft-min", "--draft-n-min", "--spec-draft-n-min"}, kPlanned},
    {{"--spec-draft-p-min"}, "--draft-p-min"},
    {{"--spec-draft-p-split", "--draft-p-split"}, "--split-p"},
    {{"-td", "--threads-draft", "--spec-draft-threads"}, "--draft-threads"},
    {{"-tb", "--threads-batch"}, "-t, --threads, for all passes"},
    {{"-ngl", "--n-gpu-layers"}, "--gpu-layers"},
    {{"-ngld", "--n-gpu-layers-draft", "--gpu-layers-draft", "--spec-draft-ngl"},
     "--draft-gpu-layers"},
    {{"-ctk"}, "--cache-type-k"},
    {{"-ctv"}, "--cache-type-v"},
    {{"-ctkd", "--cache-type-k-draft", "--spec-draft-type-k"}, "--draft-cache-type-k"},
    {{"-ctvd", "--cache-type-v-draft", "--spec-draft-type-v"}, "--draft-cache-type-v"},
    {{"--ctx-size"}, "-c, --ctx"},
    {{"-np", "--parallel"}, "--slots"},
    {{"-ub", "--ubatch-size", "--batch-size"}, "-b, --batch"},
    {{"-fa"}, "--flash-attn"},
    {{"--rpc"}, "--workers"},
    {{"--predict", "--n-predict"}, "-n, --max-tokens"},
    {{"--keep", "--context-shift"}, "--shift-keep"},
    {{"--cors-origins"}, "--cors-origin"},
    {{"-to", "--timeout"}, "--read-timeout, --write-timeout or --timeout-ms"},
    {{"--models-dir"}, "--model-dir"},
    {{"--models-max"}, "--max-models"},
    {{"-lcs", "--lookup-cache-static"}, "--ngram-static"},
    {{"-lcd", "--lookup-cache-dynamic"}, "--ngram-dynamic"},
    {{"--slot-save-path"}, "--prompt-cache"},
    {{"--metrics", "--props"}, "not needed in Outrider: the endpoint is always there"},
    {{"--no-webui", "--no-ui"}, "--no-page"},
    {{"-cnv", "--conversation"}, "the command 'outrider chat'"},
    {{"--jinja", "--chat-template"}, "not needed in Outrider: the template of the file is used"},
    {{"--lora", "--mmproj", "--embedding", "--embeddings", "--reranking"}, kNotThere},
};

// Names of several letters behind one dash that have nothing here in their place, and would be
// taken for an option of one letter with a value: "-cb" for "--ctx b".
constexpr std::string_view kOthers[] = {
    "-Cb",   "-Cbd", "-Cd",   "-Cr",  "-Crb", "-Crbd",   "-Crd",   "-ag",   "-bf",     "-bs",
    "-cb",   "-cl",  "-cmoe", "-co",  "-cms", "-cmoed",  "-cram",  "-dev",  "-ctxcp",  "-devd",
    "-dr",   "-dt",  "-fit",  "-gan", "-gaw", "-fitc",   "-fitp",  "-fitt", "-hff",    "-hft",
    "-if",   "-jf",  "-kvo",  "-kvu", "-lm",  "-lr",     "-lv",    "-lzm",  "-mg",     "-mli",
    "-mm",   "-mmu", "-mu",   "-npl", "-nr",  "-mmdev",  "-ncffn", "-nkvo", "-ncmoe",  "-ncmoed",
    "-nocb", "-npp", "-ns",   "-ntg", "-opt", "-no-cnv", "-ot",    "-otd",  "-no-kvu", "-pps",
    "-ptc",  "-rea", "-sm",   "-sp",  "-sps", "-no-ag",  "-st",    "-sys",  "-sysf",   "-tbd",
    "-tgs",  "-ts",  "-wd"};

std::string_view ours(std::string_view name) {
  for (const Renamed& renamed : kRenamed) {
    if (std::find(renamed.theirs.begin(), renamed.theirs.end(), name) != renamed.theirs.end()) {
      return renamed.ours;
    }
  }
  const bool is_other =
      std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
  return is_other ? kNotThere : "";
}

}  // namespace

std::string in_place_of_llamas(std::string_view name) {
  const std::string_view found = name.empty() ? "" : ours(name);
  if (found.empty()) return "";
  const bool is_option = found.front() == '-';
  return "llama-server's " + std::string(name) + " is " + std::string(found) +
         (is_option ? " in Outrider" : "");
}

}  // namespace outrider::tools
