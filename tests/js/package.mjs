// SPDX-License-Identifier: MIT
// Types beside classes; requests, streams, aborts and failures over a worker that is only pretended.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const whit = await import(pathToFileURL(folder + "/index.mjs"));
const { structs } = await import(pathToFileURL(folder + "/abi.mjs"));

/** Classes of index.d.ts with the names of their members. */
function declared() {
  const text = readFileSync(folder + "/index.d.ts", "utf8"), found = new Map();
  for (const [, name, body] of text.matchAll(/^export class (\w+)[^{]*\{\n(.*?)^\}/gms))
    found.set(name, new Set([...body.matchAll(/^  (?:static |readonly )*(\w+)[(<:]/gm)].map(([, member]) => member)));
  const functions = [...text.matchAll(/^export function (\w+)/gm)].map(([, name]) => name);
  return [found, functions];
}

const [classes, functions] = declared();
for (const name of functions) assert.equal(typeof whit[name], "function", name);
for (const name of Object.keys(whit)) assert.ok(classes.has(name) || functions.includes(name), `${name} has no type`);
const facts = ["result", "vocabSize", "contextSize", "embeddingSize", "identity", "architecture", "hasChat"];
for (const name of ["Model", "Session", "Chat", "Stream"]) {
  const { prototype } = whit[name];
  for (const member of classes.get(name))
    assert.ok(member === "open" || facts.includes(member) || typeof prototype[member] === "function", `${name}.${member}`);
}

// Members are in order and inside their structs.
for (const [name, { size, fields }] of Object.entries(structs)) {
  let last = -1;
  for (const [field, [offset]] of Object.entries(fields)) {
    assert.ok(offset > last && offset < size, `${name}.${field}`);
    last = offset;
  }
}
assert.deepEqual(structs.whit_stage.fields.accept, [12, "u32"]);
assert.equal(structs.whit_generate_result.size, 40); // 64-bit members are aligned to eight bytes

const posted = [];
let answer;
whit.setHost({
  startWorker(onMessage) {
    return { post: (message) => (posted.push(message), answer?.(message, onMessage)), busy: () => {}, end: () => {} };
  },
  isFile: () => false, wasm: "w", tales: new Uint8Array(4),
});
const opened = { vocabSize: 7, contextSize: 8, embeddingSize: 2, identity: "ab", architecture: "llama", hasChat: true };
const replies = { open: opened, session: 1, tokenize: Int32Array.of(1, 2) };
answer = ({ id, method, abort }, reply) => {
  if (abort !== undefined) queueMicrotask(() => reply({ id: abort, value: { finish: "cancelled" } }));
  else if (method === "generate") {
    reply({ id, pieces: ["a", "b"] });
    reply({ id, pieces: ["c"] });
  } else if (method === "metadata") reply({ id, failure: { message: "no such key", status: "argument" } });
  else queueMicrotask(() => reply({ id, value: replies[method] }));
};
const model = await whit.Model.open("tales");
assert.equal(model.vocabSize, 7);
assert.deepEqual([...(await model.tokenize("a"))], [1, 2]);
await assert.rejects(model.metadata("k"), (error) => error instanceof whit.WhitError && error.message === "no such key" && error.status === "argument");

// A stream that is left early tells the worker so.
let text = "";
for await (const piece of model.generate("x")) {
  text += piece;
  if (text === "abc") break;
}
assert.equal(text, "abc");
assert.ok(posted.some((message) => message.abort !== undefined), "an abandoned stream goes on");

// A signal ends it, and the reader gets the signal's reason.
const controller = new AbortController();
await assert.rejects(async () => {
  for await (const _piece of model.generate("x", { signal: controller.signal })) controller.abort();
}, { name: "AbortError" });
await assert.rejects(() => model.generate("x", { signal: AbortSignal.abort() }).text(), { name: "AbortError" });

// What waits when a model is closed fails, and so does what comes after.
answer = undefined;
const waiting = model.tokenize("never");
model.close();
await assert.rejects(waiting, /ended/);
await assert.rejects(model.tokenize("later"), /closed/);
await assert.rejects(whit.Model.open(5), /a model is/);
