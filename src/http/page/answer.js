// An answer while it arrives: chunks of a chat completion in, a message out that can be kept.
//
// The text comes twice: as delta.content, which is always right, and as tokens, which say who
// guessed them. They need not agree: a character may be cut over several tokens (each of them then
// reads U+FFFD), markers of reasoning are tokens and no content, and text that could become a stop
// string arrives later than its tokens. `Aligner` says which piece of the text is whose.

/** Hands pieces of text to the tokens they came from. */
export class Aligner {
  #waiting = [];  // tokens whose text has not come yet

  tokens(list) {
    this.#waiting.push(...list);
  }

  /** Those whose text has not come. */
  get waiting() {
    return this.#waiting;
  }

  /** [[by, length], ...] for all of `text`, in order. */
  text(text) {
    const pieces = [];
    let at = 0;
    let by = "target";
    while (at < text.length && this.#waiting.length > 0) {
      const token = this.#waiting[0];
      by = token.by;
      const rest = text.length - at;
      if (token.text !== "" && text.startsWith(token.text, at)) {
        pieces.push([by, token.text.length]);
        at += token.text.length;
        this.#waiting.shift();
      } else if (token.text.length > rest && token.text.startsWith(text.slice(at))) {
        pieces.push([by, rest]);  // the rest of this token is held back
        this.#waiting[0] = {...token, text: token.text.slice(rest)};
        at = text.length;
      } else {
        const end = this.#nextKnown(text, at);
        if (end > at) pieces.push([by, end - at]);
        at = end;
        this.#waiting.shift();
      }
    }
    if (at < text.length) pieces.push([by, text.length - at]);
    return pieces;
  }

  // Where in `text`, from `at` on, a token behind the first one is found again: up to there it is
  // the first one's. Its end if none is, and nothing tells whose it is.
  #nextKnown(text, at) {
    for (let i = 1; i < this.#waiting.length && i <= 64; ++i) {
      const next = this.#waiting[i].text;
      if (next === "" || next.includes("\uFFFD")) continue;
      const found = text.indexOf(next, at);
      if (found >= 0) return found;
    }
    const first = this.#waiting[0].text;
    return first.includes("\uFFFD") || this.#waiting.length === 1 ? text.length : at;
  }
}

/** Whose each character is: [[by, length], ...], neighbours of one origin joined. */
function addPieces(spans, pieces) {
  for (const [by, length] of pieces) {
    const last = spans.at(-1);
    if (last && last[0] === by) last[1] += length;
    else spans.push([by, length]);
  }
}

/** More of a call: its id and name come once, its arguments in pieces. */
function addToCall(calls, {index, id, function: given}) {
  const call = calls[index] ??= {id: "", name: "", arguments: ""};
  if (id) call.id = id;
  if (given?.name) call.name = given.name;
  call.arguments += given?.arguments ?? "";
}

/** A message of the assistant before anything has come. All of it can be kept as JSON. */
export function newMessage(model) {
  return {role: "assistant", model, content: "", spans: [], reasoning: "", reasoningSpans: [],
    toolCalls: [], counts: {}, unseen: {}, finish: null, error: null, code: null, timings: null,
    speculation: null, usage: null, context: null};
}

const kLeastTime = 200;  // milliseconds that say something of a speed

export class Answer {
  #aligner = new Aligner();
  #firstAt = null;
  #firstTokens = 0;
  #lastAt = null;
  ids = [];          // of all tokens, and their texts: what two answers are compared by
  texts = [];
  progress = null;   // of the prompt: {total, processed, ...}
  live = null;       // {drafted, accepted} so far

  constructor(message) {
    this.message = message;
  }

