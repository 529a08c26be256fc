/* SPDX-License-Identifier: MIT
 * Parses inline Markdown into a list of nodes. A node is a string or {tag, attributes, children}. The tags are chosen
 * by this code and never by the text, so that an answer cannot become markup. */

const INLINE_DEPTH_MAX = 12, LABEL_MAX = 1000;
const ENTITIES = {lt: "<", gt: ">", amp: "&", quot: '"', apos: "'", nbsp: "\u00a0", "#39": "'", "#34": '"'};
const PLAIN_RUN = /[^\\`*_~[!<&$h\n]+/y;

function makeNode(tag, children, attributes) {
  return {tag, attributes: attributes || {}, children: children === undefined ? [] : [].concat(children)};
}

/* Returns the nodes of a text without block structure. Links within the label of a link stay text. */
function parseInline(text, depth = 0, inLink = false) {
  const nodes = [], missing = new Set(); // missing: markers that are not closed in the rest of the text
  let plain = "", at = 0;
  while (at < text.length) {
    PLAIN_RUN.lastIndex = at;
    const run = PLAIN_RUN.exec(text);
    if (run) {
      plain += run[0];
      at = PLAIN_RUN.lastIndex;
      continue;
    }
    const found = depth < INLINE_DEPTH_MAX ? matchInline(text, at, {depth, inLink, missing}) : null;
    if (!found) {
      plain += text[at++];
    } else if (found.plain !== undefined) {
      plain += found.plain;
      at = found.end;
    } else {
      if (found.node.tag === "br") plain = plain.replace(/ +$/, "");
      if (plain) nodes.push(plain);
      plain = "";
      nodes.push(found.node);
      at = found.end;
    }
  }
  if (plain) nodes.push(plain);
  return nodes;
}

/* Returns {node, end} or {plain, end} of the construct that begins at `at`; null if no construct begins there. */
function matchInline(text, at, state) {
  switch (text[at]) {
  case "\\": return matchEscape(text, at, state);
  case "`": return matchCode(text, at, state);
  case "$": return matchDollars(text, at, state);
  case "*": case "_": case "~": return matchEmphasis(text, at, state);
  case "[": return state.inLink ? null : matchLink(text, at, at, state);
  case "!": return text[at + 1] === "[" && !state.inLink ? matchLink(text, at + 1, at, state) : null;
  case "<": return matchAngle(text, at, state);
  case "&": return matchEntity(text, at);
  case "h": return state.inLink ? null : matchBareUrl(text, at);
  case "\n": return text.slice(Math.max(0, at - 2), at) === "  " ? {node: makeNode("br"), end: at + 1} : null;
  default: return null;
  }
}

/* Remembers that `marker` is not closed after `at`; the same search later would fail, too. */
function findCloser(text, marker, from, state, key) {
  if (state.missing.has(key)) return -1;
  const end = text.indexOf(marker, from);
  if (end < 0) state.missing.add(key);
  return end;
}

