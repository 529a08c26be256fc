// SPDX-License-Identifier: MIT
// The package in Node: the same bits as the program, layouts as the library has them, errors, aborts, chats, examples.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync, mkdirSync, symlinkSync, rmSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { pathToFileURL } from "node:url";

const [folder, here, page] = process.argv.slice(2);
const { Model, WhitError } = await import(pathToFileURL(folder + "/index.mjs"));
const { default: createCore } = await import(pathToFileURL(folder + "/whit-core.mjs"));
const { structs } = await import(pathToFileURL(folder + "/abi.mjs"));

// The layouts are the library's.
const core = await createCore({
  wasmBinary: readFileSync(folder + "/whit-core.wasm"), getRandomValue: () => 1,
});
let count = 0;
for (const [name, { size }] of Object.entries(structs)) {
  if (!core[`_${name}_init`]) continue;
  assert.equal(core[`_${name}_init`](0, 0), size, name);
  count++;
}
assert.ok(count >= 12, `only ${count} structs`);

const model = await Model.open("tales");
const ids = readFileSync(here + "/ids.txt", "utf8").trim().split(" ").map(Number);
for (const kv of ["f16", "f32", "i8"])
  for (const act of ["f32", "i8"])
    for (const cpu of ["simd128", "generic"]) {
      const session = await model.session({ kv, act, cpu, logits: ids.length });
      const rows = await session.logits(ids, { every: true });
      const found = Buffer.concat(rows.map((row) => Buffer.from(row.buffer, row.byteOffset, row.byteLength)));
      assert.ok(found.equals(readFileSync(`${here}/logits-${kv}-${act}.f32`)), `logits differ: ${kv}, ${act}, ${cpu}`);
      await session.close();
    }
const sampled = readFileSync(here + "/sampled.txt", "utf8").trim();
const options = { maxTokens: 120, seed: 7 };
assert.equal((await model.generate("Once upon a time", options).text()).trim(), sampled);
assert.equal((await model.generate("Once upon a time", options).text()).trim(), sampled);

// Ids and texts.
const tokens = await model.tokenize("Once upon a time");
assert.equal((await model.detokenize(tokens.slice(1))).trim(), "Once upon a time");
assert.equal((await model.logits("Once upon")).length, model.vocabSize);
const [fox, owl] = await model.embed(["a fox", "an owl"]);
assert.equal(fox.length, model.embeddingSize);
assert.ok(Math.abs(Math.hypot(...fox) - 1) < 1e-5 && fox[0] !== owl[0]);

// A form; a stop string; the end of a stream that is left.
const schema = { type: "object", properties: { n: { type: "integer", minimum: 0, maximum: 9 } }, required: ["n"], additionalProperties: false };
const { n } = JSON.parse(await model.generate("A number:", { schema, maxTokens: 200 }).text());
assert.ok(n >= 0 && n <= 9);
const stopped = model.generate("Once upon a time", { ...options, stop: [sampled.slice(5, 9)] });
assert.equal((await stopped.text()).trim(), sampled.slice(0, 5).trim());
assert.equal((await stopped.result).finish, "stop");
const left = model.generate("Once", { maxTokens: 400, ignoreEnd: true });
for await (const piece of left) {
  assert.ok(piece);
  break;
}
assert.equal((await left.result).finish, "cancelled");
const controller = new AbortController();
await assert.rejects(async () => {
  for await (const _piece of model.generate("Once", { maxTokens: 400, ignoreEnd: true, signal: controller.signal })) controller.abort();
}, { name: "AbortError" });

// Chats, with a tool.
const chat = await model.chat({ system: "Be brief." });
const answer = await chat.ask("A tale of a fox.", { maxTokens: 12, temperature: 0 });
assert.ok(answer.text && answer.finish === "length" && answer.tokens === 12);
let streamed = "";
for await (const piece of chat.stream("And an owl?", { maxTokens: 12 })) streamed += piece;
const messages = await chat.messages();
assert.deepEqual(messages.map(({ role }) => role), ["system", "user", "assistant", "user", "assistant"]);
assert.equal(messages.at(-1).content, streamed);
for (let turn = 0; turn < 40; turn++) await chat.ask("Go on.", { maxTokens: 30, temperature: 0 }); // beyond the context
await chat.close();
const calls = await model.chat({ tools: { add: { function: ({ a, b }) => a + b, description: "Adds.", parameters: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } } } } });
assert.equal(typeof (await calls.ask("Add 1 and 2.", { maxTokens: 40 })).text, "string");

// Errors are the library's lines.
await assert.rejects(model.session({ kv: "f8" }), /not one of f16/);
await assert.rejects(model.generate("a", { heat: 1 }).text(), /'heat' is no option/);
await assert.rejects(model.generate("a ".repeat(600)).text(), (error) => error instanceof WhitError && error.status === "limit");
await assert.rejects(Model.open(new Uint8Array([1, 2, 3]), { name: "three" }), (error) => error instanceof WhitError && error.message.includes("three"));
await assert.rejects(Model.open(here + "/no-such-file.ndf"), /no-such-file/);
const damaged = readFileSync(folder + "/tales.ndf");
damaged.fill(255, 100, 4000);
await assert.rejects(Model.open(damaged, { name: "damaged.ndf" }), (error) => error instanceof WhitError && error.message.includes("damaged.ndf"));
await assert.rejects(Model.open("http://127.0.0.1:9/model.ndf"), /cannot be fetched/);

// From a file and from bytes the model is the same.
const again = await Model.open(folder + "/tales.ndf");
assert.equal(again.identity, model.identity);
again.close();
const bytes = await Model.open(readFileSync(folder + "/tales.ndf"));
assert.equal(bytes.identity, model.identity);
bytes.close();
model.close();

// The examples of the page are run, as a program that has the package.
rmSync(here + "/program", { recursive: true, force: true });
mkdirSync(here + "/program/node_modules", { recursive: true });
symlinkSync(folder, here + "/program/node_modules/whit");
const examples = [...readFileSync(page, "utf8").matchAll(/```js\n(.*?)```/gs)].map(([, text]) => text);
assert.ok(examples.length >= 2);
examples.forEach((text, i) => {
  writeFileSync(`${here}/program/example${i}.mjs`, text);
  execFileSync(process.execPath, [`example${i}.mjs`], { cwd: here + "/program", stdio: ["ignore", "ignore", "inherit"], timeout: 60000 });
});
