// SPDX-License-Identifier: MIT
// The library's functions as synchronous objects, for the thread that owns the module: models, sessions, generations.
import { structs } from "./abi.mjs";

const kvTypes = ["f16", "f32", "i8", "k4v2", "k2v2", "bitmap"];
const actTypes = ["f32", "i8", "q2"];
const finishes = ["length", "end", "stop", "cancelled", "failed"];
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** What the library says: one line with the file, the place, the reason and what to do; `status` names its kind. */
export class WhitError extends Error {
  constructor(message, status = "argument") {
    super(message);
    this.name = "WhitError";
    this.status = status;
  }
}

const accessors = {
  bool: ["Uint8", Number, Boolean], u8: ["Uint8"], i8: ["Int8"], u16: ["Uint16"], i32: ["Int32"], u32: ["Uint32"],
  f32: ["Float32"], f64: ["Float64"], u64: ["BigUint64", BigInt, Number], i64: ["BigInt64", BigInt, Number],
};

/** The module with its memory: texts and structs in, values out. */
export class Library {
  constructor(core) {
    this.core = core;
    this.error = this.allocate(structs.whit_error.size);
    this.number = this.allocate(8);
  }

  get bytes() {
    return this.core.HEAPU8;
  }

  get view() {
    if (this.cached?.buffer !== this.core.HEAPU8.buffer) this.cached = new DataView(this.core.HEAPU8.buffer);
    return this.cached;
  }

  allocate(size) {
    const at = this.core._aligned_alloc(64, (Math.max(size, 1) + 63) & ~63);
    if (!at) throw new WhitError(`out of memory: ${size} bytes`, "memory");
    return at;
  }

  free(at) {
    this.core._free(at);
  }

  read(name, at, field) {
    const [offset, kind] = structs[name].fields[field];
    const [type, , back] = accessors[kind];
    const value = this.view["get" + type](at + offset, true);
    return back ? back(value) : value;
  }

  write(name, at, values) {
    for (const [field, value] of Object.entries(values)) {
      if (value === undefined) continue;
      if (!structs[name].fields[field]) throw new WhitError(`'${field}' is no option: ${optionNames(name).join(", ")}`);
      const [offset, kind] = structs[name].fields[field];
      const [type, to] = accessors[kind];
      this.view["set" + type](at + offset, to ? to(value) : value, true);
    }
  }

  u32(at) {
    return this.view.getUint32(at, true);
  }

  text(at, length) {
    return decoder.decode(this.bytes.slice(at, at + length));
  }

  string(at) {
    if (!at) return null;
    return this.text(at, this.bytes.indexOf(0, at) - at);
  }

  failure(at) {
    const status = this.read("whit_error", at, "status");
    return new WhitError(this.string(at + structs.whit_error.fields.message[0]),
      this.string(this.core._whit_status_name(status)));
  }

  /** Calls a function whose last argument is the error; throws what it reports. */
  call(name, ...values) {
    if (this.core["_" + name](...values, this.error)) throw this.failure(this.error);
  }

  /** Calls it with a pointer to a new handle before the error, and returns the handle. */
  open(name, ...values) {
    this.view.setUint32(this.number, 0, true);
    this.call(name, ...values, this.number);
    return this.u32(this.number);
  }
}

function optionNames(name) {
  return Object.keys(structs[name].fields).filter((field) => field !== "struct_bytes");
}

/** Memory of one call: freed together. */
export class Frame {
  constructor(library) {
    this.library = library;
    this.kept = [];
  }

  allocate(size) {
    const at = this.library.allocate(size);
    this.kept.push(at);
    return at;
  }

  /** A text with a terminator: [address, bytes without it]. */
  text(value) {
    const data = encoder.encode(String(value));
    const at = this.allocate(data.length + 1);
    this.library.bytes.set(data, at);
    this.library.bytes[at + data.length] = 0;
    return [at, data.length];
  }

  ids(values) {
    const at = this.allocate(4 * values.length);
    this.library.core.HEAP32.set(values, at >> 2);
    return at;
  }

