/* SPDX-License-Identifier: MIT
 * Shows a conversation: its messages, their tools and branches. */

let current = null; // the conversation that this tab shows
let isEditing = false; // a message is being edited, and redrawing would lose the typed text
const folds = new Map(); // summary -> element above the messages; kept, so that it stays open

const isNearEnd = () => $("log").scrollHeight - $("log").scrollTop - $("log").clientHeight < 60;
const articleOf = message => [...$("log").children].find(e => e.message === message);

/* Shows a conversation again if it is the one that is shown; other conversations only change in the list. */
function showConversation(id) {
  showList();
  if (id === current.id) showMessages();
}

function showMessages(toEnd) {
  if (isEditing) return;
  const stay = !toEnd && !isNearEnd() && $("log").childElementCount > 0, top = $("log").scrollTop;
  const path = shownPath(current), last = path.findLast(p => p.message.role === "assistant");
  const firstKept = last ? last.message.firstKept : "";
  const wanted = path.length ? [] : [welcome()];
  if (current.format === "schema") wanted.unshift(showFold("Schema of answers", current.schema));
  if (current.system) wanted.unshift(showFold("System prompt", current.system));
  path.forEach(({message, siblings}, i) => {
    if (firstKept && message.id === firstKept) wanted.push(leftOutLine(i));
    wanted.push(messageArticle(message, siblings, i === path.length - 1));
  });
  placeChildren($("log"), wanted);
  const running = answers.has(current.id), n_ctx = contextTokens();
  $("send").hidden = running;
  $("stop").hidden = !running;
  $("used").textContent = n_ctx ? current.used + " / " + n_ctx : "";
  $("context").value = n_ctx ? Math.min(1, current.used / n_ctx) : 0;
  $("log").scrollTop = stay ? top : $("log").scrollHeight;
}

/* Returns the element of a message. An element that shows it already is kept, and filled again if the message
 * changed. */
function messageArticle(m, siblings, isLast) {
  const {content, thinking, error, note, state} = m, live = isLive(m);
  const shown = JSON.stringify([content.length, thinking.length, error, note, state, live, isLast, siblings.map(s => s.id)]);
  let e = articleOf(m);
  if (e && e.shown === shown) return e;
  if (!e) e = make("article", null, {class: "message " + m.role, "aria-label": m.role === "user" ? "You" : "Answer"});
  e.message = m;
  e.shown = shown;
  fillMessage(e, m);
  if (!live) addTools(e, m, siblings, isLast);
  return e;
}

/* Shows a text of a conversation's settings, which an import may have brought: the model reads a system prompt before
 * the messages, and a schema may have the words that it is made to answer. */
function showFold(summary, text) {
  const present = folds.get(summary);
  if (present?.text === text) return present;
  const fold = make("details", null, {class: "thinking"});
  fold.text = text;
  fold.append(make("summary", summary), make("div", markHidden(text)));
  folds.set(summary, fold);
  return fold;
}

function leftOutLine(n) {
  const tokens = contextTokens();
  return make("p", `The context${tokens ? " of " + tokens + " tokens" : ""} is full: the model no longer sees the ` +
    (n === 1 ? "message" : n + " messages") + " above.", {class: "divider", role: "note"});
}

function fillMessage(element, m) {
  const live = isLive(m), parts = [];
  let body = element.querySelector(":scope > .text");
  if (m.thinking) {
    const fold = make("details", null, {class: "thinking"}), before = element.querySelector("details");
    fold.open = !!before && before.open;
    fold.append(make("summary", live && !m.content ? "Thinking…" : "Thinking"), make("div", markHidden(m.thinking)));
    parts.push(fold);
  }
  for (const f of m.files) {
    const fold = make("details", null, {class: "file"});
    fold.append(make("summary", markHidden(f.name) + ", " + fileSize(f.text)), make("pre", markHidden(f.text)));
    parts.push(fold);
  }
  if (!body) body = make("div", null, {class: "text"});
  if (m.role === "user") body.textContent = markHidden(m.content);
  else if (live && !m.content) body.textContent = m.thinking ? "" : "…";
  else showMarkdown(body, markHidden(m.content));
  if (m.role === "assistant" || m.content) parts.push(body);
  if (m.error) parts.push(make("p", m.error, {class: "error", role: "alert"}));
  placeChildren(element, parts);
}

