#include "rpcserver/command_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/number_from.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

enum class Value {
  kText,
  kNumber,
  kNumbers,  // with commas between them
  kTrue,     // the flag alone says it
  kFalse,
};

struct Flag {
  std::array<std::string_view, 3> names;  // some may be empty
  std::string_view key;                   // of the JSON form; empty: without effect, and no warning
  Value value;
};

constexpr Flag kFlags[] = {
    {{"-m", "--model"}, "model", Value::kText},
    {{"-md", "--model-draft"}, "model_draft", Value::kText},
    {{"-a", "--alias"}, "model_alias", Value::kText},
    {{"-c", "--ctx-size", "--ctx_size"}, "n_ctx", Value::kNumber},
    {{"-b", "--batch-size"}, "n_batch", Value::kNumber},
    {{"-t", "--threads"}, "n_threads", Value::kNumber},
    {{"-tb", "--threads-batch"}, "n_threads_batch", Value::kNumber},
    {{"-ngl", "--gpu-layers", "--n-gpu-layers"}, "n_gpu_layers", Value::kNumber},
    {{"-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft"}, "n_gpu_layers_draft", Value::kNumber},
    {{"--draft"}, "n_draft", Value::kNumber},
    {{"-mg", "--main-gpu"}, "main_gpu", Value::kNumber},
    {{"-ts", "--tensor-split"}, "tensor_split", Value::kNumbers},
    {{"--rope-freq-base"}, "rope_freq_base", Value::kNumber},
    {{"--rope-freq-scale"}, "rope_freq_scale", Value::kNumber},
    {{"--no-mmap"}, "use_mmap", Value::kFalse},
    {{"--mlock"}, "use_mlock", Value::kTrue},
    {{"--numa"}, "numa", Value::kTrue},
    {{"--memory-f32", "--memory_f32"}, "memory_f16", Value::kFalse},
    {{"--lora"}, "lora_adapter", Value::kText},
    {{"--lora-base"}, "lora_base", Value::kText},
    {{"-s", "--seed"}, "seed", Value::kNumber},
    {{"-n", "--n-predict"}, "n_predict", Value::kNumber},
    {{"--keep"}, "n_keep", Value::kNumber},
    {{"--temp"}, "temperature", Value::kNumber},
    {{"--top-k"}, "top_k", Value::kNumber},
    {{"--top-p"}, "top_p", Value::kNumber},
    {{"--tfs"}, "tfs_z", Value::kNumber},
    {{"--typical"}, "typical_p", Value::kNumber},
    {{"--repeat-last-n"}, "repeat_last_n", Value::kNumber},
    {{"--repeat-penalty"}, "repeat_penalty", Value::kNumber},
    {{"--presence-penalty"}, "presence_penalty", Value::kNumber},
    {{"--frequency-penalty"}, "frequency_penalty", Value::kNumber},
    {{"--mirostat"}, "mirostat", Value::kNumber},
    {{"--mirostat-ent"}, "mirostat_tau", Value::kNumber},
    {{"--mirostat-lr"}, "mirostat_eta", Value::kNumber},
    {{"--ignore-eos"}, "ignore_eos", Value::kTrue},
    // The server's own, which this library has none of, and what llama.cpp does by itself now.
    {{"--host", "--path", "--port"}, "", Value::kText},
    {{"-to", "--timeout"}, "", Value::kText},
    {{"-v", "--verbose", "--embedding"}, "", Value::kTrue},
    {{"-nommq", "--no-mul-mat-q"}, "", Value::kTrue},
};

const Flag* find_flag(std::string_view name) {
  for (const Flag& flag : kFlags) {
    const auto found = std::find(flag.names.begin(), flag.names.end(), name);
    if (found != flag.names.end() && !name.empty()) return &flag;
  }
  return nullptr;
}

// A whole number where it is one, so that "-c 512" and "-c 512.0" both are.
std::optional<Json> parse_number(std::string_view text) {
  const std::optional<std::int64_t> whole = number_from<std::int64_t>(text);
  if (whole) return Json(*whole);
  const std::optional<double> number = number_from<double>(text);
  return number && std::isfinite(*number) ? std::optional(Json(*number)) : std::nullopt;
}

std::optional<Json> parse_value(Value kind, const std::string& text) {
  if (kind == Value::kText) return Json(text);
  if (kind == Value::kNumber) return parse_number(text);
  Json numbers = Json::array();
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(",/", start), text.size());
    std::optional<Json> number = parse_number(std::string_view(text).substr(start, end - start));
    if (!number) return std::nullopt;
    numbers.push_back(*std::move(number));
    start = end + 1;
  }
  return numbers;
}

// A negative number is a value, not a flag.
bool looks_like_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !parse_number(word);
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

std::optional<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const bool keeps_next = quote == '"' ? next == '"' || next == '\\'
                                         : quote == 0 && (next == '"' || next == '\\' ||
                                                          next == '\'' || is_space(next));
    if (quote == 0 && is_space(c)) {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
      continue;
    }
    in_word = true;
    if (c == '\\' && keeps_next) {
      word += text[++i];
    } else if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? '\0' : c;
    } else {
      word += c;
    }
  }
  if (quote != 0) return std::nullopt;
  if (in_word) words.push_back(std::move(word));
  return words;
}

Result<Json> parse_command_line(std::string_view text, std::vector<std::string>& warnings) {
  const std::optional<std::vector<std::string>> words = split_words(text);
  if (!words) return invalid_argument("the command line has a quote that is not closed");
  Json cmd = Json::object();
  for (std::size_t next = 1; next < words->size();) {  // the first word is the program's name
    const std::string& word = (*words)[next++];
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const bool alone = equals == std::string::npos;
    const std::string name = word.substr(0, equals);
    const Flag* flag = find_flag(name);
    if (flag == nullptr) {
      warnings.push_back("'" + name + "' is not known and has no effect");
      const bool has_value = alone && looks_like_flag(word) && next < words->size() &&
                             !looks_like_flag((*words)[next]);
      if (has_value) ++next;
      continue;
    }
    std::optional<Json> value = Json(flag->value == Value::kTrue);
    if (flag->value != Value::kTrue && flag->value != Value::kFalse) {
      if (alone && next == words->size()) {
        return invalid_argument(name + " needs a value behind it").about(std::string(flag->key));
      }
      const std::string given = alone ? (*words)[next++] : word.substr(equals + 1);
      value = parse_value(flag->value, given);
      if (!value) {
        const char* several = flag->value == Value::kNumbers ? ", or several with commas" : "";
        return invalid_argument(name + " is '" + given + "', but must be a number" + several)
            .about(std::string(flag->key));
      }
    }
    if (!flag->key.empty()) cmd[std::string(flag->key)] = *std::move(value);
  }
  return cmd;
}

}  // namespace outrider::rpcserver