  pointers(values) {
    const at = this.allocate(4 * values.length);
    values.forEach((value, i) => this.library.view.setUint32(at + 4 * i, value, true));
    return at;
  }

  /** A struct with the library's defaults, and these values. */
  struct(name, values = {}) {
    const at = this.allocate(structs[name].size);
    this.library.core[`_${name}_init`](at, structs[name].size);
    this.library.write(name, at, values);
    return at;
  }

  end() {
    for (const at of this.kept.splice(0)) this.library.free(at);
  }
}

/** Runs `body` with a frame, which ends with it. */
export function framed(library, body) {
  const frame = new Frame(library);
  try {
    return body(frame);
  } finally {
    frame.end();
  }
}

/** An object of the library that is closed once. */
class Handle {
  constructor(library, handle, closer) {
    this.library = library;
    this.handle = handle;
    this.closer = closer;
  }

  get pointer() {
    if (!this.handle) throw new WhitError(`this ${this.constructor.name.toLowerCase()} is closed`);
    return this.handle;
  }

  close() {
    const handle = this.handle;
    this.handle = 0;
    if (handle) this.library.core["_" + this.closer](handle);
  }
}

export class Model extends Handle {
  /** `at` has the file's bytes, `size` of them, from the library's allocate(); the model frees them. */
  constructor(library, at, size, name) {
    const isReady = size > 8 && library.text(at, 8) === "whit.ndf"; // an .ndf is used in place
    super(library, isReady ? openInPlace(library, at, size, name) : openConverted(library, at, size, name),
      "whit_model_close");
    this.memory = isReady ? at : 0;
    if (!isReady) library.free(at);
  }

  close() {
    super.close();
    if (this.memory) this.library.free(this.memory);
    this.memory = 0;
  }

  get facts() {
    const { core } = this.library, model = this.pointer;
    const identity = core._whit_model_identity(model);
    return {
      vocabSize: core._whit_model_vocab_size(model),
      contextSize: core._whit_model_context_size(model),
      embeddingSize: core._whit_model_embedding_size(model),
      identity: Array.from(this.library.bytes.slice(identity, identity + 32), (byte) => byte.toString(16).padStart(2, "0")).join(""),
      architecture: this.metadata("general.architecture"),
      hasChat: framed(this.library, (frame) => hasTemplate(this, frame)),
    };
  }

  metadata(key) {
    return framed(this.library, (frame) => this.library.string(
      this.library.core._whit_model_metadata(this.pointer, frame.text(key)[0])));
  }

  tokenize(text, { addSpecial = true, parseSpecial = false } = {}) {
    return framed(this.library, (frame) => {
      const [at, length] = frame.text(text);
      const capacity = length + 16, ids = frame.allocate(4 * capacity);
      this.library.call("whit_tokenize", this.pointer, at, length, addSpecial, parseSpecial, ids, capacity, this.library.number);
      return this.library.core.HEAP32.slice(ids >> 2, (ids >> 2) + this.library.u32(this.library.number));
    });
  }

  detokenize(ids) {
    return framed(this.library, (frame) => {
      const capacity = 1024, at = frame.allocate(capacity), parts = [];
      for (const id of ids) {
        this.library.call("whit_token_bytes", this.pointer, id, at, capacity, this.library.number);
        parts.push(...this.library.bytes.slice(at, at + this.library.u32(this.library.number)));
      }
      return decoder.decode(new Uint8Array(parts));
    });
  }

  embed(texts, { dimensions = 0 } = {}) {
    return framed(this.library, (frame) => {
      const size = dimensions || this.library.core._whit_model_embedding_size(this.pointer);
      const stride = structs.whit_embed_text.size, list = frame.allocate(texts.length * stride);
      texts.forEach((text, i) => {
        const ids = this.tokenize(text);
        this.library.write("whit_embed_text", list + i * stride, { ids: frame.ids(ids), n_ids: ids.length, n_first: 0, n_prompt: 0 });
      });
      const options = frame.struct("whit_embed_options", { n_dimensions: dimensions });
      const values = frame.allocate(4 * texts.length * size);
      const session = new Session(this, { onlyVectors: true });
      try {
        this.library.call("whit_embed_texts_strided", session.pointer, list, texts.length, stride, options, values);
      } finally {
        session.close();
      }
      return texts.map((_text, i) => this.library.core.HEAPF32.slice((values >> 2) + i * size, (values >> 2) + (i + 1) * size));
    });
  }
}

