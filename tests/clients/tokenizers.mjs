// SPDX-License-Identifier: MIT
// Ids of 1,000 texts each by `whit tokenize` and by a published library, for every tokenizer.json of the shared data.
// The shared cases come from the format's reference implementation. A tokenizer for which the library departs from them
// is compared and its number printed, but does not fail. WHIT is the program, SHARED the folder of test data.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";

const N_TEXTS = 1000, PIECES_MAX = 12;
const { WHIT, SHARED } = process.env;
// A departure that no shared case shows: the library takes a run of spaces as one piece, as in metaspace-always.json.
const DEPARTS = "components/unigram.json";

let state = 20261129n;
function below(n) { // Steele's SplitMix64
  state = (state + 0x9E3779B97F4A7C15n) & 0xFFFFFFFFFFFFFFFFn;
  let z = state;
  z = ((z ^ (z >> 30n)) * 0xBF58476D1CE4E5B9n) & 0xFFFFFFFFFFFFFFFFn;
  z = ((z ^ (z >> 27n)) * 0x94D049BB133111EBn) & 0xFFFFFFFFFFFFFFFFn;
  return Number((z ^ (z >> 31n)) % BigInt(n));
}

const pieces = [
  "the", " house", "The", "HOUSE", "don't", "we'll", " I'm", "it's", "naïve", " café", "Straße", "Größe", "día",
  "привет", " мир", "Здравствуйте", "שלום", "مرحبا", "नमस्ते", "สวัสดี", "你好", "世界", "こんにちは", "カタカナ", "안녕",
  "e\u0301", "n\u0303", "\u212B", "ﬁ", "①", "½", "Ⅷ", "😀", "👩‍👩‍👧", "🇨🇭", "👍🏽", "\u200D", "\u00AD", "\u00A0",
  "0", "7", "42", "2026", "1234567", "3.14", "1,000", "0xFF", "1e-9", " 12 345", "٣٤", "१२",
  " ", "  ", "   ", "       ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n", "\u3000", "\u2003",
  ".", ",", "!", "?!", "...", "—", "«", "»", "'", "''", "\"", "`", "```", "(", ")", "[]", "{}", "<", ">", "</s>", "&&",
  "==", "!=", "->", "::", "/*", "*/", "//", "#", "@", "$", "%", "^", "~", "\\", "|", "_", "__init__", "snake_case",
  "camelCase", "int main(void)", "def f(x):\n    return x", "SELECT * FROM t;", "https://a.b/c?d=e&f#g", "a@b.org",
  "supercalifragilisticexpialidocious", "aaaaaaaaaaaaaaaaaaaa", "ΑΒΓ", "ςσ", "İi", "ǅ", "\u0000", "\u0007", "\u007F",
];
function text() {
  let all = "";
  for (let n = 1 + below(PIECES_MAX); n > 0; n--) {
    const way = below(10);
    if (way < 7) all += pieces[below(pieces.length)];
    else if (way < 8) all += " ";
    else if (way < 9) all += String.fromCharCode(97 + below(26), 97 + below(26), 97 + below(26));
    else {
      let point = below(0x3000);
      if (below(4) === 0) point = below(0x10000); // planes above have letters that older versions of Unicode lack
      if (point >= 0xD800 && point < 0xE000) point = 0x41;
      all += String.fromCodePoint(point);
    }
  }
  return all;
}

// The tokenizers: folders, and single files of components.
const root = `${SHARED}/tokenizers`;
const found = [];
for (const name of readdirSync(root).sort())
  if (existsSync(`${root}/${name}/tokenizer.json`)) found.push([name, `${root}/${name}/tokenizer.json`]);
for (const name of readdirSync(`${root}/components`).sort())
  if (name.endsWith(".json")) found.push([`components/${name}`, `${root}/components/${name}`]);

// Whether the library finds the ids of a text; a text that it refuses has none.
function idsOf(tokenizer, text, options) {
  try {
    return JSON.stringify(tokenizer.encode(text, options).ids);
  } catch {
    return null;
  }
}

const componentCases = linesOf(`${root}/components/cases.jsonl`);
function linesOf(path) {
  return readFileSync(path, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

// How many of the reference's cases with special tokens as usual the library has wrong.
function departures(tokenizer, name, path) {
  const [, file] = name.split("/");
  const cases = file ? componentCases.filter((c) => c.tokenizer === file)
    : linesOf(path.replace("tokenizer.json", "cases.jsonl"));
  return cases.filter((c) => c.parse_special !== false &&
    idsOf(tokenizer, c.text, { add_special_tokens: c.add_special }) !== JSON.stringify(c.ids)).length;
}

let failures = 0;
for (const [name, path] of found) {
  const theirs = new Tokenizer(JSON.parse(readFileSync(path, "utf8")), {});
  const texts = Array.from({ length: N_TEXTS }, text);
  const input = texts.map((t) => JSON.stringify({ text: t }) + "\n").join("");
  const done = spawnSync(WHIT, ["tokenize", "--tokenizer", path, "--jsonl"], { input, maxBuffer: 1 << 28 });
  const lines = done.stdout.toString().split("\n").filter(Boolean);
  const different = texts.map((t, i) => [t, JSON.stringify(JSON.parse(lines[i] ?? "{}").ids), idsOf(theirs, t)])
    .filter(([, ours, expected]) => ours !== expected);
  const wrong = departures(theirs, name, path);
  const ok = lines.length === N_TEXTS && (different.length === 0 || wrong > 0 || name === DEPARTS);
  failures += !ok;
  const why = wrong ? `; the library has ${wrong} of the reference's cases wrong` : "";
  console.log(`${ok ? "ok" : "FAILED"} ${name}: ${different.length} of ${N_TEXTS} texts differ${why}`);
  if (!ok) console.log(different[0], done.stderr.toString().slice(0, 300));
}
process.exit(failures ? 1 : 0);
