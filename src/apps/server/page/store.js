/* SPDX-License-Identifier: MIT
 * Keeps the store that all tabs of this browser share: an IndexedDB of records (see records.js), and a channel that
 * tells the other tabs what changed. A record has one message or the settings of one conversation, so that tabs which
 * write in the same conversation overwrite nothing of each other.
 *
 * Records are written at once, those of an answer at most every SAVE_MS while it grows. Records that are not written
 * when the page ends are put into localStorage, which is written before the page ends, and the next page reads them. */

/* A tab is assumed to write its answer for LIVE_MS after its last message: browsers let the timers of hidden tabs run
 * once a minute. */
const LIVE_MS = 90000, TELL_MS = 20000;
const SAVE_MS = 400, JOURNAL = "whit.journal.", OLD_STORE = "whit.conversations";
const library = {conversations: new Map(), messages: new Map()}; // messages: conversation -> id -> message
const dirty = new Map(), unwritten = new Map(); // dirty: to be written; unwritten: in a transaction that has not ended
const heardOf = new Map(); // answers that other tabs write -> time
let database = null, saveTimer = 0, savedAt = 0, onStoreChange = () => {};

const tabId = makeId();
const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("whit") : null;
const tell = message => { if (channel) channel.postMessage({from: tabId, ...message}) };

const keyOf = r => r.kind === "message" ? `m:${r.conversation}:${r.id}` : "c:" + r.id;

const messagesOf = id => library.messages.get(id) ? library.messages.get(id).values() : [];
const shownPath = c => pathOf(c, messagesOf(c.id));
const listedConversations = () => [...library.conversations.values()].filter(c => !c.deleted).sort((a, b) => b.updated - a.updated);

/* Puts a record into memory; an equal key is replaced in place, so that views may keep the object. */
function keepRecord(record) {
  let map = library.conversations;
  if (record.kind === "message") {
    if (!library.messages.has(record.conversation)) library.messages.set(record.conversation, new Map());
    map = library.messages.get(record.conversation);
  }
  const present = map.get(record.id);
  if (!present) map.set(record.id, record);
  else if (present !== record) Object.assign(present, record);
}

/* Changes a record in memory and in the store. With `later` it is written with others, as an answer grows. */
function saveRecord(record, later) {
  keepRecord(record);
  dirty.set(keyOf(record), record);
  // The timer alone is not enough, because it is late in hidden tabs.
  if (!later || performance.now() - savedAt > SAVE_MS) flushRecords();
  else if (!saveTimer) saveTimer = setTimeout(flushRecords, SAVE_MS);
}

function flushRecords() {
  clearTimeout(saveTimer);
  saveTimer = 0;
  savedAt = performance.now();
  if (!dirty.size) return;
  const records = [...dirty.values()].map(r => structuredClone(r));
  tell({records});
  if (!database) { dirty.clear(); return }
  const ended = () => { for (const r of records) if (unwritten.get(keyOf(r)) === r) unwritten.delete(keyOf(r)) };
  const failed = why => {
    ended();
    for (const r of records) if (!dirty.has(keyOf(r))) dirty.set(keyOf(r), r);
    report(`The browser could not keep the conversation (${why}): Export saves it to a file.`);
  };
  try {
    const transaction = database.transaction("records", "readwrite"), store = transaction.objectStore("records");
    transaction.oncomplete = ended;
    transaction.onabort = () => failed(transaction.error ? transaction.error.message : "aborted");
    dirty.clear();
    for (const r of records) {
      unwritten.set(keyOf(r), r);
      store.put({...r, key: keyOf(r)});
    }
  } catch (e) { failed(e.message) } // the browser closed the database
}

/* Removes a conversation for good. */
function dropConversation(id, quietly) {
  answers.get(id)?.abort.abort();
  library.conversations.delete(id);
  library.messages.delete(id);
  for (const records of [dirty, unwritten])
    for (const [key, r] of records) if (r.id === id || r.conversation === id) records.delete(key);
  if (quietly) return;
  tell({dropped: id});
  if (!database) return;
  const store = database.transaction("records", "readwrite").objectStore("records");
  store.delete("c:" + id);
  store.delete(IDBKeyRange.bound(`m:${id}:`, `m:${id}:\uffff`));
}

/* ---- other tabs ---------------------------------------------------------------------------------- */

const isLive = m => m.state === "writing" && (answers.get(m.conversation)?.message === m || heardOf.get(m.id) > Date.now() - LIVE_MS);

if (channel) channel.onmessage = e => {
  const {records, dropped, live, asks} = e.data;
  for (const id of live || []) heardOf.set(id, Date.now());
  if (asks) tellLive();
  if (dropped) dropConversation(dropped, true);
  for (const r of records || []) {
    if (r.kind === "message" && r.state === "writing") heardOf.set(r.id, Date.now());
    keepRecord(r);
  }
  if (records || dropped || live) onStoreChange(records || [], dropped);
};

/* Tells the other tabs which answers this tab writes: they show no other answers as unfinished. */
function tellLive() {
  const live = [...answers.values()].map(a => a.message.id);
  if (live.length) tell({live});
}
setInterval(tellLive, TELL_MS);

/* ---- opening, and leaving ------------------------------------------------------------------------ */

const asPromise = request => new Promise((ok, no) => { request.onsuccess = () => ok(request.result); request.onerror = () => no(request.error) });

/* Opens the store and reads all records. */
async function openStore() {
  try {
    const opening = indexedDB.open("whit", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("records", {keyPath: "key"});
    database = await asPromise(opening);
    database.onversionchange = () => database.close(); // a later version of the page opens it
    for (const v of await asPromise(database.transaction("records").objectStore("records").getAll()))
      keepRecord(v.kind === "message" ? readMessage(v, textOr(v.conversation)) : readConversation(v));
  } catch (e) {
    report("This browser keeps no conversations (" + e.message + "): Export saves them to a file.");
  }
  takeJournals();
  takeOldStore();
  for (const c of library.conversations.values())
    if (c.deleted && c.deleted < Date.now() - 60000) dropConversation(c.id);
  tell({asks: true});
}

/* Stores the records that pages could not write before they ended. */
function takeJournals() {
  const keys = Object.keys(browserStorage).filter(k => k.startsWith(JOURNAL));
  for (const key of keys) {
    try {
      for (const v of JSON.parse(browserStorage.getItem(key)))
        saveRecord(v.kind === "message" ? readMessage(v, textOr(v.conversation)) : readConversation(v), true);
    } catch { /* the text was cut off, so no record of it can be read */ }
    browserStorage.removeItem(key);
  }
  flushRecords();
}

/* Stores the conversations that earlier versions kept in browserStorage. */
function takeOldStore() {
  const old = browserStorage.getItem(OLD_STORE);
  if (!old || !database) return;
  try { for (const r of readExport(JSON.parse(old))) saveRecord(r, true) } catch { /* the old text stays */ return }
  flushRecords();
  browserStorage.removeItem(OLD_STORE);
}

/* Ends the answers that this page writes, and keeps their text so far. A transaction may end with the page, too, before
 * it has written a record. */
function leavePage() {
  for (const {message} of answers.values()) saveRecord({...message, state: "cut"}, true);
  flushRecords();
  if (!unwritten.size) return;
  try { browserStorage.setItem(JOURNAL + tabId, JSON.stringify([...unwritten.values()])) }
  catch { /* localStorage has no room, so the transaction above is the only copy */ }
}
window.addEventListener("pagehide", leavePage);
document.addEventListener("visibilitychange", flushRecords);
