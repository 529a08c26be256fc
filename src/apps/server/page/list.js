/* SPDX-License-Identifier: MIT
 * Shows the list of conversations: search, rename, folders, delete with undo, export and import. */

const CLOSED_FOLDERS = "whit.closed-folders"; // name -> true, of all tabs
let closedFolders = readStored(browserStorage, CLOSED_FOLDERS);
const fullName = c => (c.folder ? c.folder + " / " : "") + (c.title || "New conversation");

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

/* Returns the conversations that the list shows, from top to bottom. */
const shownConversations = () => [...$("list").children].map(li => li.conversation).filter(Boolean);

/* Shows the list. Folders come first, sorted by name; a search shows the conversations that it finds without
 * folders. */
function showList() {
  const query = $("search").value.trim(), rows = [], folders = new Map();
  document.title = current.title ? current.title + " - whit" : "whit";
  for (const c of listedConversations()) {
    const messages = query ? [...messagesOf(c.id)] : [];
    const found = query ? findWords(query, fullName(c), messages) : {excerpt: "", message: ""};
    if (found && c.folder && !query) folders.set(c.folder, [...folders.get(c.folder) || [], c]);
    else if (found) rows.push(listRow(c, found, query ? fullName(c) : c.title));
  }
  if (!rows.length && query) rows.push(make("li", "Nothing is found", {class: "nothing"}));
  const names = [...folders.keys()].sort((a, b) => a.localeCompare(b));
  if (!$("list").querySelector("input"))
    $("list").replaceChildren(...names.flatMap(name => folderRows(name, folders.get(name))), ...rows);
}

/* Returns the rows of a folder and of its conversations; a closed folder shows only the conversation that is open. */
function folderRows(name, conversations) {
  const isOpen = closedFolders[name] !== true, head = make("li", null, {class: "folder"});
  addButton(head, (isOpen ? "▾ " : "▸ ") + name, () => {
    if (isOpen) closedFolders[name] = true;
    else delete closedFolders[name];
    try { browserStorage.setItem(CLOSED_FOLDERS, JSON.stringify(closedFolders)) } catch { /* only this page has it */ }
    showList();
  }, {"aria-expanded": String(isOpen), title: conversations.length + " in " + name});
  const rows = conversations.filter(c => isOpen || c.id === current.id)
    .map(c => listRow(c, {excerpt: "", message: ""}, c.title));
  for (const row of rows) row.classList.add("inside");
  return [head, ...rows];
}

/* Follows another tab that has closed or opened a folder. */
window.addEventListener("storage", e => {
  if (e.key !== CLOSED_FOLDERS) return;
  closedFolders = readStored(browserStorage, CLOSED_FOLDERS);
  showList();
});

function listRow(c, found, title) {
  const li = make("li"), name = title || "New conversation", open = make("button", name, {class: "open", title: name});
  if (found.excerpt) open.append(make("small", found.excerpt));
  if (answers.has(c.id)) open.prepend(make("span", "● ", {class: "busy", "aria-label": "answering"}));
  if (c.id === current.id) open.setAttribute("aria-current", "true");
  open.onclick = () => { openConversation(c, found.message); $("input").focus() };
  open.ondblclick = () => renameConversation(li, c);
  li.append(open);
  addButton(li, "✎", () => renameConversation(li, c), {class: "act", "aria-label": "Rename " + name, title: "Rename, or choose a folder (F2)"});
  addButton(li, "×", () => deleteConversation(c), {class: "act", "aria-label": "Delete " + name, title: "Delete"});
  li.conversation = c;
  return li;
}

/* Puts fields for name and folder into the row. Enter, or leaving both fields, keeps them; Esc does not. */
function renameConversation(li, c) {
  const known = [...new Set(listedConversations().map(o => o.folder).filter(Boolean))].sort();
  const name = make("input", null, {"aria-label": "Name of the conversation"});
  const folder = make("input", null, {"aria-label": "Folder", placeholder: "Folder", list: "folders", maxlength: 60});
  const choices = make("datalist", null, {id: "folders"});
  let done = false;
  const end = keep => {
    if (done) return;
    done = true;
    if (keep) {
      c.title = name.value.trim() || c.title;
      c.folder = folder.value.trim();
      saveRecord(c);
    }
    li.replaceChildren();
    showList();
  };
  name.value = c.title;
  folder.value = c.folder;
  choices.append(...known.map(f => make("option", null, {value: f})));
  for (const field of [name, folder]) {
    field.onkeydown = e => {
      e.stopPropagation();
      if (e.key === "Enter" && !e.isComposing) end(true);
      if (e.key === "Escape") end(false);
    };
    field.onblur = e => { if (!e || !li.contains(e.relatedTarget)) end(true) };
  }
  li.replaceChildren(name, folder, choices);
  name.select();
}

/* Deletes a conversation. For ten seconds it is only marked as deleted, so that the person can undo it. */
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
    const found = readExport(JSON.parse(await file.text()));
    const records = joinImport(found, library.conversations, messagesOf), first = records.find(r => r.kind === "conversation");
    if (!first) throw new Error("no conversations are in it");
    for (const r of records) saveRecord(r, true);
    flushRecords();
    openConversation(library.conversations.get(first.id));
    report(records.filter(r => r.kind === "conversation").length + " imported");
  } catch (e) { report("The file could not be imported: " + e.message) }
}
