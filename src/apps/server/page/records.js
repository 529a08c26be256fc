/* SPDX-License-Identifier: MIT
 * Reads records, which are conversations and their messages as they are stored and exported.
 *
 * The messages of a conversation form a tree: a regenerated answer or an edited question is a sibling of the earlier one,
 * and nothing is overwritten. `chosen` of a conversation says which child of a message is shown ("" is the root).
 *
 *     question -> answer 1
 *              -> answer 2 -> question -> answer
 *
 * A record of a store or a file is read here member by member; unknown members are left out. */

const ANSWER_STATES = ["writing", "done", "stopped", "full", "cut"];
const textOr = (v, other = "") => typeof v === "string" ? v : other;
const numberOr = (v, other = 0) => typeof v === "number" && Number.isFinite(v) ? v : other;

let lastTime = 0;
/* Returns the time in milliseconds; later calls return later times, so that answers sort after their questions. */
function nextTime() { return lastTime = Math.max(lastTime + 1, Date.now()) }

function makeId() { return crypto.getRandomValues(new Uint32Array(3)).join("-") }

/* Returns the members of an object for which `keep` is true. */
function membersOf(value, keep) {
  const entries = value && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [];
  return Object.fromEntries(entries.filter(([k, v]) => k !== "__proto__" && keep(k, v)));
}

function readConversation(v) {
  const now = Date.now();
  return {
    kind: "conversation", id: textOr(v.id) || makeId(), title: textOr(v.title), folder: textOr(v.folder).slice(0, 60), system: textOr(v.system),
    sampling: membersOf(v.sampling, (k, n) => SAMPLERS.some(s => s.name === k) && numberOr(n, null) !== null),
    adapters: membersOf(v.adapters, (k, n) => numberOr(n, null) !== null),
    thinking: ["on", "off"].includes(v.thinking) ? v.thinking : "",
    format: ["json", "schema"].includes(v.format) ? v.format : "", schema: textOr(v.schema),
    model: textOr(v.model), chosen: membersOf(v.chosen, (k, id) => typeof id === "string"),
    used: numberOr(v.used), created: numberOr(v.created, now), updated: numberOr(v.updated, now), deleted: numberOr(v.deleted),
  };
}

function readMessage(v, conversation) {
  const files = Array.isArray(v.files) ? v.files : [];
  return {
    kind: "message", id: textOr(v.id) || makeId(), conversation, parent: textOr(v.parent), role: v.role,
    content: textOr(v.content), thinking: textOr(v.thinking), note: textOr(v.note), error: textOr(v.error),
    files: files.filter(f => f && typeof f.text === "string").map(f => ({name: textOr(f.name, "file"), text: f.text})),
    state: ANSWER_STATES.includes(v.state) ? v.state : "done", firstKept: textOr(v.firstKept), keptTokens: numberOr(v.keptTokens), created: numberOr(v.created),
  };
}

const isMessage = m => m && (m.role === "user" || m.role === "assistant");

/* Makes a tree of messages: a message whose parent is absent, or that is its own ancestor, becomes a first question. */
function repairTree(messages) {
  const byId = new Map(messages.map(m => [m.id, m])), rooted = new Set([""]);
  for (const m of messages) {
    const chain = new Set();
    for (let at = m; !rooted.has(at.id); at = byId.get(at.parent) || {id: ""}) {
      chain.add(at.id);
      if (!byId.has(at.parent) || chain.has(at.parent)) at.parent = "";
    }
    for (const id of chain) rooted.add(id);
  }
}

/* Reads an export, of version 1 (a list of messages for each conversation) or 2 (a tree). */
function readExport(value) {
  const list = value && Array.isArray(value.conversations) ? value.conversations : [], records = [], now = Date.now();
  for (const [k, v] of list.entries()) {
    if (!v || !Array.isArray(v.messages)) continue;
    const conversation = readConversation({updated: now - k, ...v}), id = conversation.id; // keeps the list's order
    const messages = v.messages.filter(isMessage).map((m, i) => {
      // In version 1 each message follows the one before it.
      const flat = typeof m.parent !== "string", parent = i ? id + "." + (i - 1) : "";
      const message = readMessage(flat ? {...m, id: id + "." + i, parent, created: i} : m, id);
      return message.state === "writing" ? {...message, state: "cut"} : message;
    });
    repairTree(messages);
    records.push(conversation, ...messages);
  }
  return records;
}

/* Returns the records of an export that can be stored beside the present ones without replacing any. Messages that are
 * new join a present conversation, whose settings stay; if a message with the same id has another text here, or the
 * conversation here is about to be deleted, the whole conversation of the export gets an id of its own, unless it was
 * copied so before: a conversation that has all its messages. */
