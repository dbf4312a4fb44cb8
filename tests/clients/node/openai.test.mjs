// OpenAI's client for node.js. Run by openai_node_test.py, with node's own test runner.
import assert from "node:assert/strict";
import test from "node:test";
import OpenAI from "openai";
import { client, model, untilInUse } from "./served.mjs";

const ask = (text, options = {}) =>
  ({ model, max_tokens: 24, seed: 1, messages: [{ role: "user", content: text }], ...options });
// An answer without end: only who asked for it ends it.
const endless = (options = {}) => ask("Tell me everything.",
  { max_tokens: undefined, ignore_eos: true, shift_keep: 0, ...options });

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city",
    parameters: {
      type: "object",
      properties: { unit: { enum: ["celsius", "fahrenheit"] } },
      required: ["unit"],
      additionalProperties: false,
    },
  },
};

test("a stream adds up to the answer at once", async () => {
  const whole = await client.chat.completions.create(ask("Tell me about rain."));
  const stream = await client.chat.completions.create(ask("Tell me about rain.", { stream: true }));
  const reasons = [];
  let text = "";
  for await (const chunk of stream) {
    text += chunk.choices[0].delta.content ?? "";
    reasons.push(chunk.choices[0].finish_reason);
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(reasons.pop(), whole.choices[0].finish_reason);
  assert.ok(reasons.length > 5 && reasons.every((reason) => reason === null));
});

test("the helper for streams gives the final message and the counts", async () => {
  const stream = client.chat.completions.stream(
    ask("Say hello.", { stream_options: { include_usage: true } }));
  const deltas = [];
  stream.on("content", (delta) => deltas.push(delta));
  const content = await stream.finalContent();
  assert.equal(deltas.join(""), content);
  const usage = await stream.totalUsage();
  assert.ok(usage.completion_tokens > 0);
});

test("a stream that is broken off ends, and the server goes on", async () => {
  await untilInUse(0);
  const stream = await client.chat.completions.create(endless({ stream: true }));
  let chunks = 0;
  for await (const chunk of stream) {
    if (++chunks === 3) stream.controller.abort();
  }
  assert.ok(chunks >= 3);
  await untilInUse(0);
  const controller = new AbortController();
  const waiting = client.chat.completions.create(endless(), { signal: controller.signal });
  const rejected = assert.rejects(waiting, OpenAI.APIUserAbortError);
  await Promise.race([untilInUse(1), rejected]);  // a refusal is told at once
  controller.abort();
  await rejected;
  await untilInUse(0);
  assert.ok((await client.models.list()).data.some((one) => one.id === model));
});

test("a schema is kept, and parsed", async () => {
  const schema = {
    type: "object",
    properties: { legs: { type: "integer", minimum: 0, maximum: 8 } },
    required: ["legs"],
    additionalProperties: false,
  };
  const answer = await client.chat.completions.parse(ask("Invent an animal.", {
    max_tokens: 60,
    response_format: { type: "json_schema", json_schema: { name: "animal", strict: true, schema } },
  }));
  const { legs } = answer.choices[0].message.parsed ?? JSON.parse(answer.choices[0].message.content);
  assert.ok(Number.isInteger(legs) && legs >= 0 && legs <= 8);
});

test("the tools runner calls, gives the result back and gets a text", async () => {
  const calls = [];
  const runner = client.chat.completions.runTools(ask("The weather in celsius?", {
    max_tokens: 120,
    temperature: 0,
    tool_choice: { type: "function", function: { name: "get_weather" } },
    tools: [{
      type: "function",
      function: {
        ...weather.function,
        parse: JSON.parse,
        function: ({ unit }) => { calls.push(unit); return "21 degrees"; },
      },
    }],
  }), { maxChatCompletions: 3 });
  await runner.done();
  assert.ok(calls.length > 0 && calls.every((unit) => ["celsius", "fahrenheit"].includes(unit)));
  assert.ok(runner.messages.some((message) => message.role === "tool" &&
    message.content === "21 degrees"));
});

test("a streamed call of a tool comes whole", async () => {
  const stream = client.chat.completions.stream(
    ask("The weather?", { max_tokens: 120, tools: [weather], tool_choice: "required" }));
  const answer = await stream.finalChatCompletion();
  assert.equal(answer.choices[0].finish_reason, "tool_calls");
  const call = answer.choices[0].message.tool_calls[0];
  assert.equal(call.function.name, "get_weather");
  assert.ok("unit" in JSON.parse(call.function.arguments));
});

test("errors are the client's own", async () => {
  await assert.rejects(client.chat.completions.create(ask("Hi", { temperature: -1 })),
    (error) => error instanceof OpenAI.BadRequestError && error.param === "temperature");
  await assert.rejects(client.models.retrieve("team/gpt-17"),
    (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found");
  assert.equal((await client.models.retrieve(model)).id, model);
  assert.equal((await client.chat.completions.create({ ...ask("Hi"), model: "gpt-17" })).model, model);
});

test("responses answer at once and as events, with the same text", async () => {
  const body = { model, input: "Tell me about snow.", max_output_tokens: 16, seed: 1 };
  const whole = await client.responses.create(body);
  assert.ok(whole.output_text.length > 0);
  let text = "";
  let last;
  for await (const event of await client.responses.create({ ...body, stream: true })) {
    if (event.type === "response.output_text.delta") text += event.delta;
    last = event;
  }
  assert.equal(text, whole.output_text);
  assert.ok(["response.completed", "response.incomplete"].includes(last.type));
});

test("what the client adds to the items of responses can be sent back", async () => {
  const body = { model, input: "The weather?", max_output_tokens: 120, temperature: 0 };
  const tools = [{ type: "function", ...weather.function, strict: true }];
  const texts = await client.responses.parse(body);
  const calls = await client.responses.stream({ ...body, tools, tool_choice: "required" })
    .finalResponse();
  const results = calls.output.filter((item) => item.type === "function_call")
    .map((call) => ({ type: "function_call_output", call_id: call.call_id, output: "21 degrees" }));
  assert.ok(results.length > 0);
  const again = await client.responses.create({ ...body, tools, tool_choice: "none",
    input: [{ role: "user", content: body.input }, ...texts.output, ...calls.output, ...results] });
  assert.ok(again.usage.input_tokens > texts.usage.input_tokens);
});
