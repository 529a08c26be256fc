/* SPDX-License-Identifier: MIT
 * The conversation that is shown: its messages, their tools and branches. */

let current = null; // the conversation that this tab shows
let isEditing = false; // a message is being edited: redrawing would lose what is typed

const isNearEnd = () => $("log").scrollHeight - $("log").scrollTop - $("log").clientHeight < 60;
const articleOf = message => [...$("log").children].find(e => e.message === message);

/* Shows a conversation, or shows it again if it is the one shown; others only change in the list. */
function showConversation(id) {
  showList();
  if (id === current.id) showMessages();
}

function showMessages(toEnd) {
  if (isEditing) return;
  const stay = !toEnd && !isNearEnd() && $("log").childElementCount > 0, top = $("log").scrollTop;
  const path = shownPath(current), last = path.findLast(p => p.message.role === "assistant");
  const firstKept = last ? last.message.firstKept : "";
  $("log").replaceChildren();
  if (!path.length) $("log").append(welcome());
  path.forEach(({message, siblings}, i) => {
    if (firstKept && message.id === firstKept) $("log").append(leftOutLine(i));
    const e = make("article", null, {class: "message " + message.role, "aria-label": message.role === "user" ? "You" : "Answer"});
    e.message = message;
    fillMessage(e, message);
    if (!isLive(message)) addTools(e, message, siblings, i === path.length - 1);
    $("log").append(e);
  });
  const running = answers.has(current.id), n_ctx = contextTokens();
  $("send").hidden = running;
  $("stop").hidden = !running;
  $("used").textContent = n_ctx ? current.used + " / " + n_ctx : "";
  $("context").value = n_ctx ? Math.min(1, current.used / n_ctx) : 0;
  $("log").scrollTop = stay ? top : $("log").scrollHeight;
}

function leftOutLine(n) {
  const tokens = contextTokens();
  return make("p", `The context${tokens ? " of " + tokens + " tokens" : ""} is full: the model no longer sees the ` +
    (n === 1 ? "message" : n + " messages") + " above.", {class: "divider", role: "note"});
}

function fillMessage(element, m) {
  const live = isLive(m);
  let body = element.querySelector(":scope > .text");
  const parts = [];
  if (m.thinking) {
    const fold = make("details", null, {class: "thinking"}), before = element.querySelector("details");
    fold.open = !!before && before.open;
    fold.append(make("summary", live && !m.content ? "Thinking…" : "Thinking"), make("div", m.thinking));
    parts.push(fold);
  }
  for (const f of m.files) {
    const fold = make("details", null, {class: "file"});
    fold.append(make("summary", f.name + ", " + fileSize(f.text)), make("pre", f.text));
    parts.push(fold);
  }
  if (!body) body = make("div", null, {class: "text"});
  if (m.role === "user") body.textContent = m.content;
  else if (live && !m.content) body.textContent = m.thinking ? "" : "…";
  else showMarkdown(body, m.content);
  if (m.role === "assistant" || m.content) parts.push(body);
  if (m.error) parts.push(make("p", m.error, {class: "error", role: "alert"}));
  element.replaceChildren(...parts);
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
  if (m.content) row.append(copyButton(m.content));
  const cut = m.role === "assistant" && !m.note && !m.error && (m.state === "writing" || m.state === "cut");
  row.append(cut ? "cut off" : m.note);
  element.append(row);
}

/* "< 2/3 >": the other versions of a message. */
function addArrows(row, m, siblings) {
  const at = siblings.indexOf(m), group = make("span", null, {class: "branches", role: "group", "aria-label": "Versions"});
  const to = k => { if (!answers.has(current.id)) { chooseBranch(current, siblings[k]); showMessages() } };
  addButton(group, "‹", () => to(at - 1), {"aria-label": "Earlier version", ...(at ? {} : {disabled: ""})});
  group.append(make("span", (at + 1) + "/" + siblings.length));
  addButton(group, "›", () => to(at + 1), {"aria-label": "Later version", ...(at + 1 < siblings.length ? {} : {disabled: ""})});
  row.append(group);
}

/* An edited message is a new version of it, with an answer of its own. */
function editMessage(element, m) {
  if (answers.has(current.id) || isEditing) return;
  const area = make("textarea", null, {rows: "4", "aria-label": "Edit the message"}), row = make("div", null, {class: "tools"});
  const end = () => { isEditing = false };
  isEditing = true;
  area.value = m.content;
  const done = addButton(row, "Send", () => {
    if (!area.value.trim() && !m.files.length) return;
    end();
    sendMessage(current, area.value, m.files, m.parent);
  });
  addButton(row, "Cancel", () => { end(); showMessages() });
  area.onkeydown = e => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); done.click() }
    if (e.key === "Escape") { e.stopPropagation(); end(); showMessages() }
  };
  element.replaceChildren(area, row);
  area.focus();
}