function joinImport(records, conversations, messagesOf) {
  const joined = [], textOf = m => JSON.stringify({...m, conversation: ""});
  const copyOf = messages => [...conversations.values()].find(c => {
    const texts = new Set(c.deleted ? [] : [...messagesOf(c.id)].map(textOf));
    return messages.length && messages.every(m => texts.has(textOf(m)));
  });
  for (const c of records.filter(r => r.kind === "conversation")) {
    const messages = records.filter(r => r.kind === "message" && r.conversation === c.id), here = conversations.get(c.id);
    const present = new Map([...messagesOf(c.id)].map(m => [m.id, m]));
    const differs = m => present.has(m.id) && JSON.stringify(present.get(m.id)) !== JSON.stringify(m);
    if (!here) joined.push(c, ...messages);
    else if (!here.deleted && !messages.some(differs)) joined.push(here, ...messages.filter(m => !present.has(m.id)));
    else {
      const id = makeId(), copy = copyOf(messages);
      joined.push(...(copy ? [copy] : [{...c, id}, ...messages.map(m => ({...m, conversation: id}))]));
    }
  }
  return joined;
}

function exportRecords(conversations, messagesOf) {
  const plain = c => ({...c, messages: [...messagesOf(c.id)].sort(byTime)});
  return {version: 2, conversations: conversations.map(plain)};
}

/* ---- the tree ------------------------------------------------------------------------------------ */

const byTime = (a, b) => a.created - b.created || (a.id < b.id ? -1 : 1);

/* Returns the branch that is shown: [{message, siblings}], from the first question on. */
function pathOf(conversation, messages) {
  const children = new Map(), path = [];
  for (const m of messages) {
    if (!children.has(m.parent)) children.set(m.parent, []);
    children.get(m.parent).push(m);
  }
  for (let parent = "", list; (list = children.get(parent)); ) {
    list.sort(byTime);
    const message = list.find(m => m.id === conversation.chosen[parent]) || list[list.length - 1];
    path.push({message, siblings: list});
    parent = message.id;
  }
  return path;
}

/* Chooses the branch that has a message. */
function revealMessage(conversation, messages, id) {
  const byId = new Map([...messages].map(m => [m.id, m]));
  for (let m = byId.get(id), n = byId.size; m && n--; m = byId.get(m.parent)) conversation.chosen[m.parent] = m.id;
}

/* Returns whether the answer can be continued from its end. */
const isContinuable = m => m.role === "assistant" && !!m.content && (m.state !== "done" || !!m.error);

/* ---- what the model reads ------------------------------------------------------------------------ */

/* Returns the text of a message with its files before it, each in a fence that the file does not contain. A model may
 * write a zero byte, which the server does not take back. */
function contentOf(message) {
  const files = message.files.map(f => {
    const longest = Math.max(2, ...(f.text.match(/`+/g) || []).map(t => t.length)), fence = "`".repeat(longest + 1);
    return `File ${f.name}:\n${fence}\n${f.text}\n${fence}\n\n`;
  });
  return (files.join("") + message.content).replaceAll("\0", "\uFFFD");
}

/* Returns the messages of a path in the form of a request, each with its id. A failed answer is left out together with
 * its question, because templates refuse two messages of one role in a row. */
function requestMessages(path) {
  const failed = m => m && m.role === "assistant" && m.error && !m.content;
  return path.filter((m, i) => !failed(m) && !failed(path[i + 1]))
    .map(m => ({id: m.id, role: m.role, content: contentOf(m)}));
}

/* Returns the index of the first message to send so that about `limit` of `total` tokens remain: whole turns are left
 * out, the oldest first, and at least one. Characters are counted instead of tokens. The last turn stays. */
function firstToKeep(messages, from, total, limit) {
  const starts = messages.map((m, i) => m.role === "user" ? i : -1).filter(i => i > from);
  const size = messages.slice(from).reduce((n, m) => n + m.content.length + 1, 0), excess = size * (1 - limit / total);
  let gone = 0, at = from;
  for (const start of starts) {
    for (; at < start; at++) gone += messages[at].content.length + 1;
    if (gone >= excess) return at;
  }
  return starts.length ? starts[starts.length - 1] : from;
}

/* ---- search -------------------------------------------------------------------------------------- */

/* Returns the place of the words of `query`, {excerpt, message}, whose members are empty if the title has all words;
 * null if a word is not found. */
function findWords(query, title, messages) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean), texts = messages.map(m => m.content.toLowerCase());
  const found = {excerpt: "", message: ""};
  for (const word of words) {
    if (title.toLowerCase().includes(word)) continue;
    const i = texts.findIndex(t => t.includes(word));
    if (i < 0) return null;
    const at = texts[i].indexOf(word), begin = Math.max(0, at - 20);
    if (!found.message) {
      found.message = messages[i].id;
      found.excerpt = (begin ? "…" : "") + messages[i].content.slice(begin, at + 60).replace(/\s+/g, " ");
    }
  }
  return found;
}
