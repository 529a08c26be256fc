/* SPDX-License-Identifier: MIT
 * Makes elements of the page. Text only ever enters by textContent and append, so that an answer is never markup. */
"use strict";

const $ = id => document.getElementById(id);
const MATHML = $("formula").namespaceURI; // an empty formula of page.html: so the page holds no address of another site
const MATH_TAG = /^m(ath|row|i|n|o|text|space|frac|sqrt|root|su[bp]|subsup|under|over|underover|table|tr|td|style|phantom)$/;

/* Returns a storage of the browser or, if the browser refuses it, a storage that ends with this page. */
function openStorage(name) {
  try {
    void window[name].length;
    return window[name];
  } catch {
    const kept = new Map();
    return {getItem: k => kept.get(k) ?? null, setItem: (k, v) => void kept.set(k, v), removeItem: k => void kept.delete(k)};
  }
}
const tabStorage = openStorage("sessionStorage"), browserStorage = openStorage("localStorage");

function readStored(storage, key) {
  try { return membersOf(JSON.parse(storage.getItem(key)), () => true) } catch { return {} }
}

/* Makes `wanted` the children of an element. Children that it has already are not moved,
 * so that a selection stays. */
function placeChildren(parent, wanted) {
  const stay = new Set(wanted);
  for (const e of [...parent.childNodes]) if (!stay.has(e)) e.remove();
  wanted.forEach((e, i) => { if (parent.childNodes[i] !== e) parent.insertBefore(e, parent.childNodes[i] || null) });
}

function make(tag, text, attributes) {
  const e = MATH_TAG.test(tag) ? document.createElementNS(MATHML, tag) : document.createElement(tag);
  if (text !== undefined && text !== null) e.textContent = text;
  for (const [k, v] of Object.entries(attributes || {})) if (v !== undefined) e.setAttribute(k, v);
  return e;
}

/* Builds the element of a node (see inline.js). */
function build(node) {
  if (typeof node === "string") return document.createTextNode(node);
  if (node.tag === "copy") return copyButton(node.text, "Copy the code");
  const e = make(node.tag, null, node.attributes);
  e.append(...node.children.map(build));
  return e;
}

/* Shows Markdown in an element. Blocks that have not changed keep their elements and their selection. */
function showMarkdown(parent, text) {
  const blocks = parseMarkdown(text);
  let same = 0;
  while (same < blocks.length && parent.children[same] && parent.children[same].source === blocks[same].source) same++;
  while (parent.childNodes.length > same) parent.lastChild.remove();
  for (const block of blocks.slice(same)) {
    const e = build(block.node);
    e.source = block.source;
    parent.append(e);
  }
}

/* Makes a button that copies a text, also on pages from other machines, where browsers offer no clipboard. */
function copyButton(text, label) {
  const b = make("button", "Copy", label ? {"aria-label": label} : {});
  b.onclick = async () => {
    let ok = true;
    try { await navigator.clipboard.writeText(text) }
    catch {
      const area = make("textarea", null, {class: "hidden"});
      area.value = text;
      b.after(area);
      area.select();
      ok = document.execCommand("copy");
      area.remove();
    }
    b.textContent = ok ? "Copied" : "Not copied";
    setTimeout(() => b.textContent = "Copy", 1500);
  };
  return b;
}

function addButton(parent, label, action, attributes) {
  const b = make("button", label, {type: "button", ...attributes});
  b.onclick = action;
  parent.append(b);
  return b;
}

/* Tells a line to screen readers. */
function say(message) { $("status").textContent = message }

/* Shows a line for ten seconds, with a button if an action belongs to it. */
function report(message, label, action) {
  const line = make("p", message), close = () => line.remove();
  if (label) addButton(line, label, () => { close(); action() });
  else addButton(line, "×", close, {"aria-label": "Close the message"});
  $("toast").append(line);
  setTimeout(close, 10000);
}
