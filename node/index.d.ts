/** Local language models that answer faster with the same text: speculative decoding of GGUF files.
 *
 * Options have the names of the command's options with `_` for `-`; `call('system.methods')` lists
 * them all. One that is not known is an error that names it. */

/** What went wrong. `field` is the option or argument that it is about, where there is one; `code`
 * the kind, such as "invalid_argument" or "not_found". */
export class OutriderError extends Error {
  readonly field: string | undefined;
  readonly code: string | undefined;
}

/** A model's file and its options: `ctx`, `threads`, `kernels`, ... */
export interface ModelConfig {
  path: string;
  ctx?: number;
  threads?: number;
  [option: string]: unknown;
}

/** As outrider_create (outrider.h) takes it, but a model may be a path alone. */
export interface Config {
  model: string | ModelConfig;
  draft?: string | ModelConfig;
  /** Completions that run at once, 1 to 64; 4 unless given. Each takes its context's memory. */
  slots?: number;
  max_queue?: number;
  prompt_cache?: string;
  remember_tokens?: number;
  suffix_store?: string | string[];
  ngram_static?: string;
  ngram_dynamic?: string;
  [option: string]: unknown;
}

/** How far a load is, 0 to 1. */
export interface Loading {
  role: 'target' | 'draft';
  path: string | null;
  fraction: number;
}

export interface Message {
  role: string;
  content?: unknown;
  [field: string]: unknown;
}

/** A text; texts and token ids; or the messages of a conversation, for the model's template. */
export type Prompt = string | ReadonlyArray<string | number> | ReadonlyArray<Message>;

export interface CompletionOptions {
  max_tokens?: number;
  /** The same seed gives the same text, with speculation on and off. */
  seed?: number;
  temp?: number;
  top_k?: number;
  top_p?: number;
  min_p?: number;
  stop?: string | string[];
  grammar?: string;
  json_schema?: unknown;
  /** Tokens of a step; "auto", the default, leaves it to the planner. */
  width?: number | 'auto';
  speculative?: boolean | { drafters?: string[]; rule?: string; namespace?: string; [field: string]: unknown };
  /** Cancels the completion, also where it has ended and not yet been read; what waits for it throws
   * the signal's reason. Of a controller, its `.signal`. */
  signal?: AbortSignal;
  [option: string]: unknown;
}

/** A part of a text: `by` is who guessed its tokens, a drafter's name, or "target" for what the
 * target said itself. The pieces' texts together are the completion's text. */
export interface Piece {
  text: string;
  tokens: number[];
  by: string;
}

/** Tokens: of the prompt, of those the ones that had been read before, and of the text. */
export interface Usage {
  prompt_tokens: number;
  cached_tokens: number;
  completion_tokens: number;
}

/** Milliseconds, and tokens a second; null where there was nothing to measure. */
export interface Timings {
  prompt_ms: number;
  prompt_per_second: number | null;
  predicted_ms: number;
  predicted_per_second: number | null;
  first_token_ms: number | null;
  [field: string]: unknown;
}

/** How much was guessed and how much of it was right. */
export interface Speculation {
  enabled: boolean;
  exactness: string | null;
  reason: string | null;
  steps: number;
  drafted: number;
  accepted: number;
  tokens_per_step: number | null;
  acceptance_rate: number | null;
  drafters: Record<string, { drafted: number; accepted: number; [field: string]: unknown }>;
  [field: string]: unknown;
}

/** A finished text, as `outrider run --json` prints it. `message` is the answer of a conversation,
 * without thoughts; a plain prompt has none. */
export interface Completion {
  text: string;
  tokens: number[];
  finish_reason: 'stop' | 'length' | 'cancelled';
  usage: Usage;
  timings: Timings;
  speculation: Speculation;
  message?: Message | null;
  [field: string]: unknown;
}

/** The pieces of a text, as they come. It begins with the first piece that is asked for; leaving the
 * loop early cancels the completion. */
export interface Stream extends AsyncIterableIterator<Piece> {
  /** The whole completion, once its last piece was read and the loop has ended. Throws before that,
   * or when it was left early. */
  readonly result: Completion;
}

/** A conversation: `messages` holds what was said, and may be read and changed between answers. An
 * answer that fails, is cancelled or is left early leaves it as it was. One answer at a time. */
export interface Chat {
  messages: Message[];
  /** The answer to `text`; `message.content` of it is without thoughts. */
  send(text: string, options?: CompletionOptions): Promise<Completion>;
  stream(text: string, options?: CompletionOptions): Stream;
}

/** A target, perhaps with a draft model, and the completions on them: any number, of which `slots`
 * run at once. All of them wait on one thread of Node's pool. */
export class Outrider {
  private constructor();
  /** Loads the models and waits for them; what a first load measures may take half a minute. Throws
   * OutriderError, whose `field` is "model", "draft" or the option that is wrong. */
  static load(config: Config, options?: { onProgress?: (loading: Loading) => void }): Promise<Outrider>;
  generate(prompt: Prompt, options?: CompletionOptions): Promise<Completion>;
  /** The same as it comes. Throws at once where the options are no object or the signal is none; what
   * else is wrong, the first piece that is asked for says. */
  stream(prompt: Prompt, options?: CompletionOptions): Stream;
  /** A conversation, with options for all of its answers. */
  chat(system?: string, options?: CompletionOptions): Chat;
  tokenize(text: string, options?: { add_special?: boolean; [option: string]: unknown }): Promise<number[]>;
  detokenize(tokens: Iterable<number>): Promise<string>;
  /** Counts since the start: tokens, steps, how much was drafted and accepted, by whom. */
  stats(): Promise<Record<string, any>>;
  /** Any other method of the C interface: call("system.methods") lists them. None of them keeps a
   * thread of Node's pool for longer than a moment, or holds up close(): what waits then throws. */
  call(method: string, params?: Record<string, unknown>): Promise<any>;
  /** Ends completions that go on, and frees the models. Again: no effect. One that nobody has any
   * more is closed when it is collected, which may be late. In a worker thread it must be closed before
   * the worker's terminate(), and where something still computes before process.exit(): else its models
   * and completions stay until the process ends. One that does nothing is closed with the worker. */
  close(): Promise<void>;
}

/** The library's version. */
export function version(): string;
