// SPDX-License-Identifier: MIT
/** What the library says: one line with the file, the place, the reason and what to do. */
export class WhitError extends Error {
  /** "argument", "memory", "io", "format", "unsupported", "limit", "cancelled", "numeric". */
  readonly status: string;
  constructor(message: string, status?: string);
}

export type Source = "tales" | string | URL | Blob | ArrayBuffer | ArrayBufferView;

export interface OpenOptions {
  /** The name in messages, for bytes without one. */
  name?: string;
  /** Keep downloads in the browser's store (OPFS) for the next visit; default true. */
  cache?: boolean;
  signal?: AbortSignal;
  /** Called with the bytes read so far, and all of them (0 if unknown). */
  onProgress?: (done: number, total: number) => void;
}

/** The library's sampler options (whit/sampler.h), in camel case. */
export interface Sampling {
  seed?: number | bigint;
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  typicalP?: number;
  topNSigma?: number;
  dynatempRange?: number;
  dynatempExponent?: number;
  xtcProbability?: number;
  xtcThreshold?: number;
  repeatPenalty?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  penaltyLastN?: number;
  dryMultiplier?: number;
  dryBase?: number;
  dryAllowedLength?: number;
  dryPenaltyLastN?: number;
  mirostat?: number;
  mirostatTau?: number;
  mirostatEta?: number;
}

export interface GenerateOptions extends Sampling {
  /** Most tokens; default 128. */
  maxTokens?: number;
  stop?: string[];
  /** JSON Schema that holds the text's form. */
  schema?: object | string;
  /** GBNF that holds the text's form. */
  grammar?: string;
  ignoreEnd?: boolean;
  signal?: AbortSignal;
}

export interface Result {
  finish: "length" | "end" | "stop" | "cancelled" | "failed";
  promptTokens: number;
  tokens: number;
  promptMs: number;
  generateMs: number;
}

export class Stream<R> implements AsyncIterable<string> {
  /** Resolves when the text has ended. */
  readonly result: Promise<R>;
  [Symbol.asyncIterator](): AsyncGenerator<string, void, void>;
  /** The whole text. */
  text(): Promise<string>;
}

export interface SessionOptions {
  /** Tokens of context; default: as trained, at most 4,096. */
  context?: number;
  kv?: "f16" | "f32" | "i8" | "k4v2" | "k2v2" | "bitmap";
  /** Activations in front of coded weights. */
  act?: "f32" | "i8" | "q2";
  /** Most tokens in one pass. */
  batch?: number;
  /** Most tokens whose logits are wanted at once. */
  logits?: number;
  /** A cap of the kernels' level: "generic" or "simd128". */
  cpu?: string;
}

export interface Tool {
  function: (values: any) => unknown;
  description?: string;
  parameters?: object;
}

export interface ChatOptions extends SessionOptions {
  system?: string;
  tools?: Record<string, Tool>;
  /** Jinja in place of the model's template. */
  template?: string;
}

export interface Message {
  role: string;
  content?: string | null;
  [field: string]: unknown;
}

export interface Answer extends Result {
  text: string;
  message: Message;
}

export interface AskOptions extends Omit<GenerateOptions, "schema" | "grammar"> {
  /** Thinking of reasoning models: on, off, or as the template decides. */
  thinking?: boolean;
  onThinking?: (piece: string) => void;
}

/** A model in a worker of its own; requests are answered one after the other. */
export class Model {
  static open(source?: Source, options?: OpenOptions): Promise<Model>;
  readonly vocabSize: number;
  readonly contextSize: number;
  readonly embeddingSize: number;
  /** A digest of configuration, tokenizer and weights, in hexadecimal digits. */
  readonly identity: string;
  readonly architecture: string;
  /** Whether the model has a chat template. */
  readonly hasChat: boolean;
  metadata(key: string): Promise<string | null>;
  tokenize(text: string, options?: { addSpecial?: boolean; parseSpecial?: boolean }): Promise<Int32Array>;
  detokenize(ids: Iterable<number>): Promise<string>;
  embed(text: string, options?: { dimensions?: number }): Promise<Float32Array>;
  embed(texts: string[], options?: { dimensions?: number }): Promise<Float32Array[]>;
  /** Continues a text, in a session that the model keeps. */
  generate(prompt: string | Iterable<number>, options?: GenerateOptions): Stream<Result>;
  /** Logits after a text or ids, vocabSize of them. */
  logits(prompt: string | Iterable<number>): Promise<Float32Array>;
  chat(options?: ChatOptions): Promise<Chat>;
  session(options?: SessionOptions): Promise<Session>;
  close(): void;
}

/** A sequence of tokens with its cache. */
export class Session {
  generate(prompt: string | Iterable<number>, options?: GenerateOptions): Stream<Result>;
  /** Appends tokens; logits after the last one. */
  logits(ids: Iterable<number>, options?: { every?: false }): Promise<Float32Array>;
  /** Logits after each. */
  logits(ids: Iterable<number>, options: { every: true }): Promise<Float32Array[]>;
  /** Forgets the tokens from `tokens` on. */
  truncate(tokens?: number): Promise<void>;
  position(): Promise<number>;
  close(): Promise<void>;
}

export class Chat {
  ask(text?: string, options?: AskOptions): Promise<Answer>;
  stream(text?: string, options?: AskOptions): Stream<Answer>;
  append(messages: Message | Message[]): Promise<void>;
  messages(): Promise<Message[]>;
  setMessages(messages: Message[]): Promise<void>;
  close(): Promise<void>;
}

export interface Host {
  startWorker(onMessage: (message: any) => void, onFailure: (error: Error) => void): {
    post(message: any, transfer?: Transferable[]): void;
    busy(isBusy: boolean): void;
    end(): void;
  };
  isFile(name: string): boolean;
  /** Address or bytes of the module. */
  wasm: string | Uint8Array;
  /** Address or bytes of the built-in model. */
  tales: string | Uint8Array;
}

/** Replaces where workers, module and built-in model come from, for pages that have them inside. */
export function setHost(host: Host): void;

/** Removes the downloads that the browser keeps. */
export function clearStored(): Promise<void>;
