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
    "not needed here: who guesses and how much is chosen in each step; --drafter and --width fix "
    "it";
constexpr std::string_view kNotDone = "not done here";

// docs/llama-server.md has them with what is different.
constexpr Renamed kRenamed[] = {
    {{"-md", "--model-draft", "--spec-draft-model"}, "-d, --draft-model"},
    {{"--spec-type", "--draft", "--draft-n", "--draft-max", "--spec-draft-n-max"}, kPlanned},
    {{"--draft-min", "--draft-n-min", "--spec-draft-n-min"}, kPlanned},
    {{"--spec-draft-p-min"}, "--draft-p-min"},
    {{"--spec-draft-p-split"}, "--split-p"},
    {{"-td", "--threads-draft", "--spec-draft-threads"}, "--draft-threads"},
    {{"-tb", "--threads-batch"}, "-t, --threads, for all passes"},
    {{"-ngl", "--n-gpu-layers"}, "--gpu-layers"},
    {{"-ngld", "--n-gpu-layers-draft", "--gpu-layers-draft"}, "--draft-gpu-layers"},
    {{"-ctk"}, "--cache-type-k"},
    {{"-ctv"}, "--cache-type-v"},
    {{"-ctkd", "--cache-type-k-draft"}, "--draft-cache-type-k"},
    {{"-ctvd", "--cache-type-v-draft"}, "--draft-cache-type-v"},
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
    {{"--metrics", "--props"}, "not needed here: the endpoint is always there"},
    {{"--no-webui"}, "--no-page"},
    {{"-cnv", "--conversation"}, "the command 'outrider chat' here"},
    {{"--jinja", "--chat-template"}, "not needed here: the template of the file is used"},
    {{"--lora", "--mmproj", "--embedding", "--embeddings", "--reranking"}, kNotDone},
};

}  // namespace

std::string in_place_of_llamas(std::string_view name) {
  const Renamed* const found =
      std::find_if(std::begin(kRenamed), std::end(kRenamed), [name](const Renamed& renamed) {
        return std::find(renamed.theirs.begin(), renamed.theirs.end(), name) !=
               renamed.theirs.end();
      });
  if (name.empty() || found == std::end(kRenamed)) return "";
  std::string text = "llama-server's " + std::string(name) + " is " + std::string(found->ours);
  return text.ends_with("here") || text.find(" here: ") != std::string::npos ? text
                                                                             : text + " here";
}

}  // namespace outrider::tools
