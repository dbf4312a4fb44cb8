#include "testing/chat_answers.h"

#include <utility>

namespace outrider::testing {
namespace {

const char* const kCity = R"({"city": "Paris"})";

ToolCall weather(const std::string& id = "") { return {id, "get_weather", kCity}; }
// By formats that do not write JSON.
ToolCall rewritten() { return {"", "get_weather", R"({"city":"Paris"})"}; }

ChatTool weather_tool() {
  return {.name = "get_weather",
          .description = "The weather in a city",
          .parameters = R"({"type":"object","properties":{"city":{"type":"string"}},)"
                        R"("required":["city"]})"};
}

ChatTool sum_tool() {
  return {.name = "add",
          .description = "A sum",
          .parameters = R"({"type":"object","properties":{"a":{"type":"integer"},)"
                        R"("b":{"type":"integer"}},"required":["a","b"]})"};
}

std::vector<ChatAnswer> make_answers() {
  const std::string hermes =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
      "\"Paris\"}}\n</tool_call>";
  const std::string llama = R"({"name": "get_weather", "parameters": {"city": "Paris"}})";
  return {
      {"Qwen-Qwen3-0.6B",
       "<think>\nI am\nthinking.\n</think>\n\nIt is 4 < 5, `<b>`.",
       {"It is 4 < 5, `<b>`.", "I am\nthinking.\n", {}}},
      {"Qwen-Qwen3-0.6B",
       "Plain, with a <thing> and\n\nlines.",
       {"Plain, with a <thing> and\n\nlines.", "", {}},
       false},
      {"Qwen-Qwen3-0.6B", "<think>\nHm.\n</think>\n\n" + hermes, {"", "Hm.\n", {weather()}}},
      {"Qwen-Qwen3-0.6B", "I look. " + hermes, {"I look. ", "", {weather()}}},
      {"Qwen-Qwen2.5-7B-Instruct", hermes + "\n" + hermes, {"", "", {weather(), weather()}}},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", hermes, {"", "", {weather()}}},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "Just text.", {"Just text.", "", {}}},
      {"meta-llama-Llama-3.1-8B-Instruct", llama, {"", "", {weather()}}},
      {"meta-llama-Llama-3.3-70B-Instruct", llama, {"", "", {weather()}}},
      {"meta-llama-Llama-3.2-3B-Instruct", "No call.", {"No call.", "", {}}},
      {"mistralai-Mistral-Nemo-Instruct-2407",
       "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}, \"id\": "
       "\"123456789\"}]",
       {"", "", {weather("123456789")}}},
      {"mistralai-Ministral-3-14B-Reasoning-2512",
       "[THINK]Hm.[/THINK]Hello.",
       {"Hello.", "Hm.", {}}},
      {"mistralai-Ministral-3-14B-Reasoning-2512",
       "[THINK]Hm.[/THINK][TOOL_CALLS]get_weather[ARGS]{\"city\": \"Paris\"}",
       {"", "Hm.", {weather()}}},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
       "Hm.\n</think>\n\nHello.",
       {"\n\nHello.", "\nHm.\n", {}},
       false},
      {"deepseek-ai-DeepSeek-V3.1",
       "</"
       "think>Wait.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": "
       "\"Paris\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       {"Wait.", "", {weather()}}},
      {"openai-gpt-oss-120b",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"
       "Hello.",
       {"Hello.", "Hm.", {}}},
      {"openai-gpt-oss-120b",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Paris\"}",
       {"", "Hm.", {weather()}}},
      {"google-gemma-2-2b-it", "Hello, *you*.\n\nBye.", {"Hello, *you*.\n\nBye.", "", {}}, false},
      {"google-gemma-4-31B-it",
       "<|tool_call>call:get_weather{city:<|\"|>Paris<|\"|>}<tool_call|>",
       {"", "", {rewritten()}}},
      {"ibm-granite-granite-4.0", hermes, {"", "", {weather()}}},
      {"ibm-granite-granite-3.3-2B-Instruct", "Hello.", {"Hello.", "", {}}, false},
      {"moonshotai-Kimi-K2",
       "Wait.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
       "<|tool_call_argument_begin|>{\"city\": \"Paris\"}<|tool_call_end|>"
       "<|tool_calls_section_end|>",
       {"Wait.", "", {weather("functions.get_weather:0")}}},
      {"GLM-4.6",
       "<think>Hm.</think>\nHello.<tool_call>get_weather\n<arg_key>city</arg_key>\n"
       "<arg_value>Paris</arg_value>\n</tool_call>",
       {"Hello.", "Hm.", {rewritten()}}},
      {"Qwen3-Coder",
       "Look.<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
       "</function>\n</tool_call>",
       {"Look.", "", {rewritten()}}},
  };
}

std::vector<ChatAnswer> lfm2_answers() {
  const std::string call = "<|tool_call_start|>[get_weather(city=\"Paris\")]<|tool_call_end|>";
  // Python's strings, as the grammar lets them be.
  const std::string lines =
      "<|tool_call_start|>[get_weather(city='Paris,\n\tthe \"old\" \\'town\\'')]<|tool_call_end|>";
  const ToolCall escaped = {"", "get_weather", R"({"city":"Paris,\n\tthe \"old\" 'town'"})"};
  return {{"LFM2-8B-A1B", call, {"", "", {rewritten()}}},
          {"LFM2.5-Instruct", lines, {"", "", {escaped}}},
          {"LFM2-8B-A1B", "No call.", {"No call.", "", {}}},
          {"LFM2.5-Instruct", "Look." + call, {"Look.", "", {rewritten()}}}};
}

}  // namespace

std::vector<ChatAnswer> chat_answers() {
  std::vector<ChatAnswer> answers = make_answers();
  for (ChatAnswer& answer : lfm2_answers()) answers.push_back(std::move(answer));
  return answers;
}

std::vector<ChatTool> chat_answer_tools() { return {weather_tool(), sum_tool()}; }

}  // namespace outrider::testing