function openInPlace(library, at, size, name) {
  return framed(library, (frame) => library.open("whit_model_open_memory", at, size, frame.text(name)[0], 0));
}

/** Another format goes into the module's file system, is converted there, and removed. */
function openConverted(library, at, size, name) {
  const { FS } = library.core, path = "/" + (name.replace(/^.*\//, "").replace(/[^\w.+-]/g, "_") || "model");
  FS.writeFile(path, library.bytes.subarray(at, at + size));
  try {
    return framed(library, (frame) => library.open("whit_model_open", frame.text(path)[0],
      frame.struct("whit_model_options", { cache_dir: frame.text("/cache")[0] })));
  } finally {
    FS.unlink(path);
  }
}

function hasTemplate(model, frame) {
  const options = frame.struct("whit_chat_template_options");
  try {
    model.library.core._whit_chat_template_close(model.library.open("whit_chat_template_open", model.pointer, options));
    return true;
  } catch (error) {
    if (error.status !== "unsupported") throw error;
    return false;
  }
}

function indexIn(option, names, name) {
  const index = names.indexOf(name);
  if (index < 0) throw new WhitError(`${option} is '${name}', not one of ${names.join(", ")}`);
  return index;
}

export class Session extends Handle {
  constructor(model, { context, kv = "f16", act = "i8", batch, logits, cpu, onlyVectors } = {}) {
    super(model.library, framed(model.library, (frame) => model.library.open("whit_session_open", model.pointer,
      frame.struct("whit_session_options", {
        n_ctx_tokens: context, n_batch_tokens: batch, n_logits: logits, kv: indexIn("kv", kvTypes, kv), act: indexIn("act", actTypes, act), n_threads: 1,
        only_vectors: onlyVectors, cpu: cpu ? frame.text(cpu)[0] : undefined,
      }))), "whit_session_close");
    this.model = model;
  }

  get position() {
    return this.library.core._whit_session_position(this.pointer, 0);
  }

  truncate(tokens = 0) {
    this.library.call("whit_session_truncate", this.pointer, 0, tokens);
  }

  /** Makes the sequence the longest prefix of `ids` that is cached; returns its length, which is below theirs. */
  reuse(ids) {
    return framed(this.library, (frame) => {
      this.library.call("whit_session_reuse", this.pointer, 0, frame.ids(ids), ids.length, this.library.number);
      return this.library.u32(this.library.number);
    });
  }

  /** Appends tokens and returns a copy of the logits after the last one, or after each. */
  step(ids, every = false) {
    return framed(this.library, (frame) => {
      const stride = structs.whit_step_token.size, tokens = frame.allocate(ids.length * stride);
      this.library.bytes.fill(0, tokens, tokens + ids.length * stride);
      ids.forEach((id, i) => this.library.write("whit_step_token", tokens + i * stride,
        { id, want_logits: every || i + 1 === ids.length }));
      this.library.call("whit_session_step_strided", this.pointer, tokens, ids.length, stride);
      const size = this.library.core._whit_model_vocab_size(this.model.pointer);
      const rows = (every ? Array.from(ids) : [0]).map((_id, i) => {
        const at = this.library.core._whit_session_logits(this.pointer, i) >> 2;
        return this.library.core.HEAPF32.slice(at, at + size);
      });
      return every ? rows : rows[0];
    });
  }
}

/** What the sampler's options are called here: topK is top_k, and so on. */
export function snakeCase(name) {
  return name.replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase());
}

/** One generation, a step at a time. Its options: maxTokens, stop, schema or grammar, ignoreEnd, endIds, keepSpecial, and
 * those of the sampler. */
export class Generation {
  constructor(session, ids, { maxTokens = 128, stop = [], schema, grammar, form, ignoreEnd = false, endIds = [],
    keepSpecial = false, ...sampling } = {}) {
    const { library, model } = session;
    Object.assign(this, { library, session, frame: new Frame(library), handles: [] });
    try {
      const sampler = {};
      for (const [name, value] of Object.entries(sampling)) sampler[snakeCase(name)] = value;
      this.sampler = this.keep("whit_sampler_close",
        library.open("whit_sampler_open", model.pointer, this.frame.struct("whit_sampler_options", sampler)));
      const stages = this.openForm(model, form ?? ordinaryForm(model, schema, grammar, this));
      const present = session.reuse(ids);
      // The text ends where the context is full; a prompt that does not fit is the library's error.
      const room = Math.max(library.core._whit_session_context_size(session.pointer) - ids.length, 1);
      const options = this.frame.struct("whit_generate_options", {
        n_present: present, n_tokens: Math.min(maxTokens, room), ignore_end: ignoreEnd, keep_special: keepSpecial,
        stop: this.frame.pointers(stop.map((text) => this.frame.text(text)[0])), n_stop: stop.length,
        stages: this.frame.pointers(stages), n_stages: stages.length,
        end_ids: this.frame.ids(endIds), n_end_ids: endIds.length,
      });
      this.handle = this.keep("whit_generation_close", library.open("whit_generation_open", session.pointer, this.sampler,
        this.frame.ids(ids), ids.length, options));
      this.list = this.frame.pointers([this.handle]);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  keep(closer, handle) {
    this.handles.push([closer, handle]);
    return handle;
  }

  /** Stages of a compiled grammar, if there is one. */
  openForm(_model, grammar) {
    if (!grammar) return [];
    const state = this.keep("whit_grammar_state_close", this.library.open("whit_grammar_state_open", grammar));
    const stage = this.frame.allocate(structs.whit_stage.size);
    this.library.core._whit_grammar_stage(stage, state);
    return [stage];
  }

  /** Generates what one step gives; returns its text, and null at the end. */
  step() {
    if (this.library.core._whit_generation_finished(this.handle)) return null;
    this.library.call("whit_generations_step", this.session.pointer, this.list, 1, 0);
    const failed = this.library.core._whit_generation_error(this.handle);
    if (failed) throw this.library.failure(failed);
    const at = this.library.core._whit_generation_text(this.handle, this.library.number);
    return this.library.text(at, this.library.u32(this.library.number));
  }

  get result() {
    const name = "whit_generate_result", at = this.frame.struct(name);
    this.library.core._whit_generation_result(this.handle, at);
    const ms = (field) => this.library.read(name, at, field) / 1e6;
    return {
      finish: finishes[this.library.read(name, at, "finish")],
      promptTokens: this.library.read(name, at, "n_prompt_tokens"),
      tokens: this.library.read(name, at, "n_generated_tokens"),
      promptMs: ms("prompt_ns"),
      generateMs: ms("generate_ns"),
    };
  }

  cancel() {
    this.library.core._whit_generation_cancel(this.handle);
  }

  close() {
    // A closed session has taken the generation's memory with it.
    if (this.handle && this.session.handle) this.cancel();
    for (const [closer, handle] of this.handles.splice(0).reverse())
      if (closer !== "whit_generation_close" || this.session.handle) this.library.core["_" + closer](handle);
    this.handle = 0;
    this.frame.end();
  }
}

/** The grammar of a JSON Schema or of GBNF; 0 without one. */
function ordinaryForm(model, schema, grammar, generation) {
  if (schema === undefined && grammar === undefined) return 0;
  const { library, frame } = generation;
  const vocabulary = generation.keep("whit_grammar_vocabulary_close",
    library.open("whit_grammar_vocabulary_open", model.pointer));
  const text = schema === undefined ? grammar : typeof schema === "string" ? schema : JSON.stringify(schema);
  const opener = schema === undefined ? "whit_grammar_open_gbnf" : "whit_grammar_open_json_schema";
  return generation.keep("whit_grammar_close",
    library.open(opener, vocabulary, frame.text("the grammar")[0], ...frame.text(text)));
}