function matchEscape(text, at, state) {
  const next = text[at + 1];
  if (next === "(" || next === "[") {
    const end = findCloser(text, next === "(" ? "\\)" : "\\]", at + 2, state, "\\" + next);
    if (end >= 0) return mathOrText(text, at, at + 2, end, end + 2, next === "[");
    return {plain: "\\" + next, end: at + 2};
  }
  if (next === "\n") return {node: makeNode("br"), end: at + 2};
  return /[!-/:-@[-`{-~]/.test(next || "") ? {plain: next, end: at + 2} : null;
}

function mathOrText(text, at, from, to, end, display) {
  const node = convertMath(text.slice(from, to), display);
  return node ? {node, end} : {plain: text.slice(at, end), end};
}

function matchDollars(text, at, state) {
  if (text[at + 1] === "$") {
    const end = findCloser(text, "$$", at + 2, state, "$$");
    return end > at + 2 ? mathOrText(text, at, at + 2, end, end + 2, true) : {plain: "$$", end: at + 2};
  }
  if (/[\s$]/.test(text[at + 1] || " ") || /[A-Za-z0-9]/.test(text[at - 1] || "")) return null;
  // A closing dollar follows no blank and precedes no letter or digit, so that prices and variables stay text.
  let end = at;
  do {
    end = findCloser(text, "$", end + 1, state, "$");
    if (end < 0 || end - at > 2 * LABEL_MAX) return null;
  } while (/[\s\\]/.test(text[end - 1]) || /[A-Za-z0-9$]/.test(text[end + 1] || ""));
  return mathOrText(text, at, at + 1, end, end + 1, false);
}

function runLength(text, at) {
  let end = at;
  while (text[end] === text[at]) end++;
  return end - at;
}

/* Returns the position of the run of exactly n backticks after `from`; -1 if there is no such run. */
function findTicks(text, n, from) {
  for (let at = text.indexOf("`", from); at >= 0; at = text.indexOf("`", at)) {
    const length = runLength(text, at);
    if (length === n) return at;
    at += length;
  }
  return -1;
}

function matchCode(text, at, state) {
  const n = runLength(text, at), key = "`" + n;
  const end = state.missing.has(key) ? -1 : findTicks(text, n, at + n);
  if (end < 0) {
    state.missing.add(key);
    return {plain: text.slice(at, at + n), end: at + n};
  }
  let code = text.slice(at + n, end).replace(/\n/g, " ");
  if (/^ .*[^ ].* $/.test(code)) code = code.slice(1, -1);
  return {node: makeNode("code", code), end: end + n};
}

const isWord = c => c !== undefined && /[\p{L}\p{N}]/u.test(c);

/* Returns the position of `count` markers `mark` that close emphasis; -1 if there are no such markers. */
function findEmphasisEnd(text, mark, count, from) {
  for (let at = from; at < text.length;) {
    if (text[at] === "\\") at += 2;
    else if (text[at] === "`") {
      const n = runLength(text, at), end = findTicks(text, n, at + n);
      at = end < 0 ? at + n : end + n;
    } else if (text[at] === mark) {
      const n = runLength(text, at), closes = at > from && !/\s/.test(text[at - 1]);
      const fits = n === count || (n === 3 && mark !== "~");
      if (closes && fits && !(mark === "_" && isWord(text[at + n]))) return at + n - count;
      at += n;
    } else at++;
  }
  return -1;
}

function matchEmphasis(text, at, state) {
  const mark = text[at], n = runLength(text, at), plain = {plain: text.slice(at, at + n), end: at + n};
  const fits = mark === "~" ? n === 2 : n <= 3;
  if (!fits || /\s/.test(text[at + n] || " ") || (mark === "_" && isWord(text[at - 1]))) return plain;
  // "***a** b*" and "***a* b**" close in two steps: the outer markers close last.
  let count = 0, end = -1;
  for (const tried of n === 3 ? [3, 2, 1] : [n]) {
    const key = mark + tried + (n === tried ? "" : "of3");
    const found = count === 3 || state.missing.has(key) ? -1 : findEmphasisEnd(text, mark, tried, at + tried);
    if (found < 0) state.missing.add(key);
    else if (found > end) { count = tried; end = found }
  }
  if (end >= 0) {
    const children = parseInline(text.slice(at + count, end), state.depth + 1, state.inLink);
    const tag = mark === "~" ? "del" : count === 1 ? "em" : "strong";
    return {node: makeNode(tag, count === 3 ? makeNode("em", children) : children), end: end + count};
  }
  return plain;
}

/* Returns the address to which a link may lead; null means that the link stays text. */
function safeAddress(target) {
  let url = null;
  try { url = new URL(target) } catch { return null }
  return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
}

const textOfNode = node => typeof node === "string" ? node : node.children.map(textOfNode).join("");

/* A word that begins with a scheme and a host, or with a name of a host. */
const HOST_NAME = /(?<![\p{L}\p{N}._-])(?:https?:\/\/([^\s/?#]+)|((?:[\p{L}\p{N}-]+\.)+\p{L}{2,}))\S*/giu;

/* Returns the host of an address if the label of its link has words that look like addresses of another host; ""
 * otherwise. */
function otherHost(label, address) {
  const url = new URL(address), named = [...label.matchAll(HOST_NAME)].map(m => (m[1] || m[2]).toLowerCase());
  return /^http/.test(url.protocol) && named.some(name => name !== url.hostname && name !== url.host) ? url.host : "";
}

function linkNode(children, address) {
  const host = otherHost(children.map(textOfNode).join(""), address);
  return makeNode("a", host ? [...children, ` (${host})`] : children,
    {href: address, target: "_blank", rel: "noopener noreferrer"});
}

/* Parses [label](target "title"). An image becomes a link to it, since the page loads no files from other sites. */
function matchLink(text, at, begin, state) {
  let end = at + 1;
  for (let open = 1; end < text.length && end - at < LABEL_MAX; end++) {
    if (text[end] === "\\") end++;
    else if (text[end] === "[") open++;
    else if (text[end] === "]" && --open === 0) break;
  }
  const pattern = /\]\(\s*<?((?:[^\s()<>]|\([^\s()]*\))+)>?(?:\s+(?:"[^"\n]*"|'[^'\n]*'))?\s*\)/y;
  pattern.lastIndex = end;
  const m = text[end] === "]" ? pattern.exec(text) : null, address = m && safeAddress(m[1]);
  if (!m) return null;
  if (!address) return {plain: text.slice(begin, pattern.lastIndex), end: pattern.lastIndex};
  const label = text.slice(at + 1, end);
  const children = begin < at ? ["image: " + (label || address)] : parseInline(label, state.depth + 1, true);
  return {node: linkNode(children, address), end: pattern.lastIndex};
}

function matchAngle(text, at, state) {
  const m = /^<(?:br\s*\/?|((?:https?|mailto):[^\s<>]+))>/i.exec(text.slice(at, at + LABEL_MAX));
  if (!m) return null;
  if (!m[1]) return {node: makeNode("br"), end: at + m[0].length};
  const address = state.inLink ? null : safeAddress(m[1]);
  return address ? {node: linkNode([m[1]], address), end: at + m[0].length} : null;
}

function matchEntity(text, at) {
  const m = /^&(#?\w{2,5});/.exec(text.slice(at, at + 8));
  return m && Object.hasOwn(ENTITIES, m[1]) ? {plain: ENTITIES[m[1]], end: at + m[0].length} : null;
}

function matchBareUrl(text, at) {
  const pattern = /https?:\/\/[^\s<>"`|\\]+/y;
  pattern.lastIndex = at;
  const m = isWord(text[at - 1]) ? null : pattern.exec(text);
  if (!m) return null;
  let url = m[0].replace(/[.,;:!?'*_~]+$/, "");
  if (url.endsWith(")") && !url.includes("(")) url = url.replace(/\)+[.,;:!?]*$/, "");
  const address = safeAddress(url);
  return address ? {node: linkNode([url], address), end: at + url.length} : null;
}
