/* SPDX-License-Identifier: MIT
 * Starts the page: its controls, its keys, and the changes that other tabs make. */

function showMenu(shown) {
  $("side").classList.toggle("shown", shown);
  $("menu").setAttribute("aria-expanded", shown);
}

function showAll() {
  showList();
  showMessages();
}

function openNew() {
  openConversation(newConversation());
  $("input").focus();
}

/* Opens the next conversation of the list, above (-1) or below (1). */
function openBeside(step) {
  const list = shownConversations(), at = list.findIndex(c => c.id === current.id);
  const next = list[at < 0 ? 0 : at + step];
  if (next) openConversation(next);
}

const hasModifier = e => e.ctrlKey || e.metaKey; // the Command key, on keyboards that have it

/* Lists the keys: [keys as they are shown, their effect, test of the event, action]. */
const SHORTCUTS = [
  ["Enter", "send the message"],
  ["Shift+Enter", "begin a line"],
  ["Esc", "stop the answer", e => e.key === "Escape", () => { stopAnswer(current); showMenu(false) }],
  ["↑ in an empty field", "edit the last message", null, null],
  ["Ctrl+K", "search the conversations", e => hasModifier(e) && e.key === "k", () => { showMenu(true); $("search").select() }],
  ["Ctrl+Shift+O", "new conversation", e => hasModifier(e) && e.shiftKey && e.code === "KeyO", openNew],
  ["Alt+↑, Alt+↓", "conversation above, below", e => e.altKey && /^Arrow(Up|Down)$/.test(e.key), e => openBeside(e.key === "ArrowUp" ? -1 : 1)],
  ["F2", "rename the conversation, or choose its folder", e => e.key === "F2", () => {
    const row = [...$("list").children].find(li => li.conversation && li.conversation.id === current.id);
    if (row) { showMenu(true); renameConversation(row, row.conversation) }
  }],
  ["Ctrl+,", "settings", e => hasModifier(e) && e.key === ",", showSettings],
  ["Ctrl+/", "these keys", e => hasModifier(e) && e.key === "/", () => $("keys-dialog").showModal()],
];

function onKey(e) {
  if (document.querySelector("dialog[open]")) return;
  const found = SHORTCUTS.find(s => s[2] && s[2](e));
  if (!found) return;
  if (e.key !== "Escape") e.preventDefault();
  found[3](e);
}

function onInputKey(e) {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); $("form").requestSubmit() }
  if (e.key !== "ArrowUp" || e.altKey || $("input").value) return;
  const last = [...$("log").children].findLast(a => a.message && a.message.role === "user");
  if (last) { e.preventDefault(); editMessage(last, last.message) }
}

function connectControls() {
  $("model").onchange = async () => {
    setGlobal("model", $("model").value);
    await loadProperties().catch(() => {});
    showMessages();
  };
  $("menu").onclick = e => { e.stopPropagation(); showMenu(!$("side").classList.contains("shown")) };
  document.querySelector("main").addEventListener("click", () => showMenu(false));
  $("new").onclick = openNew;
  $("search").oninput = showList;
  $("search").onkeydown = e => { if (e.key === "Escape") { $("search").value = ""; showList(); $("input").focus() } };
  $("stop").onclick = () => stopAnswer(current);
  $("export").onclick = exportConversations;
  $("import").onclick = () => $("file").click();
  $("file").onchange = async () => { await importConversations($("file").files[0]); $("file").value = "" };
  $("keys").onclick = () => $("keys-dialog").showModal();
  $("keys-close").onclick = () => $("keys-dialog").close();
  for (const dialog of document.querySelectorAll("dialog"))
    dialog.onclick = e => { if (e.target === dialog) dialog.close() }; // a click outside the dialog closes it
  $("keys-list").replaceChildren(...SHORTCUTS.flatMap(s => [make("dt", s[0]), make("dd", s[1])]));
  $("attach").onclick = () => $("attachment").click();
  $("attachment").onchange = async () => { await attachFiles([...$("attachment").files]); $("attachment").value = "" };
  $("form").onsubmit = e => { e.preventDefault(); submitField() };
  $("input").oninput = () => { growField(); keepDraft() };
  $("input").onkeydown = onInputKey;
  $("input").addEventListener("paste", pasteInto);
  document.addEventListener("keydown", onKey);
  document.addEventListener("dragover", e => { if (e.dataTransfer.types.includes("Files")) e.preventDefault() });
  document.addEventListener("drop", e => {
    if (!e.dataTransfer.files.length) return;
    e.preventDefault();
    attachFiles([...e.dataTransfer.files]);
  });
}

/* Shows the changes of another tab, and leaves the rest of the page as it is. */
function onOtherTab(records, dropped) {
  if (current.deleted || dropped === current.id) return openConversation(listedConversations()[0] || readConversation({}));
  if (dropped || records.some(r => r.kind === "conversation")) showList();
  const here = records.filter(r => (r.kind === "message" ? r.conversation : r.id) === current.id);
  const grown = r => r.state === "writing" && articleOf(library.messages.get(current.id).get(r.id));
  if (here.length && here.every(grown)) here.forEach(r => drawLater(library.messages.get(current.id).get(r.id)));
  else if (here.length || hasUnfinished()) showMessages();
}

/* Returns whether an answer of another tab is among the messages that are shown. */
const hasUnfinished = () => !answers.has(current.id) && shownPath(current).some(p => p.message.state === "writing");

async function startPage() {
  openSettings();
  connectControls();
  await openStore();
  onStoreChange = onOtherTab;
  const open = library.conversations.get(tabStorage.getItem("whit.open")), list = listedConversations();
  openConversation(open && !open.deleted ? open : list[0] || readConversation({id: tabStorage.getItem("whit.open")}));
  setInterval(() => { if (hasUnfinished()) showMessages() }, TELL_MS);
  await loadModels();
}
startPage();
