// SPDX-License-Identifier: MIT
// whit in Node and browsers: models that run in a worker of their own, as promises and async iterators.
export { clearStored } from "./store.mjs";

/** What the library says: one line with the file, the place, the reason and what to do; `status` names its kind. */
export class WhitError extends Error {
  constructor(message, status = "argument") {
    super(message);
    this.name = "WhitError";
    this.status = status;
  }
}

const isNode = typeof process === "object" && Boolean(process.versions?.node);
const packaged = async () => {
  const host = await (isNode ? import("./host_node.mjs") : import("./host_browser.mjs"));
  const { href } = new URL(".", import.meta.url);
  return { ...host, wasm: href + "whit-core.wasm", tales: href + "tales.ndf" };
};
let findHost = packaged;

/** Replaces where workers, module and built-in model come from; for pages that have them inside. */
export function setHost(host) {
  findHost = async () => host;
}

/** A worker and the requests that it has not answered. */
class Port {
  constructor(host) {
    this.waiting = new Map();
    this.count = 0;
    this.worker = host.startWorker((message) => this.receive(message), (error) => this.fail(error));
  }

  receive({ id, value, pieces, progress, failure }) {
    const request = this.waiting.get(id);
    if (!request) return;
    if (progress) request.onProgress?.(...progress);
    else if (pieces) request.onPieces?.(pieces);
    else {
      this.waiting.delete(id);
      if (!this.waiting.size) this.worker.busy(false);
      request.end?.();
      if (failure) request.reject(Object.assign(new WhitError(failure.message, failure.status), request.aborted ? { name: "AbortError" } : {}));
      else request.resolve(value);
    }
  }

  fail(error) {
    this.closed = error;
    for (const request of this.waiting.values()) {
      request.end?.();
      request.reject(new WhitError(`the model's worker has ended: ${error.message}`, "io"));
    }
    this.waiting.clear();
  }

  ask(method, values = {}, { signal, onPieces, onProgress } = {}) {
    if (this.closed) return Promise.reject(new WhitError("this model is closed"));
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const id = ++this.count;
      const request = { resolve, reject, onPieces, onProgress };
      if (signal) {
        const abort = () => {
          request.aborted = true;
          this.worker.post({ abort: id });
        };
        signal.addEventListener("abort", abort, { once: true });
        request.end = () => signal.removeEventListener("abort", abort);
      }
      this.waiting.set(id, request);
      this.worker.busy(true);
      this.worker.post({ id, method, values });
    });
  }

  close() {
    if (this.closed) return;
    this.fail(new Error("it was closed"));
    this.worker.end();
  }
}

/** An async iterator over pieces of text as they become final. Leaving it early, or its signal, ends the answer; `result`
 * resolves when it has ended. */
export class Stream {
  constructor(start, signal) {
    this.pieces = [];
    this.controller = new AbortController();
    this.outer = signal;
    if (signal?.aborted) this.controller.abort(signal.reason);
    const abort = () => this.controller.abort(signal.reason);
    signal?.addEventListener("abort", abort, { once: true });
    this.result = start(this.controller.signal, (piece) => {
      this.pieces.push(piece);
      this.wake?.();
    }).finally(() => {
      signal?.removeEventListener("abort", abort);
      this.ended = true;
      this.wake?.();
    });
    this.result.catch(() => {}); // it is raised where the pieces are read
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (;;) {
        while (this.pieces.length) yield this.pieces.shift();
        if (this.ended) break;
        await new Promise((resolve) => (this.wake = resolve));
      }
      await this.result;
      if (this.outer?.aborted) throw this.outer.reason;
    } finally {
      this.controller.abort();
    }
  }

  /** The whole text. */
  async text() {
    let text = "";
    for await (const piece of this) text += piece;
    return text;
  }
}

