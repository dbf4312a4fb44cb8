#include "tools/options/llama_names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

namespace outrider::tools {
namespace {

struct Renamed {
  std::array<std::string_view, 6> theirs;
  std::string_view ours;
};

constexpr std::string_view kPlanned =
    "not needed in Outrider: who guesses and how much is chosen in each step; --drafter and "
    "--width fix it";
constexpr std::string_view kAlwaysPlanned =  // where these are not options
    "not needed in Outrider: who guesses and how much is chosen in each step";
constexpr std::string_view kNotThere = "not an option of Outrider";
constexpr std::string_view kNoEmbeddings =
    "not an option of Outrider, which makes no embeddings and ranks nothing";

// docs/llama-server.md has them with what is different. A name may have several rows: the first one
// counts whose options the command has.
constexpr Renamed kRenamed[] = {
    {{"-md", "--model-draft", "--spec-draft-model"}, "-d, --draft-model"},
    {{"--spec-draft-hf"}, "-hfd, --hf-repo-draft"},
    {{"-hft", "--hf-token"}, "the environment variable HF_TOKEN"},
    {{"--offline"}, "the environment variable HF_HUB_OFFLINE=1"},
    {{"--spec-type", "--draft", "--draft-n", "--draft-max", "--spec-draft-n-max"}, kPlanned},
    {{"--draft-min", "--draft-n-min", "--spec-draft-n-min", "--spec-default"}, kPlanned},
    {{"--spec-type", "--draft", "--draft-n", "--draft-max", "--spec-draft-n-max"}, kAlwaysPlanned},
    {{"--draft-min", "--draft-n-min", "--spec-draft-n-min", "--spec-default"}, kAlwaysPlanned},
    {{"--spec-draft-p-min"}, "--draft-p-min"},
    {{"--spec-draft-p-split", "--draft-p-split"}, "--split-p"},
    {{"-td", "--threads-draft", "--spec-draft-threads"}, "--draft-threads"},
    {{"-tbd", "--threads-batch-draft", "--spec-draft-threads-batch"},
     "--draft-threads, for all passes"},
    {{"-tb", "--threads-batch"}, "-t, --threads, for all passes"},
    {{"-ngl", "--n-gpu-layers"}, "--gpu-layers"},
    {{"-ngld", "--n-gpu-layers-draft", "--gpu-layers-draft", "--spec-draft-ngl"},
     "--draft-gpu-layers"},
    {{"-ctk"}, "--cache-type-k"},
    {{"-ctv"}, "--cache-type-v"},
    {{"-ctkd", "--cache-type-k-draft", "--spec-draft-type-k"}, "--draft-cache-type-k"},
    {{"-ctvd", "--cache-type-v-draft", "--spec-draft-type-v"}, "--draft-cache-type-v"},
    {{"--ctx-size"}, "-c, --ctx"},
    {{"-cd", "--ctx-size-draft"}, "--draft-ctx"},
    {{"-np", "--parallel"}, "--slots"},
    {{"-ub", "--ubatch-size", "--batch-size"}, "-b, --batch"},
    {{"-cb", "--cont-batching"}, "not needed in Outrider: what runs at once shares its passes"},
    {{"-fa"}, "--flash-attn"},
    {{"--rpc"}, "--workers"},
    {{"--predict", "--n-predict"}, "-n, --max-tokens"},
    {{"-s"}, "--seed"},
    {{"--temperature"}, "--temp"},
    {{"--top-nsigma"}, "--top-n-sigma"},
    {{"--typical-p"}, "--typical"},
    {{"-l"}, "--logit-bias"},
    {{"-r", "--reverse-prompt"}, "--stop"},
    {{"--grammar-file"}, "--grammar"},
    {{"-jf", "--json-schema-file"}, "--json-schema"},
    {{"-j"}, "--json-schema, with the name of a file"},
    {{"--keep", "--context-shift"}, "--shift-keep"},
    {{"--no-context-shift"}, "not needed in Outrider: a full context ends the text"},
    {{"-a"}, "--alias"},
    {{"--cors-origins"}, "--cors-origin"},
    {{"-to", "--timeout"}, "--read-timeout, --write-timeout or --timeout-ms"},
    {{"-to", "--timeout"}, "--timeout-ms"},
    {{"--sse-ping-interval"},
     "not an option of Outrider: the field sse_ping_interval of a request is"},
    {{"--models-dir"}, "--model-dir"},
    {{"--models-max"}, "--max-models"},
    {{"-lcs", "--lookup-cache-static"}, "--ngram-static"},
    {{"-lcd", "--lookup-cache-dynamic"}, "--ngram-dynamic"},
    {{"--slot-save-path"}, "--prompt-cache"},
    {{"--cache-prompt"}, "not needed in Outrider: it is so unless --reuse-prefix=false says not"},
    {{"--no-cache-prompt"}, "--reuse-prefix=false"},
    {{"--metrics", "--props"}, "not needed in Outrider: the endpoint is always there"},
    {{"--webui", "--ui"}, "not needed in Outrider: the page is there unless --no-page is given"},
    {{"--no-webui", "--no-ui"}, "--no-page"},
    {{"-rea"}, "--reasoning"},
    {{"-lv", "--verbosity", "--log-verbosity"}, "--log-level"},
    {{"-sys", "--system-prompt"}, "--system"},
    {{"-cnv", "--conversation"}, "the command 'outrider chat'"},
    {{"--jinja"}, "not needed in Outrider: the template of the file is used"},
    {{"--chat-template", "--chat-template-file"},
     "not an option of Outrider: the template of the file is used, or ChatML where it has none"},
    {{"--embedding", "--embeddings", "--rerank", "--reranking", "--pooling"}, kNoEmbeddings},
};

// Names that have nothing here in their place. These would be taken for an option of one letter
// with a value: "-cl" for "--ctx l".
constexpr std::string_view kShortOthers[] = {
    "-Cb",     "-Cbd",  "-Cd",   "-Cr",  "-Crb", "-Crbd",  "-Crd",    "-ag",   "-bf",
    "-bs",     "-cl",   "-cmoe", "-co",  "-cms", "-cmoed", "-cram",   "-dev",  "-ctxcp",
    "-devd",   "-dr",   "-dt",   "-fit", "-gan", "-gaw",   "-fitc",   "-fitp", "-fitt",
    "-hff",    "-if",   "-kvo",  "-kvu", "-lm",  "-lr",    "-lzm",    "-mg",   "-mli",
    "-mm",     "-mmu",  "-mu",   "-npl", "-nr",  "-mmdev", "-ncffn",  "-nkvo", "-ncmoe",
    "-ncmoed", "-nocb", "-npp",  "-ns",  "-ntg", "-opt",   "-no-cnv", "-ot",   "-otd",
    "-no-kvu", "-pps",  "-ptc",  "-sm",  "-sp",  "-sps",   "-no-ag",  "-st",   "-sysf",
    "-tgs",    "-ts",   "-wd"};

constexpr std::string_view kLongOthers[] = {"--lora",
                                            "--lora-scaled",
                                            "--mmproj",
                                            "--mmproj-url",
                                            "--control-vector",
                                            "--hf-file",
                                            "--model-url",
                                            "--docker-repo",
                                            "--device",
                                            "--main-gpu",
                                            "--split-mode",
                                            "--tensor-split",
                                            "--override-tensor",
                                            "--override-kv",
                                            "--cpu-moe",
                                            "--n-cpu-moe",
                                            "--mlock",
                                            "--no-mmap",
                                            "--mmap",
                                            "--load-mode",
                                            "--numa",
                                            "--prio",
                                            "--poll",
                                            "--cpu-mask",
                                            "--cpu-range",
                                            "--no-kv-offload",
                                            "--kv-unified",
                                            "--swa-full",
                                            "--cache-reuse",
                                            "--cache-ram",
                                            "--rope-scaling",
                                            "--rope-scale",
                                            "--rope-freq-base",
                                            "--rope-freq-scale",
                                            "--samplers",
                                            "--sampler-seq",
                                            "--adaptive-target",
                                            "--adaptive-decay",
                                            "--ssl-key-file",
                                            "--ssl-cert-file",
                                            "--api-prefix",
                                            "--path",
                                            "--threads-http",
                                            "--tools",
                                            "--models-preset",
                                            "--reasoning-format",
                                            "--reasoning-budget",
                                            "--log-file",
                                            "--log-disable"};

// Whether all long options that the text names are there: in "-d, --draft-model" --draft-model.
bool names_only(std::string_view text, std::span<const std::string> options) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz-";
  for (std::size_t at = text.find("--"); at != text.npos; at = text.find("--", at)) {
    const std::size_t end = std::min(text.find_first_not_of(kLetters, at), text.size());
    if (std::find(options.begin(), options.end(), text.substr(at, end - at)) == options.end()) {
      return false;
    }
    at = end;
  }
  return true;
}

template <typename Names>
bool is_in(const Names& names, std::string_view name) {
  return !name.empty() && std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// All that stands in the place of `name`, best first.
std::vector<std::string_view> ours(std::string_view name) {
  if (name.starts_with("--spec-ngram-")) return {kPlanned, kAlwaysPlanned};
  if (is_in(kShortOthers, name) || is_in(kLongOthers, name)) return {kNotThere};
  std::vector<std::string_view> found;
  for (const Renamed& renamed : kRenamed) {
    if (is_in(renamed.theirs, name)) found.push_back(renamed.ours);
  }
  return found;
}

}  // namespace

bool is_llamas(std::string_view name) { return !ours(name).empty(); }

std::string in_place_of_llamas(std::string_view name, std::span<const std::string> options) {
  for (const std::string_view text : ours(name)) {
    if (!names_only(text, options)) continue;
    return "llama-server's " + std::string(name) + " is " + std::string(text) +
           (text.starts_with('-') ? " in Outrider" : "");
  }
  return "";
}

}  // namespace outrider::tools
