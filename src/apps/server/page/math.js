/* SPDX-License-Identifier: MIT
 * Converts LaTeX mathematics to MathML, for the subset that answers use. The result is nodes (see inline.js) with tags
 * that are chosen here; a formula with a command that is not known is not converted at all.
 *
 * A formula is a row of atoms; an atom may have scripts:
 *     row  -> (atom scripts)*        atom -> letter | number | "{" row "}" | command arguments
 *     scripts -> ("^" atom | "_" atom | "'")* */

const MATH_TOKENS_MAX = 4000, MATH_DEPTH_MAX = 40, MATH_KEPT_MAX = 400;
const convertedMath = new Map(); // "mode source" -> node or null, since growing answers are parsed again

class MathError extends Error {}

/* Returns the <math> node of a formula; null means that it cannot be converted. */
function convertMath(source, display) {
  const key = (display ? "b" : "i") + source;
  if (convertedMath.has(key)) return convertedMath.get(key);
  let node = null;
  try {
    const parser = new MathParser(source, display), row = parser.parseRows();
    if (source.trim())
      node = makeNode("math", row, {display: display ? "block" : "inline", alttext: source.trim()});
  } catch (e) {
    if (!(e instanceof MathError)) throw e;
  }
  if (convertedMath.size >= MATH_KEPT_MAX) convertedMath.clear();
  convertedMath.set(key, node);
  return node;
}

const mathRow = nodes => nodes.length === 1 ? nodes[0] : makeNode("mrow", nodes);
const mathOperator = (text, attributes) => makeNode("mo", text, attributes);
const mathSpace = width => makeNode("mspace", [], {width});
const mathFence = (text, stretchy) => text === "." ? makeNode("mrow") : mathOperator(text, {stretchy: String(stretchy)});

class MathParser {
  constructor(source, display) {
    const pattern = /\\(?:[A-Za-z]+\*?|[\s\S])|%[^\n]*(?:\n|$)|\d+(?:\.\d+)?|\.\d+|\s+|[\s\S]/gu;
    // Blanks are kept as " ", since they count within \text.
    this.tokens = (source.match(pattern) || []).filter(t => !t.startsWith("%")).map(t => /^\s+$/.test(t) ? " " : t);
    if (this.tokens.length > MATH_TOKENS_MAX) throw new MathError("too long");
    this.at = 0;
    this.depth = 0;
    this.display = display;
    this.font = null;
  }

  skipBlanks() { while (this.tokens[this.at] === " ") this.at++ }
  peek() { this.skipBlanks(); return this.tokens[this.at] }
  next() {
    const token = this.peek();
    if (token === undefined) throw new MathError("the formula ends too early");
    this.at++;
    return token;
  }
  expect(token) { if (this.next() !== token) throw new MathError("expected " + token) }

  /* Parses the whole formula; lines between which "\\" stands become a table. */
  parseRows() {
    const rows = this.parseTable(t => t === undefined);
    return rows.length === 1 && rows[0].length === 1 ? rows[0][0] : this.makeTable(rows, "rl");
  }

  /* Parses atoms with scripts up to a token for which `ends` is true, which is not consumed. */
  parseRow(ends) {
    if (++this.depth > MATH_DEPTH_MAX) throw new MathError("too deep");
    const nodes = [], font = this.font;
    for (let token; !ends(token = this.peek());) {
      if (token === undefined || token === "}" || token === "&" || token === "\\\\" || token === "\\end" ||
          token === "\\right") throw new MathError("unexpected " + token);
      if (token === "\\over" || token === "\\choose" || token === "\\atop") {
        this.at++;
        const line = token === "\\over" ? {} : {linethickness: "0"};
        const fraction = makeNode("mfrac", [mathRow(nodes.splice(0)), this.parseRow(ends)], line);
        nodes.push(token === "\\choose" ? this.fenced("(", fraction, ")") : fraction);
        continue;
      }
      nodes.push(...this.parseScripted());
    }
    this.depth--;
    this.font = font;
    return mathRow(nodes);
  }

