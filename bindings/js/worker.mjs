// SPDX-License-Identifier: MIT
// The worker's side: owns the module and one model, and answers requests {id, method, arguments}. A stream posts
// {id, pieces} while it runs, and looks for {abort: id} between tokens.
import createCore from "./whit-core.mjs";
import { Chat } from "./chat.mjs";
import { Generation, Library, Model, Session, WhitError } from "./engine.mjs";
import { readSource } from "./files.mjs";

const PAUSE_MS = 8; // a stream's share between two looks at the messages
const aborted = new Set();
const sessions = new Map();
let host, library, model, count = 0;

async function createLibrary(wasmBytes) {
  globalThis.crypto ??= (await import("node:crypto")).webcrypto;
  const compiled = await WebAssembly.compile(wasmBytes).catch((error) => {
    throw new WhitError(`the module does not load here: ${error.message}; WebAssembly with SIMD is needed`, "unsupported");
  });
  let fail;
  const failed = new Promise((_resolve, reject) => (fail = reject));
  const core = await Promise.race([failed, createCore({
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(compiled, imports).then((instance) => done(instance, compiled), fail);
      return {};
    },
    getRandomValue: () => globalThis.crypto.getRandomValues(new Uint32Array(1))[0], // libsodium asks for it
    print: () => {},
    printErr: () => {},
  })]);
  return new Library(core);
}

/** Steps until `step` returns null; posts what it gives, and ends early when the request was aborted. */
async function stream(id, step) {
  let pieces = [], until = performance.now() + PAUSE_MS;
  const flush = () => {
    if (pieces.length) host.send({ id, pieces });
    pieces = [];
  };
  for (;;) {
    const more = step();
    if (more === null) break;
    pieces.push(...[more].flat().filter((piece) => piece !== ""));
    if (performance.now() < until) continue;
    flush();
    await host.pause();
    if (aborted.has(id)) break;
    until = performance.now() + PAUSE_MS;
  }
  flush();
}

function sessionOf(number) {
  const session = sessions.get(number);
  if (!session) throw new WhitError("this session is closed");
  return session;
}

const methods = {
  async open(id, { source, wasm, cache }) {
    library = await createLibrary(wasm instanceof Uint8Array ? wasm : await host.fileBytes(wasm));
    const progress = (done, total) => host.send({ id, progress: [done, total] });
    const abort = new AbortController();
    aborts.set(id, abort);
    const found = source.file ? await host.fileSource(source.file) : source;
    const [at, size] = await readSource(library, found, { cache, signal: abort.signal, progress }).finally(() => aborts.delete(id));
    if (!size) throw new WhitError(`${found.name}: the file is empty`, "format");
    model = new Model(library, at, size, found.name);
    return model.facts;
  },
  metadata: (_id, { key }) => model.metadata(key),
  tokenize: (_id, { text, options }) => model.tokenize(text, options),
  detokenize: (_id, { ids }) => model.detokenize(ids),
  embed: (_id, { texts, options }) => model.embed(texts, options),
  session(_id, { options }) {
    sessions.set(++count, new Session(model, options));
    return count;
  },
  closeSession(_id, { session }) {
    sessions.get(session)?.close();
    sessions.delete(session);
  },
  truncate: (_id, { session, tokens }) => sessionOf(session).truncate(tokens),
  position: (_id, { session }) => sessionOf(session).position,
  logits(_id, { session, ids, every }) {
    return sessionOf(session).step(ids, every);
  },
  async generate(id, { session, prompt, options }) {
    const ids = typeof prompt === "string" ? model.tokenize(prompt) : prompt;
    const generation = new Generation(sessionOf(session), ids, options);
    try {
      await stream(id, () => generation.step());
      if (aborted.has(id)) generation.cancel();
      return generation.result;
    } finally {
      generation.close();
    }
  },
  chat(_id, { session, options }) {
    const chat = new Chat(sessionOf(session), options);
    sessions.set(++count, chat);
    return count;
  },
  append: (_id, { chat, messages }) => void sessionOf(chat).messages.push(...messages),
  messages: (_id, { chat }) => sessionOf(chat).messages,
  setMessages: (_id, { chat, messages }) => void (sessionOf(chat).messages = messages),
  async answer(id, { chat, options }) {
    const answer = sessionOf(chat).begin(options);
    try {
      await stream(id, () => answer.step());
      const { events, ...result } = answer.finish();
      if (events.length) host.send({ id, pieces: events });
      return result;
    } finally {
      answer.close();
    }
  },
};

const aborts = new Map();
let turn = Promise.resolve(); // requests are answered one after the other

async function answerRequest({ id, method, values }) {
  try {
    if (aborted.has(id)) throw new WhitError("aborted", "cancelled");
    host.send({ id, value: await methods[method](id, values) });
  } catch (error) {
    host.send({ id, failure: { message: error.message || String(error), status: error.status ?? (error.name === "AbortError" ? "cancelled" : "") } });
  }
  aborted.delete(id);
}

function receive(message) {
  if (message.abort !== undefined) {
    aborted.add(message.abort);
    aborts.get(message.abort)?.abort();
    return;
  }
  turn = turn.then(() => answerRequest(message));
}

/** Begins to answer requests, with the functions of a host. */
export function serve(functions) {
  host = { ...functions, send: functions.listen(receive) };
}
