/* SPDX-License-Identifier: MIT
 * The list of conversations: search, rename, delete with undo, export and import. */

function newConversation() {
  const empty = listedConversations().find(c => !library.messages.get(c.id)?.size);
  return empty || (current && !library.conversations.has(current.id) ? current : readConversation({}));
}

function openConversation(c, messageId) {
  keepDraft();
  isEditing = false;
  current = c;
  if (messageId) revealMessage(c, messagesOf(c.id), messageId);
  tabStorage.setItem("whit.open", c.id);
  if (models.some(m => m.id === c.model && !m.is_adapter)) $("model").value = c.model;
  showMenu(false);
  showDraft();
  showList();
  showMessages(true);
  const found = messageId && [...$("log").children].find(e => e.message && e.message.id === messageId);
  if (found) found.scrollIntoView();
}

function showList() {
  const query = $("search").value.trim(), rows = [];
  document.title = current.title ? current.title + " - whit" : "whit";
  for (const c of listedConversations()) {
    const messages = query ? [...messagesOf(c.id)] : [];
    const found = query ? findWords(query, c.title, messages) : {excerpt: "", message: ""};
    if (found) rows.push(listRow(c, found));
  }
  if (!rows.length && query) rows.push(make("li", "Nothing is found", {class: "nothing"}));
  if (!$("list").querySelector("input")) $("list").replaceChildren(...rows);
}

function listRow(c, found) {
  const li = make("li"), name = c.title || "New conversation", open = make("button", name, {class: "open", title: name});
  if (found.excerpt) open.append(make("small", found.excerpt));
  if (answers.has(c.id)) open.prepend(make("span", "● ", {class: "busy", "aria-label": "answering"}));
  if (c.id === current.id) open.setAttribute("aria-current", "true");
  open.onclick = () => { openConversation(c, found.message); $("input").focus() };
  open.ondblclick = () => renameConversation(li, c);
  li.append(open);
  addButton(li, "✎", () => renameConversation(li, c), {class: "act", "aria-label": "Rename " + name, title: "Rename (F2)"});
  addButton(li, "×", () => deleteConversation(c), {class: "act", "aria-label": "Delete " + name, title: "Delete"});
  li.conversation = c;
  return li;
}

function renameConversation(li, c) {
  const field = make("input", null, {"aria-label": "Name of the conversation"});
  let done = false;
  const end = keep => {
    if (done) return;
    done = true;
    if (keep && field.value.trim()) { c.title = field.value.trim(); saveRecord(c) }
    li.replaceChildren();
    showList();
  };
  field.value = c.title;
  field.onkeydown = e => {
    e.stopPropagation();
    if (e.key === "Enter" && !e.isComposing) end(true);
    if (e.key === "Escape") end(false);
  };
  field.onblur = () => end(true);
  li.replaceChildren(field);
  field.select();
}

/* A deleted conversation is only marked until nobody has asked for it back. */
function deleteConversation(c) {
  const next = listedConversations().find(o => o.id !== c.id);
  stopAnswer(c);
  c.deleted = Date.now();
  saveRecord(c);
  const drop = setTimeout(() => { if (c.deleted) dropConversation(c.id) }, 10000);
  report("“" + (c.title || "New conversation").slice(0, 40) + "” is deleted.", "Undo", () => {
    clearTimeout(drop);
    c.deleted = 0;
    saveRecord(c);
    openConversation(c);
  });
  if (c.id === current.id) openConversation(next || readConversation({}));
  else showList();
}

/* ---- files --------------------------------------------------------------------------------------- */

function exportConversations() {
  const text = JSON.stringify(exportRecords(listedConversations(), messagesOf), null, 1);
  const url = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  make("a", null, {href: url, download: "whit-conversations.json"}).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

async function importConversations(file) {
  try {
    const records = readExport(JSON.parse(await file.text())), first = records.find(r => r.kind === "conversation");
    if (!first) throw new Error("no conversations are in it");
    for (const r of records) saveRecord(r, true);
    flushRecords();
    openConversation(library.conversations.get(first.id));
    report(records.filter(r => r.kind === "conversation").length + " imported");
  } catch (e) { report("The file could not be imported: " + e.message) }
}
