/* SPDX-License-Identifier: MIT
 * Handles the field for a message: its draft, and the text files that are sent with it. */

const FILE_BYTES_MAX = 4 << 20, LONG_PASTE = 2000; // a longer paste (characters) becomes a file
const drafts = readStored(tabStorage, "whit.drafts"); // conversation id -> {text, files}
let attached = []; // {name, text}

const fileSize = text => text.length < 1000 ? text.length + " characters" : Math.round(text.length / 1000) + "k characters";

function keepDraft() {
  if (!current) return;
  const text = $("input").value;
  if (text || attached.length) drafts[current.id] = {text, files: attached};
  else delete drafts[current.id];
  try { tabStorage.setItem("whit.drafts", JSON.stringify(drafts)) } catch { /* a large draft stays in the field */ }
}

function showDraft() {
  const draft = drafts[current.id] || {text: "", files: []};
  $("input").value = textOr(draft.text);
  attached = readMessage({files: draft.files}, "").files;
  showAttached();
  growField();
}

function growField() {
  const t = $("input");
  t.style.height = "auto";
  t.style.height = t.scrollHeight + 2 + "px";
}

function showAttached() {
  $("files").replaceChildren(...attached.map((f, i) => {
    const chip = make("li", f.name + ", " + fileSize(f.text));
    addButton(chip, "×", () => { attached.splice(i, 1); showAttached(); keepDraft() }, {"aria-label": "Remove " + f.name});
    return chip;
  }));
}

/* Lists files that are not text, by their first bytes, and what a person can do with them. */
const BINARIES = [
  {name: "a PDF", begin: /^%PDF-/, remedy: "'pdftotext -layout FILE.pdf' writes its text to FILE.txt: attach that."},
  {name: "a picture", begin: /^(\x89PNG|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP|BM....\0\0\0\0)/s, remedy: "the models here read text alone."},
  {name: "an office document or an archive", begin: /^PK\x03\x04/, remedy: "save it as text, or convert it ('pandoc -t plain'), and attach that."},
  {name: "compressed", begin: /^(\x1f\x8b|BZh[1-9]1AY&SY|\xfd7zXZ|\x28\xb5\x2f\xfd)/, remedy: "attach what is in it."},
  {name: "text in UTF-16", begin: /^(\xff\xfe|\xfe\xff)/, remedy: "save it as UTF-8."},
];

/* Returns the text of a file; throws an error that says why the file cannot be attached. */
async function readTextFile(file) {
  const begin = String.fromCharCode(...new Uint8Array(await file.slice(0, 16).arrayBuffer()));
  const binary = BINARIES.find(b => b.begin.test(begin));
  if (binary) throw new Error(`${file.name} is ${binary.name}: ${binary.remedy}`);
  if (file.size > FILE_BYTES_MAX) throw new Error(`${file.name} has over ${FILE_BYTES_MAX >> 20} MiB: attach a part of it.`);
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", {fatal: true}).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch { /* the bytes are not UTF-8 */ }
  throw new Error(`${file.name} is not text: only text files (UTF-8) can be read.`);
}

async function attachFiles(files) {
  for (const file of files) {
    try { attached.push({name: file.name, text: await readTextFile(file)}) }
    catch (e) { report(e.message) }
  }
  showAttached();
  keepDraft();
}

function pasteInto(e) {
  const files = [...e.clipboardData.files], text = e.clipboardData.getData("text/plain");
  if (files.length && !text) attachFiles(files);
  else if (text.length > LONG_PASTE) {
    attached.push({name: "pasted text" + (attached.length ? " " + (attached.length + 1) : ""), text});
    showAttached();
    keepDraft();
  } else return;
  e.preventDefault();
}

function submitField() {
  const content = $("input").value, files = attached;
  if (answers.has(current.id) || !(content.trim() || files.length)) return;
  $("input").value = "";
  attached = [];
  showAttached();
  growField();
  keepDraft();
  sendMessage(current, content, files);
}
