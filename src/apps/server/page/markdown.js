/* SPDX-License-Identifier: MIT
 * Parses block Markdown: headings, lists, tables, quotations, code, mathematics. See inline.js for nodes. */

const BLOCK_DEPTH_MAX = 16;
const BLOCK_START = /^(\s*(```|~~~)|#{1,6} |\s*([-*+]|\d{1,9}[.)]) |\s*>|\s*([-*_])(\s*\4){2,}\s*$|\s*(\$\$|\\\[|\\begin\{))/;
const LIST_ITEM = /^(\s*)([-*+]|\d{1,9}[.)])( .*|)$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/* Returns the blocks of a text, [{source, node}]. Equal sources have equal nodes, so that a view can keep the blocks
 * that did not change while an answer grows. */
function parseMarkdown(text, depth = 0) {
  const lines = text.split("\n"), blocks = [];
  for (let i = 0; i < lines.length;) {
    if (!lines[i].trim()) { i++; continue }
    const block = parseBlock(lines, i, depth);
    blocks.push({source: lines.slice(i, block.end).join("\n"), node: block.node});
    i = block.end;
  }
  return blocks;
}

const nestedNodes = (lines, depth) => parseMarkdown(lines.join("\n"), depth + 1).map(b => b.node);

/* Returns {node, end} of the block at line i, which is not blank. */
function parseBlock(lines, i, depth) {
  const line = lines[i];
  let m;
  if ((m = line.match(/^(\s*)(```+|~~~+)\s*([^\s`]*)[^`]*$/))) return parseFence(lines, i, m);
  if ((m = line.match(/^(#{1,6}) +(.*?)(?: +#+)?\s*$/)))
    return {node: makeNode("h" + Math.min(6, m[1].length + 1), parseInline(m[2])), end: i + 1};
  if (RULE.test(line)) return {node: makeNode("hr"), end: i + 1};
  if (depth < BLOCK_DEPTH_MAX && /^\s*>/.test(line)) {
    let end = i;
    while (end < lines.length && /^\s*>/.test(lines[end])) end++;
    const inner = lines.slice(i, end).map(l => l.replace(/^\s*> ?/, ""));
    return {node: makeNode("blockquote", nestedNodes(inner, depth)), end};
  }
  if (depth < BLOCK_DEPTH_MAX && (m = line.match(LIST_ITEM)) && (m[3].trim() || m[3] === "" || m[3] === " "))
    return parseList(lines, i, m[1].length, depth);
  if (isTable(lines, i)) return parseTable(lines, i);
  const math = parseMathBlock(lines, i);
  if (math) return math;
  let end = i + 1;
  while (end < lines.length && lines[end].trim() && !BLOCK_START.test(lines[end]) && !isTable(lines, end)) end++;
  return {node: makeNode("p", parseInline(lines.slice(i, end).map(l => l.replace(/^\s+/, "")).join("\n"))), end};
}

function parseFence(lines, i, m) {
  const body = [], indent = m[1].length, fence = m[2], language = m[3];
  let end = i + 1;
  const isEnd = l => l.trim().startsWith(fence) && !l.trim().replaceAll(fence[0], "");
  for (; end < lines.length && !isEnd(lines[end]); end++)
    body.push(lines[end].slice(Math.min(indent, lines[end].match(/^\s*/)[0].length)));
  const text = body.join("\n");
  const code = makeNode("code", colourCode(text, language), language ? {"data-language": language} : {});
  return {node: makeNode("div", [makeNode("pre", code), {tag: "copy", text}], {class: "code"}), end: end + 1};
}

/* Parses a list whose markers stand at `indent`; lines that are indented further belong to the item above. */
function parseList(lines, i, indent, depth) {
  const first = lines[i].match(LIST_ITEM), ordered = /\d/.test(first[2]), items = [];
  let m;
  while (i < lines.length && (m = lines[i].match(LIST_ITEM)) && m[1].length === indent &&
         /\d/.test(m[2]) === ordered && !RULE.test(lines[i])) {
    const body = [m[3].slice(1)], margin = m[1].length + m[2].length + 1;
    for (i++; i < lines.length; i++) {
      const space = lines[i].match(/^\s*/)[0].length;
      if (lines[i].trim() ? space < indent + 2 : !(lines[i + 1] || "").startsWith(" ".repeat(indent + 2))) break;
      body.push(lines[i].slice(Math.min(space, margin)));
    }
    items.push(listItem(body, depth));
    let next = i;
    while (next < lines.length && !lines[next].trim()) next++;
    if (next < lines.length && LIST_ITEM.test(lines[next])) i = next;
  }
  const attributes = ordered && parseInt(first[2], 10) !== 1 ? {start: String(parseInt(first[2], 10))} : {};
  return {node: makeNode(ordered ? "ol" : "ul", items, attributes), end: i};
}

/* Makes one item of a list; "[ ]" and "[x]" before its text make it a task. */
function listItem(body, depth) {
  const task = body[0].match(/^\s*\[([ xX])\] (.*)$/);
  if (task) body[0] = task[2];
  const children = body.length === 1 ? parseInline(body[0].trim()) : nestedNodes(body, depth);
  if (!task) return makeNode("li", children);
  const done = task[1] !== " ", box = {type: "checkbox", disabled: "", ...(done ? {checked: ""} : {})};
  return makeNode("li", [makeNode("input", [], {...box, "aria-label": done ? "done" : "to do"}), ...children],
    {class: "task"});
}

/* ---- tables -------------------------------------------------------------------------------------- */

function isTable(lines, i) {
  const rule = lines[i + 1];
  return lines[i].includes("|") && rule !== undefined && rule.includes("|") && TABLE_RULE.test(rule) &&
    splitCells(lines[i]).length === splitCells(rule).length;
}

/* Splits a row into cells at each "|" that is neither escaped nor within code. */
function splitCells(line) {
  const cells = [""], text = line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
  for (let at = 0; at < text.length; at++) {
    const last = cells.length - 1;
    if (text[at] === "\\" && text[at + 1] === "|") { cells[last] += "|"; at++ }
    else if (text[at] === "|") cells.push("");
    else if (text[at] === "`") {
      const n = runLength(text, at), end = findTicks(text, n, at + n), to = end < 0 ? at + n : end + n;
      cells[last] += text.slice(at, to);
      at = to - 1;
    } else cells[last] += text[at];
  }
  return cells.map(c => c.trim());
}

function columnClass(rule) {
  return !rule.endsWith(":") ? {} : {class: rule.startsWith(":") ? "middle" : "right"};
}

function parseTable(lines, i) {
  const classes = splitCells(lines[i + 1]).map(columnClass);
  const row = (line, tag) => {
    const cells = splitCells(line);
    return makeNode("tr", classes.map((c, k) => makeNode(tag, parseInline(cells[k] || ""), c)));
  };
  const head = makeNode("thead", row(lines[i], "th")), body = [];
  let end = i + 2;
  for (; end < lines.length && lines[end].trim() && lines[end].includes("|"); end++) body.push(row(lines[end], "td"));
  return {node: makeNode("div", makeNode("table", [head, makeNode("tbody", body)]), {class: "table"}), end};
}

/* ---- mathematics --------------------------------------------------------------------------------- */

/* Parses a formula between $$ or \[ \], or an environment of its own, on lines of its own. A formula that cannot be
 * converted stays text. */
function parseMathBlock(lines, i) {
  const begin = lines[i].trim(), m = begin.match(/^(?:\$\$|\\\[|\\begin\{([a-zA-Z]+\*?)\})/);
  if (!m || (m[1] && !Object.hasOwn(MATH_TABLES, m[1].replace("*", "")))) return null;
  const close = m[1] ? `\\end{${m[1]}}` : m[0] === "$$" ? "$$" : "\\]", body = [begin.slice(m[0].length)];
  let end = i;
  while (!body[body.length - 1].includes(close)) {
    if (++end >= lines.length || !lines[end].trim()) return null;
    body.push(lines[end]);
  }
  const text = body.join("\n"), at = text.indexOf(close);
  if (text.slice(at + close.length).trim().replace(/^[.,;]$/, "")) return null;
  const formula = text.slice(0, at), node = convertMath(m[1] ? m[0] + formula + close : formula, true);
  const shown = node ? [node] : [lines.slice(i, end + 1).join("\n")];
  return {node: makeNode("p", shown, node ? {class: "formula"} : {class: "raw"}), end: end + 1};
}