  /** `now` in milliseconds. */
  add(chunk, now) {
    const message = this.message;
    if (chunk.prompt_progress) this.progress = chunk.prompt_progress;
    this.#addTokens(chunk.tokens ?? [], now);
    const choice = chunk.choices?.[0];
    const delta = choice?.delta;
    if (delta?.reasoning_content) {
      message.reasoning += delta.reasoning_content;
      addPieces(message.reasoningSpans, this.#aligner.text(delta.reasoning_content));
    }
    if (delta?.content) {
      message.content += delta.content;
      addPieces(message.spans, this.#aligner.text(delta.content));
    }
    for (const call of delta?.tool_calls ?? []) addToCall(message.toolCalls, call);
    if (choice?.finish_reason) {
      message.finish = choice.finish_reason;
      this.#countUnseen();
    }
    if (chunk.timings) message.timings = chunk.timings;
    if (chunk.speculation) {
      if (choice?.finish_reason || message.finish) message.speculation = chunk.speculation;
      else this.live = chunk.speculation;
    }
    if (chunk.usage) message.usage = chunk.usage;
  }

  #addTokens(tokens, now) {
    if (tokens.length === 0) return;
    this.#aligner.tokens(tokens);
    for (const token of tokens) {
      this.ids.push(token.id);
      this.texts.push(token.text);
      this.message.counts[token.by] = (this.message.counts[token.by] ?? 0) + 1;
    }
    if (this.#firstAt === null) {
      this.#firstAt = now;
      this.#firstTokens = tokens.length;
    }
    this.#lastAt = now;
  }

  // Those whose text has not come by the end of the answer have none that is shown: what ends a turn,
  // what a stop string took. A call of a tool is shown otherwise.
  #countUnseen() {
    const message = this.message;
    if (message.toolCalls.length > 0) return;
    message.unseen = {};
    for (const {by} of this.#aligner.waiting) message.unseen[by] = (message.unseen[by] ?? 0) + 1;
  }

  get begun() {
    return this.ids.length > 0 || this.message.content !== "" || this.message.reasoning !== "";
  }

  /** As far as is known now: see `figuresOf`. */
  figures() {
    const message = this.message;
    const figures = figuresOf({...message, speculation: message.speculation ?? this.live});
    if (message.timings === null && this.#lastAt - this.#firstAt >= kLeastTime) {
      const tokens = this.ids.length - this.#firstTokens;
      figures.perSecond = tokens * 1000 / (this.#lastAt - this.#firstAt);
      const plain = plainSpeeds.of(message.model);
      if (plain && this.live?.drafted > 0) figures.speedupSoFar = figures.perSecond / plain;
    }
    return figures;
  }
}

// By the answer's own passes: the server says what they would have taken with one token each. Choosing
// the tokens takes as long either way. Null where either is not known.
function speedup({timings, speculation}) {
  if (!speculation?.enabled || !speculation.plain_ms || !timings?.predicted_ms) return null;
  return (speculation.plain_ms + (speculation.sample_ms ?? 0)) / timings.predicted_ms;
}

function acceptance({drafted, accepted, acceptance_rate: rate}) {
  return rate ?? (drafted > 0 ? accepted / drafted : null);
}

/** How quick each model is without speculation, by the last answer in this page that tells. */
class PlainSpeeds {
  #speeds = new Map();

  /** `message` has ended, and had the machine to itself. */
  note(message) {
    const perSecond = message.timings?.predicted_per_second;
    const factor = message.speculation?.enabled === false ? 1 : speedup(message);
    if (perSecond && factor) this.#speeds.set(message.model, perSecond / factor);
  }

  /** Tokens a second; undefined where nothing has told. */
  of(model) {
    return this.#speeds.get(model);
  }
}

export const plainSpeeds = new PlainSpeeds();

/**
 * {tokens, perSecond, perStep, acceptance, speedup, speedupSoFar} of a message; null for what is not
 * known. While the server has not counted them, steps are the target's own tokens: one each.
 * The speed-up is an estimate of the server's, which it makes when the answer has ended; until then
 * there is that against an earlier answer's plain speed.
 */
export function figuresOf(message) {
  const tokens = Object.values(message.counts).reduce((sum, n) => sum + n, 0);
  const own = message.counts.target ?? 0;
  const figures = {
    tokens: message.usage?.completion_tokens ?? tokens,
    perSecond: message.timings?.predicted_per_second ?? null,
    perStep: message.speculation?.tokens_per_step ?? (own > 0 ? tokens / own : null),
    acceptance: acceptance(message.speculation ?? {}),
    speedup: speedup(message),
    speedupSoFar: null,
  };
  return figures;
}

/** Of a message: {name: tokens} that are seen in its text. */
export function seenCounts({counts = {}, unseen = {}}) {
  return Object.fromEntries(Object.entries(counts).map(([by, n]) => [by, n - (unseen[by] ?? 0)]));
}

/** Where two lists of token ids part: the index, or -1 if one begins with all of the other. */
export function firstDifference(a, b) {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; ++i) {
    if (a[i] !== b[i]) return i;
  }
  return -1;
}
