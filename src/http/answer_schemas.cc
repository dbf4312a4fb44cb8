#include "http/answer_schemas.h"

namespace outrider::http {
namespace {

using json::Json;

// What every client relies on; there may be more in an answer. Numbers of tokens are not negative.
constexpr std::string_view kSchemas = R"JSON({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {
  "type": "object", "required": ["message", "type", "param", "code"], "properties": {
    "message": {"type": "string", "minLength": 1}, "type": {"type": "string"},
    "param": {"type": ["string", "null"]}, "code": {"type": ["string", "null"]}}}}},
"LlamaError": {"type": "object", "required": ["error"], "properties": {"error": {
  "type": "object", "required": ["message", "type", "param", "code"], "properties": {
    "message": {"type": "string", "minLength": 1}, "type": {"type": "string"},
    "param": {"type": ["string", "null"]}, "code": {"type": "integer"}}}}},
"AnthropicError": {"type": "object", "required": ["type", "error"], "properties": {
  "type": {"const": "error"},
  "error": {"type": "object", "required": ["type", "message"], "properties": {
    "type": {"type": "string"}, "message": {"type": "string", "minLength": 1}}}}},

"ChatMessage": {"type": "object", "required": ["role", "content"], "properties": {
  "role": {"enum": ["system", "developer", "user", "assistant"]},
  "content": {"type": "string"}}},
"AnthropicMessage": {"type": "object", "required": ["role", "content"], "properties": {
  "role": {"enum": ["user", "assistant"]}, "content": {"type": "string"}}},

"ToolCall": {"type": "object", "required": ["id", "type", "function"], "properties": {
  "id": {"type": "string"}, "type": {"const": "function"},
  "function": {"type": "object", "required": ["name", "arguments"], "properties": {
    "name": {"type": "string"}, "arguments": {"type": "string"}}}}},
"FinishReason": {"enum": ["stop", "length", "tool_calls", "function_call"]},
"Usage": {"type": "object", "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
  "properties": {"prompt_tokens": {"type": "integer", "minimum": 0},
    "completion_tokens": {"type": "integer", "minimum": 0},
    "total_tokens": {"type": "integer", "minimum": 0}}},
"Speculation": {"type": "object",
  "required": ["enabled", "rule", "exactness", "steps", "drafted", "accepted", "emitted"],
  "properties": {"enabled": {"type": "boolean"}, "rule": {"enum": ["coupled", "rejection", "block"]},
    "exactness": {"type": "string"}, "reason": {"type": ["string", "null"]},
    "steps": {"type": "integer", "minimum": 0}, "drafted": {"type": "integer", "minimum": 0},
    "accepted": {"type": "integer", "minimum": 0}, "emitted": {"type": "integer", "minimum": 0},
    "tokens_per_step": {"type": ["number", "null"]},
    "acceptance_rate": {"type": ["number", "null"]}}},
"Completion": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage", "seed", "timings",
               "speculation"],
  "properties": {"id": {"type": "string"}, "created": {"type": "integer"},
    "model": {"type": "string"}, "usage": {"$ref": "#/components/schemas/Usage"},
    "timings": {"type": "object"}, "speculation": {"$ref": "#/components/schemas/Speculation"},
    "kernels": {"type": "string"}, "kernels_reason": {"type": ["string", "null"]}}},
"ChatCompletion": {"allOf": [{"$ref": "#/components/schemas/Completion"}], "properties": {
  "object": {"const": "chat.completion"},
  "choices": {"type": "array", "minItems": 1, "items": {"type": "object",
    "required": ["index", "message", "logprobs", "finish_reason"], "properties": {
      "index": {"type": "integer"},
      "message": {"type": "object", "required": ["role", "content"], "properties": {
        "role": {"const": "assistant"}, "content": {"type": ["string", "null"]},
        "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}},
        "function_call": {"type": "object", "required": ["name", "arguments"], "properties": {
          "name": {"type": "string"}, "arguments": {"type": "string"}}}}},
      "logprobs": {"type": ["object", "null"]},
      "finish_reason": {"$ref": "#/components/schemas/FinishReason"}}}}}},
"TextCompletion": {"allOf": [{"$ref": "#/components/schemas/Completion"}], "properties": {
  "object": {"const": "text_completion"},
  "choices": {"type": "array", "minItems": 1, "items": {"type": "object",
    "required": ["index", "text", "logprobs", "finish_reason"], "properties": {
      "index": {"type": "integer"}, "text": {"type": "string"},
      "logprobs": {"type": ["object", "null"]},
      "finish_reason": {"$ref": "#/components/schemas/FinishReason"}}}}}},
"Response": {"type": "object", "required": ["id", "object", "status", "model", "output", "usage"],
  "properties": {"object": {"const": "response"},
    "status": {"enum": ["completed", "incomplete", "failed"]}, "model": {"type": "string"},
    "output": {"type": "array", "items": {"type": "object", "required": ["id", "type"], "properties": {
      "type": {"enum": ["message", "reasoning", "function_call"]}}}}}},
"Message": {"type": "object",
  "required": ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
  "properties": {"type": {"const": "message"}, "role": {"const": "assistant"},
    "content": {"type": "array", "items": {"type": "object", "required": ["type"], "properties": {
      "type": {"enum": ["text", "thinking", "tool_use"]}}}},
    "stop_reason": {"enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use"]},
    "usage": {"type": "object", "required": ["input_tokens", "output_tokens"]}}},
"TokenCount": {"type": "object", "required": ["input_tokens"], "properties": {
  "input_tokens": {"type": "integer", "minimum": 0}}},
"Model": {"type": "object", "required": ["id", "object", "created", "owned_by", "status"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "model"}, "created": {"type": "integer"},
    "status": {"type": "object", "required": ["value", "state", "progress", "error"],
      "properties": {"value": {"enum": ["loaded", "loading", "unloaded"]},
        "state": {"enum": ["absent", "loading", "ready", "failed"]},
        "failed": {"const": true}}}}},
"ModelList": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"const": "list"},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}},
"AnthropicModel": {"type": "object",
  "required": ["type", "id", "display_name", "created_at", "lifecycle"], "properties": {
    "type": {"const": "model"}, "id": {"type": "string"}, "display_name": {"type": "string"},
    "created_at": {"type": "string"}, "lifecycle": {"const": "active"}}},
"AnthropicModelList": {"type": "object", "required": ["data", "has_more", "first_id", "last_id"],
  "properties": {"data": {"type": "array", "items": {"$ref": "#/components/schemas/AnthropicModel"}},
    "has_more": {"type": "boolean"}, "first_id": {"type": ["string", "null"]},
    "last_id": {"type": ["string", "null"]}}},
"Success": {"type": "object", "required": ["success"], "properties": {
  "success": {"const": true}}},
"Health": {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}},
"RpcRequest": {"type": "object", "required": ["jsonrpc", "method"], "properties": {
  "jsonrpc": {"const": "2.0"}, "id": {"type": ["integer", "string", "null"]},
  "method": {"type": "string"}, "params": {"type": "object"}}},
"Object": {"type": "object"}
})JSON";

}  // namespace

Json answer_schemas() {
  const json::Parsed parsed = json::parse(std::string(kSchemas));
  return parsed.ok() ? *parsed.value : Json::object();
}

Json schema_reference(std::string_view name) {
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

}  // namespace outrider::http