  /* Parses an atom with its scripts; returns [] for a command that shows nothing. */
  parseScripted() {
    const first = this.peek();
    const base = first === "^" || first === "_" || first === "'" ? {node: makeNode("mrow")} : this.parseAtom();
    if (!base) return [];
    let above = null, below = null, limits = base.limits;
    for (let token; (token = this.peek()) !== undefined;) {
      if (token === "\\limits" || token === "\\nolimits") limits = token === "\\limits" ? "always" : undefined;
      else if (token !== "^" && token !== "_" && token !== "'") break;
      this.at++;
      if (token === "'") {
        let n = 1;
        while (this.peek() === "'") { this.at++; n++ }
        const primes = mathOperator("′".repeat(n));
        above = above ? makeNode("mrow", [above, primes]) : primes;
      } else if (token === "^") above = above ? makeNode("mrow", [above, this.parseArgument()]) : this.parseArgument();
      else if (token === "_") {
        if (below) throw new MathError("two subscripts");
        below = this.parseArgument();
      }
    }
    const over = limits === "always" || (limits && this.display);
    let node = base.node;
    if (above && below) node = makeNode(over ? "munderover" : "msubsup", [node, below, above]);
    else if (above) node = makeNode(over ? "mover" : "msup", [node, above]);
    else if (below) node = makeNode(over ? "munder" : "msub", [node, below]);
    const after = base.isFunction && !/^([([{^_.,;)]|\\left|\\bigl?|\\}|\\right|&|\\\\)$/.test(this.peek() || ")");
    return after ? [node, mathSpace("0.1667em")] : [node];
  }

  /* Parses an argument: a group or one atom. */
  parseArgument() {
    const token = this.peek();
    if (token === "{") return this.parseGroup();
    if (/^\d./.test(token || "")) { // "x^12" raises 1 alone
      this.tokens[this.at] = token.slice(1);
      return makeNode("mn", token[0]);
    }
    const atom = this.parseAtom();
    return atom ? atom.node : makeNode("mrow");
  }

  parseGroup() {
    this.expect("{");
    const row = this.parseRow(t => t === "}");
    this.expect("}");
    return row;
  }

  /* Returns the plain text of a group: names, sizes, texts. */
  parseText() {
    this.expect("{");
    let text = "", depth = 0;
    for (; this.at < this.tokens.length; this.at++) {
      const token = this.tokens[this.at];
      if (token === "}" && !depth--) break;
      if (token === "{") depth++;
      else if (/^\\[{}$%&#_ ]$/.test(token)) text += token[1];
      else if (/^\\[,;:]$/.test(token)) text += "\u2009";
      else if (token === "\\\\" || token.startsWith("\\")) throw new MathError("a command within text");
      else if (token !== "}" && token !== "$") text += token === "~" ? "\u00a0" : token;
    }
    this.expect("}");
    return text;
  }

  parseOptional() {
    if (this.peek() !== "[") return null;
    this.at++;
    const row = this.parseRow(t => t === "]");
    this.expect("]");
    return row;
  }

  /* Returns {node, limits, isFunction}, or null for a command that shows nothing. */
  parseAtom() {
    const token = this.next();
    if (token === "{") { this.at--; return {node: this.parseGroup()} }
    if (/^[\d.]/.test(token) && token !== ".") return {node: makeNode("mn", this.styled(token))};
    if (token[0] === "\\" && token.length > 1) return this.parseCommand(token.slice(1));
    if (/^\p{L}$/u.test(token)) return {node: this.letter(token)};
    if (token === "~") return {node: mathSpace("0.333em")};
    if ("()[]|/".includes(token)) return {node: mathFence(token, false)};
    if (token === "-") return {node: mathOperator("−")};
    if (token === "*") return {node: mathOperator("∗")};
    if (token === "^" || token === "_" || token === "#" || token === "$" || token === "\\")
      throw new MathError("unexpected " + token);
    return {node: mathOperator(token)};
  }

  letter(text) {
    const styled = this.styled(text);
    return makeNode("mi", styled, this.font === "upright" ? {mathvariant: "normal"} : {});
  }

  /* Returns letters and digits in the font that is set. */
  styled(text) {
    const alphabet = MATH_ALPHABETS[this.font];
    return !alphabet ? text : [...text].map(c => {
      const [upper, lower, digit, others] = alphabet;
      if (others[c]) return others[c];
      if (c >= "A" && c <= "Z") return String.fromCodePoint(upper + c.charCodeAt(0) - 65);
      if (c >= "a" && c <= "z") return String.fromCodePoint(lower + c.charCodeAt(0) - 97);
      return c >= "0" && c <= "9" && digit ? String.fromCodePoint(digit + c.charCodeAt(0) - 48) : c;
    }).join("");
  }

  fenced(open, node, close) {
    return makeNode("mrow", [mathFence(open, true), node, mathFence(close, true)]);
  }

  delimiter() {
    const token = this.next();
    if (!MATH_DELIMITERS.has(token)) throw new MathError("not a delimiter: " + token);
    return MATH_DELIMITERS.get(token);
  }

  parseCommand(name) {
    if (MATH_LETTERS.has(name)) {
      const upright = /^[A-Z]/.test(name) || this.font === "upright";
      return {node: makeNode("mi", MATH_LETTERS.get(name), upright ? {mathvariant: "normal"} : {})};
    }
    if (MATH_OPERATORS.has(name)) return {node: mathOperator(MATH_OPERATORS.get(name))};
    if (MATH_LARGE.has(name)) return {node: mathOperator(MATH_LARGE.get(name)), limits: "display"};
    if (MATH_INTEGRALS.has(name)) return {node: mathOperator(MATH_INTEGRALS.get(name))};
    if (MATH_FUNCTIONS.has(name)) return {node: makeNode("mi", name), isFunction: true};
    if (MATH_LIMIT_FUNCTIONS.has(name))
      return {node: mathOperator(MATH_LIMIT_FUNCTIONS.get(name), {movablelimits: "true"}), limits: "display", isFunction: true};
    if (MATH_DELIMITERS.has("\\" + name)) return {node: mathFence(MATH_DELIMITERS.get("\\" + name), false)};
    if (Object.hasOwn(MATH_SPACES, name)) return {node: mathSpace(MATH_SPACES[name])};
    if (Object.hasOwn(MATH_ACCENTS, name)) {
      const [mark, stretchy] = MATH_ACCENTS[name], base = this.parseArgument();
      return {node: makeNode("mover", [base, mathOperator(mark, {stretchy: String(!!stretchy)})], {accent: "true"}),
        limits: name === "overbrace" ? "always" : undefined};
    }
    if (Object.hasOwn(MATH_UNDER, name)) {
      const node = makeNode("munder", [this.parseArgument(), mathOperator(MATH_UNDER[name], {stretchy: "true"})]);
      return {node, limits: name === "underbrace" ? "always" : undefined};
    }
    if (Object.hasOwn(MATH_FONTS, name)) return this.parseFont(name);
    return this.parseConstruct(name);
  }

  /* Parses \mathbf{...}, or \bf for the rest of the group. */
  parseFont(name) {
    const before = this.font;
    this.font = MATH_FONTS[name];
    if (["bf", "rm", "cal"].includes(name) && this.peek() !== "{") return null; // parseRow restores the font
    if (name.startsWith("text")) {
      const text = this.styled(this.parseText());
      this.font = before;
      return {node: makeNode("mtext", text)};
    }
    // A word within \mathrm is one name.
    const ahead = this.tokens.slice(this.at, this.at + 60).join("").match(/^ ?\{([A-Za-z]{2,})\}/);
    const node = ahead ? makeNode("mi", this.styled(this.parseText())) : this.parseArgument();
    this.font = before;
    return {node};
  }

  parseConstruct(name) {
    switch (name) {
    case "frac": case "dfrac": case "tfrac": case "cfrac": {
      const fraction = makeNode("mfrac", [this.parseArgument(), this.parseArgument()]);
      if (name === "frac") return {node: fraction};
      return {node: makeNode("mstyle", fraction, {displaystyle: String(name !== "tfrac"), scriptlevel: "0"})};
    }
    case "binom": case "dbinom": case "tbinom": {
      const fraction = makeNode("mfrac", [this.parseArgument(), this.parseArgument()], {linethickness: "0"});
      return {node: this.fenced("(", fraction, ")")};
    }
    case "sqrt": {
      const degree = this.parseOptional(), base = this.parseArgument();
      return {node: degree ? makeNode("mroot", [base, degree]) : makeNode("msqrt", base)};
    }
    case "text": case "textrm": case "textit": case "textsf": case "texttt": case "mbox": case "hbox":
      return {node: makeNode("mtext", this.parseText().replace(/^ | $/g, "\u00a0"))};
    case "operatorname": case "operatorname*": {
      const text = this.parseText().replace(/\\,/g, " ");
      return {node: mathOperator(text, {movablelimits: "true"}), isFunction: true, limits: name.endsWith("*") ? "display" : undefined};
    }
    case "left": return {node: this.parseLeft()};
    case "big": case "bigl": case "bigr": case "bigm": return this.parseBig("1.2em");
    case "Big": case "Bigl": case "Bigr": case "Bigm": return this.parseBig("1.8em");
    case "bigg": case "biggl": case "biggr": return this.parseBig("2.4em");
    case "Bigg": case "Biggl": case "Biggr": return this.parseBig("3em");
    case "begin": return {node: this.parseEnvironment()};
    case "overset": case "stackrel": {
      const above = this.parseArgument();
      return {node: makeNode("mover", [this.parseArgument(), above])};
    }
    case "underset": {
      const below = this.parseArgument();
      return {node: makeNode("munder", [this.parseArgument(), below])};
    }
    case "xrightarrow": case "xleftarrow": {
      const below = this.parseOptional(), above = this.parseArgument();
      const arrow = mathOperator(name === "xrightarrow" ? "→" : "←", {stretchy: "true"});
      return {node: below ? makeNode("munderover", [arrow, below, above]) : makeNode("mover", [arrow, above])};
    }
    case "substack": {
      this.expect("{");
      const rows = this.parseTable(t => t === "}");
      this.expect("}");
      return {node: this.makeTable(rows, "c")};
    }
    case "not": return this.parseNot();
    case "bmod": return {node: mathOperator("mod")};
    case "mod": return {node: makeNode("mrow", [mathSpace("1em"), makeNode("mi", "mod"), mathSpace("0.333em")])};
    case "pmod": {
      const inner = [makeNode("mi", "mod"), mathSpace("0.333em"), this.parseArgument()];
      return {node: makeNode("mrow", [mathSpace("0.6em"), mathFence("(", false), ...inner, mathFence(")", false)])};
    }
    case "boxed": case "fbox": return {node: makeNode("mrow", this.parseArgument(), {class: "boxed"})};
    case "phantom": case "hphantom": case "vphantom": return {node: makeNode("mphantom", this.parseArgument())};
    case "color": this.parseText(); return null;
    case "textcolor": this.parseText(); return {node: this.parseArgument()};
    case "tag": case "tag*": {
      const text = this.parseText();
      return {node: makeNode("mrow", [mathSpace("2em"), makeNode("mtext", name === "tag" ? `(${text})` : text)])};
    }
    case "label": this.parseText(); return null;
    case "hspace": case "vspace": case "hspace*": this.parseText(); return {node: mathSpace("1em")};
    case "mathop": return {node: this.parseArgument(), limits: "display"};
    case "hfill": case "strut": case "displaystyle": case "textstyle": case "scriptstyle": case "nonumber": case "notag": case "hline": return null;
    case "#": case "$": case "%": case "&": case "_": return {node: mathOperator(name)};
    default: throw new MathError("unknown command " + name);
    }
  }

  parseLeft() {
    const nodes = [mathFence(this.delimiter(), true)];
    for (;;) {
      nodes.push(this.parseRow(t => t === "\\right" || t === "\\middle"));
      const token = this.next();
      nodes.push(mathFence(this.delimiter(), true));
      if (token === "\\right") return makeNode("mrow", nodes);
    }
  }

  parseBig(size) {
    const text = this.delimiter();
    return {node: mathOperator(text, {stretchy: "true", minsize: size, maxsize: size})};
  }

  /* Parses a stroke through a relation, such as "\not=". */
  parseNot() {
    const atom = this.parseAtom(), text = atom && atom.node.children[0];
    if (typeof text !== "string") throw new MathError("nothing to strike");
    return {node: mathOperator(text + "\u0338")};
  }

  parseEnvironment() {
    const name = this.parseText().replace(/\*$/, "");
    if (!Object.hasOwn(MATH_TABLES, name)) throw new MathError("unknown environment " + name);
    const [open, close, usual] = MATH_TABLES[name];
    let columns = usual;
    if (name === "array" || name === "subarray") columns = this.parseText().replace(/[^lcr]/g, "") || usual;
    if (name === "alignat") this.parseText();
    const rows = this.parseTable(t => t === "\\end");
    this.expect("\\end");
    if (this.parseText().replace(/\*$/, "") !== name) throw new MathError("another environment ends");
    const table = this.makeTable(rows, columns, name);
    return open || close ? this.fenced(open || ".", table, close || ".") : table;
  }

  /* Parses rows of cells up to a token for which `ends` is true, which is not consumed. */
  parseTable(ends) {
    const rows = [[]], stops = t => t === "&" || t === "\\\\" || ends(t);
    for (;;) {
      rows[rows.length - 1].push(this.parseRow(stops));
      const token = this.peek();
      if (ends(token)) break;
      this.at++;
      if (token !== "\\\\") continue;
      if (this.tokens[this.at] === "[") { // a distance between rows, such as \\[4pt]
        const close = this.tokens.indexOf("]", this.at);
        if (close > 0 && /^[\d.\s]*(pt|em|ex|mm|cm)$/.test(this.tokens.slice(this.at + 1, close).join("")))
          this.at = close + 1;
      }
      if (!ends(this.peek())) rows.push([]);
      else break;
    }
    return rows;
  }

  /* Makes a table; `columns` has l, c or r for each column, repeated. */
  makeTable(rows, columns, name) {
    const cell = (node, k) => makeNode("mtd", node, {class: {l: "left", c: "middle", r: "right"}[columns[k % columns.length]]});
    const display = /^(align|split|gather|eqnarray|multline|equation)/.test(name || "aligned");
    return makeNode("mtable", rows.map(r => makeNode("mtr", r.map(cell))),
      {class: columns.startsWith("rl") ? "aligned" : "grid", displaystyle: String(display)});
  }
}
