// SPDX-License-Identifier: MIT
// What tests/everywhere.py compares, of the WebAssembly module: hashes of the logits of some tokens with every kind of
// cache, and of a sampled text.
//
//     node hashes.mjs LEVEL "ID ID..."     in the source's folder, after `make npm`
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [cpu, list] = process.argv.slice(2);
const ids = list.split(" ").map(Number);
const hash = (data) => createHash("sha256").update(data).digest("hex").slice(0, 12);
const folder = mkdtempSync(join(tmpdir(), "whit-hashes-"));
try {
  execFileSync("bindings/js/make_npm.py", ["build-wasm", "--package", folder]);
  const { Model } = await import(pathToFileURL(join(folder, "package", "index.mjs")));
  const model = await Model.open("tales");
  const parts = [];
  for (const kv of ["f16", "f32", "i8"])
    for (const act of ["f32", "i8"]) {
      const session = await model.session({ kv, act, cpu, logits: ids.length });
      for (const row of await session.logits(ids, { every: true })) parts.push(Buffer.from(row.buffer, row.byteOffset, row.byteLength));
      await session.close();
    }
  const text = await model.generate("Once upon a time", { maxTokens: 120, seed: 7 }).text();
  console.log(hash(Buffer.concat(parts)), hash(text.trim()));
  await model.close?.();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