let toDraw = null;
/* Draws a growing answer with the next frame. */
function drawLater(message) {
  if (message.conversation !== current.id || toDraw) return;
  toDraw = message;
  requestAnimationFrame(() => {
    const element = articleOf(toDraw), low = isNearEnd();
    if (element && isLive(toDraw)) fillMessage(element, toDraw);
    toDraw = null;
    if (low) $("log").scrollTop = $("log").scrollHeight;
  });
}

function welcome() {
  const e = make("div", null, {class: "empty"}), row = make("div", null, {class: "pair"});
  e.append(make("strong", "Write a message to begin"), make("span", "It is answered by this server. Conversations stay in this browser."));
  if (properties[currentModel().id]?.chat === false)
    e.append(make("span", "This model has no chat template: it continues texts at /v1/completions and cannot answer here.", {class: "error"}));
  if (currentModel().meta?.is_built_in)
    e.append(make("span", "This model is a toy that tells small tales; whit serve -m MODEL serves one that answers."));
  for (const text of ["Tell me a story about a cat", "What can you do?"]) addButton(row, text, () => sendMessage(current, text));
  e.append(row);
  return e;
}

/* ---- tools of a message -------------------------------------------------------------------------- */

function addTools(element, m, siblings, isLast) {
  const row = make("div", null, {class: "tools"}), c = current;
  if (siblings.length > 1) addArrows(row, m, siblings);
  if (m.role === "user") addButton(row, "Edit", () => editMessage(element, m));
  else {
    addButton(row, "Regenerate", () => answerMessage(c, m.parent));
    if (isLast && isContinuable(m)) addButton(row, "Continue", () => answerMessage(c, m.parent, m));
  }
  if (m.content) row.append(copyButton(markHidden(m.content)));
  const cut = m.role === "assistant" && !m.note && !m.error && (m.state === "writing" || m.state === "cut");
  row.append(cut ? "cut off" : m.note);
  element.append(row);
}

/* Adds arrows to the other versions of a message: "< 2/3 >". */
function addArrows(row, m, siblings) {
  const at = siblings.indexOf(m), group = make("span", null, {class: "branches", role: "group", "aria-label": "Versions"});
  const to = k => { if (!answers.has(current.id)) { chooseBranch(current, siblings[k]); showMessages() } };
  addButton(group, "‹", () => to(at - 1), {"aria-label": "Earlier version", ...(at ? {} : {disabled: ""})});
  group.append(make("span", (at + 1) + "/" + siblings.length));
  addButton(group, "›", () => to(at + 1), {"aria-label": "Later version", ...(at + 1 < siblings.length ? {} : {disabled: ""})});
  row.append(group);
}

/* Edits a message. The edited message is a new version of it, with an answer of its own. */
function editMessage(element, m) {
  if (answers.has(current.id) || isEditing) return;
  const area = make("textarea", null, {rows: "4", "aria-label": "Edit the message"}), row = make("div", null, {class: "tools"});
  const end = () => { isEditing = false };
  isEditing = true;
  area.value = m.content;
  const done = addButton(row, "Send", () => {
    if (!area.value.trim() && !m.files.length) return;
    end();
    element.shown = "";
    sendMessage(current, area.value, m.files, m.parent);
  });
  const leave = () => { end(); element.shown = ""; showMessages() };
  addButton(row, "Cancel", leave);
  area.onkeydown = e => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); done.click() }
    if (e.key === "Escape") { e.stopPropagation(); leave() }
  };
  element.replaceChildren(area, row);
  area.focus();
}