async function sourceOf(host, source, name) {
  if (source === "tales") {
    if (host.tales instanceof Uint8Array) return { bytes: host.tales, name: "tales (built in)" };
    return host.isFile(host.tales) ? { file: host.tales } : { address: host.tales, name: "tales (built in)" };
  }
  if (source instanceof ArrayBuffer) return { bytes: new Uint8Array(source), name: name ?? "model" };
  if (ArrayBuffer.isView(source))
    return { bytes: new Uint8Array(source.buffer, source.byteOffset, source.byteLength), name: name ?? "model" };
  if (typeof Blob === "function" && source instanceof Blob) return { blob: source, name: name ?? source.name ?? "model" };
  if (typeof source !== "string" && !(source instanceof URL))
    throw new WhitError("a model is 'tales', an address, a file's name, a File, or bytes");
  const address = String(source);
  if (host.isFile(address)) return { file: address };
  return { address: new URL(address, globalThis.location?.href).href, name: name ?? address.replace(/[?#].*/, "") };
}

/** A model in a worker of its own. */
export class Model {
  /** Opens "tales" (the built-in model), an address, a file's name (Node), a File or Blob, or bytes. */
  static async open(source = "tales", { name, cache = true, signal, onProgress } = {}) {
    const host = await findHost(), model = new Model();
    const found = await sourceOf(host, source, name);
    model.port = new Port(host);
    try {
      const facts = await model.port.ask("open", { source: found, wasm: host.wasm, cache: cache && source !== "tales" },
        { signal, onProgress });
      Object.assign(model, facts);
    } catch (error) {
      model.port.close();
      throw error;
    }
    return model;
  }

  metadata(key) {
    return this.port.ask("metadata", { key });
  }

  tokenize(text, options) {
    return this.port.ask("tokenize", { text, options });
  }

  detokenize(ids) {
    return this.port.ask("detokenize", { ids });
  }

  /** Vectors with the model's own pooling: a Float32Array, or a list of them for a list of texts. */
  async embed(texts, options) {
    const values = await this.port.ask("embed", { texts: [texts].flat(), options });
    return Array.isArray(texts) ? values : values[0];
  }

  async session(options) {
    const session = new Session();
    session.model = this;
    session.port = this.port;
    session.number = await this.port.ask("session", { options });
    return session;
  }

  /** The session of generate() and logits() of the model itself, opened once. */
  shared() {
    this.sharedSession ??= this.session();
    return this.sharedSession;
  }

  /** Continues a text, in a session that the model keeps. */
  generate(prompt, { signal, ...options } = {}) {
    return new Stream(async (inner, push) => generateIn(await this.shared(), prompt, options, inner, push), signal);
  }

  /** Logits after a text or ids, (vocabSize). */
  async logits(prompt) {
    const session = await this.shared();
    await session.truncate(0);
    return session.logits(typeof prompt === "string" ? await this.tokenize(prompt) : prompt);
  }

  /** A conversation through the model's chat template. Tools: {name: {function, description, parameters}}. */
  async chat({ system, tools, template, ...options } = {}) {
    const chat = new Chat(), session = await this.session(options);
    chat.session = session;
    chat.port = this.port;
    chat.tools = tools ?? {};
    const described = Object.entries(chat.tools).map(([name, { function: _run, ...about }]) => ({ type: "function", function: { name, ...about } }));
    chat.number = await this.port.ask("chat",
      { session: session.number, options: { system, template, tools: described.length ? described : undefined } });
    return chat;
  }

  close() {
    this.port.close();
  }
}

async function generateIn(session, prompt, options, signal, push) {
  return session.port.ask("generate", { session: session.number, prompt: typeof prompt === "string" ? prompt : Int32Array.from(prompt), options },
    { signal, onPieces: (pieces) => pieces.forEach(push) });
}

/** A sequence of tokens with its cache. */
export class Session {
  generate(prompt, { signal, ...options } = {}) {
    return new Stream((inner, push) => generateIn(this, prompt, options, inner, push), signal);
  }

  /** Appends tokens; returns the logits after the last one, or with `every` after each. */
  logits(ids, { every = false } = {}) {
    return this.port.ask("logits", { session: this.number, ids: Int32Array.from(ids), every });
  }

  truncate(tokens = 0) {
    return this.port.ask("truncate", { session: this.number, tokens });
  }

  position() {
    return this.port.ask("position", { session: this.number });
  }

  close() {
    return this.port.ask("closeSession", { session: this.number });
  }
}

const callsMost = 16;

/** A conversation; ask() and stream() say something and answer, and call tools meanwhile. */
export class Chat {
  stream(text, { signal, onThinking, ...options } = {}) {
    return new Stream((inner, push) => this.answer(text, options, inner, push, onThinking), signal);
  }

  /** The answer: {text, message, finish, tokens, promptTokens}. */
  async ask(text, options) {
    const stream = this.stream(text, options);
    for await (const _piece of stream);
    return stream.result;
  }

  async answer(text, options, signal, push, onThinking) {
    if (text !== undefined) await this.append({ role: "user", content: text });
    for (let turn = 0; ; turn++) {
      const { message, ...counts } = await this.port.ask("answer", { chat: this.number, options }, {
        signal,
        onPieces: (events) => events.forEach((event) => {
          if (event.kind === "text") push(event.text);
          if (event.kind === "thinking") onThinking?.(event.text);
        }),
      });
      const calls = message.tool_calls ?? [];
      if (!calls.length || turn === callsMost || signal.aborted) return { text: message.content ?? "", message, ...counts };
      for (const call of calls) await this.append({ role: "tool", tool_call_id: call.id, name: call.function.name, content: await this.run(call) });
    }
  }

  /** Runs a tool; the model is told what went wrong. */
  async run({ function: { name, arguments: json } }) {
    try {
      const tool = Object.hasOwn(this.tools, name) ? this.tools[name] : undefined;
      if (!tool) throw new Error(`there is no function '${name}'`);
      const result = await tool.function(JSON.parse(json));
      return typeof result === "string" ? result : JSON.stringify(result ?? null);
    } catch (error) {
      return `error: ${error.message}`;
    }
  }

  /** Appends messages as OpenAI's chat API has them. */
  append(messages) {
    return this.port.ask("append", { chat: this.number, messages: [messages].flat() });
  }

  messages() {
    return this.port.ask("messages", { chat: this.number });
  }

  setMessages(messages) {
    return this.port.ask("setMessages", { chat: this.number, messages });
  }

  async close() {
    await this.port.ask("closeSession", { session: this.number });
    await this.session.close();
  }
}
