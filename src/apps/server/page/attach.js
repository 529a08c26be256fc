/* SPDX-License-Identifier: MIT
 * The field for a message: its draft, and text files that go along with it. */

const FILE_BYTES_MAX = 4 << 20, LONG_PASTE = 2000; // a longer paste (characters) becomes a file
const drafts = readStored(tabStorage, "whit.drafts"); // conversation id -> {text, files}
let attached = []; // {name, text}

const fileSize = text => text.length < 1000 ? text.length + " characters" : Math.round(text.length / 1000) + "k characters";

function keepDraft() {
  if (!current) return;
  const text = $("input").value;
  if (text || attached.length) drafts[current.id] = {text, files: attached};
  else delete drafts[current.id];
  try { tabStorage.setItem("whit.drafts", JSON.stringify(drafts)) } catch { /* too large: the field has it still */ }
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

/* Attaches files whose bytes are text in UTF-8; says why where they are not. */
async function attachFiles(files) {
  for (const file of files) {
    if (file.size > FILE_BYTES_MAX) { report(`${file.name} has over ${FILE_BYTES_MAX >> 20} MiB: attach a part of it.`); continue }
    try {
      const text = new TextDecoder("utf-8", {fatal: true}).decode(await file.arrayBuffer());
      if (text.includes("\0")) throw new Error();
      attached.push({name: file.name, text});
    } catch { report(`${file.name} is not text: only text files can be read.`) }
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
