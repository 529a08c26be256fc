/* SPDX-License-Identifier: MIT
 * Tests the parts of the page that need no browser: Markdown, LaTeX, colours, records. node page_parts.js FOLDER */
"use strict";
const fs = require("fs"), vm = require("vm");

const parts = ["samplers", "records", "hidden", "inline", "markdown", "colours", "math_symbols", "math"];
const source = parts.map(p => fs.readFileSync(`${process.argv[2]}/${p}.js`, "utf8")).join("\n");
const page = vm.runInNewContext(source + "\n;({parseMarkdown, parseInline, convertMath, colourCode, readExport, " +
  "markHidden, exportRecords, joinImport, pathOf, requestMessages, firstToKeep, findWords, isContinuable})", {URL, crypto: globalThis.crypto});
let failures = 0;

function check(found, wanted, what) {
  const a = typeof found === "string" ? found : JSON.stringify(found), b = typeof wanted === "string" ? wanted : JSON.stringify(wanted);
  if (a === b) return;
  failures++;
  console.log(`FAILED: ${what}\n  found:  ${a}\n  wanted: ${b}`);
}

/* A node as text; attributes that every formula or link has are left out. */
const HIDDEN = new Set(["alttext", "target", "rel", "display", "aria-label", "type", "disabled"]);
function write(node) {
  if (typeof node === "string") return node;
  if (node.tag === "copy") return "";
  const attributes = Object.entries(node.attributes).filter(([k, v]) => v !== undefined && !HIDDEN.has(k));
  return `<${node.tag}${attributes.map(([k, v]) => ` ${k}=${v}`).join("")}>${node.children.map(write).join("")}</${node.tag}>`;
}

/* ---- inline Markdown ----------------------------------------------------------------------------- */

for (const [text, wanted] of [
  ["***x***", "<strong><em>x</em></strong>"],
  ["***a** b*", "<em><strong>a</strong> b</em>"],
  ["***a* b**", "<strong><em>a</em> b</strong>"],
  ["a **b *c* d** e", "a <strong>b <em>c</em> d</strong> e"],
  ["snake_case_x, _em_, 2 * 3 * 4", "snake_case_x, <em>em</em>, 2 * 3 * 4"],
  ["*a*b **c", "<em>a</em>b **c"],
  ["~~d~~ ~e~", "<del>d</del> ~e~"],
  ["`a*b*` ``b`c`` `open", "<code>a*b*</code> <code>b`c</code> `open"],
  ["\\*x\\* &lt;b&gt; &unknown;", "*x* <b> &unknown;"],
  ["a  \nb<br>c\\\nd", "a<br></br>b<br></br>c<br></br>d"],
  ["[a](https://x.y/z_(q) \"t\")", "<a href=https://x.y/z_(q)>a</a>"],
  ["(see https://a.b/c). http://d.e/f_g_h!", "(see <a href=https://a.b/c>https://a.b/c</a>). <a href=http://d.e/f_g_h>http://d.e/f_g_h</a>!"],
  ["[bad](javascript:alert(1)) [b](data:text/html,x) [c](file:///etc)", "[bad](javascript:alert(1)) [b](data:text/html,x) [c](file:///etc)"],
  ["![i](https://a.b/i.png)", "<a href=https://a.b/i.png>image: i</a>"],
  ["<script>alert(1)</script>", "<script>alert(1)</script>"],
  ["[a [b](https://c.d) e](https://f.g)", "<a href=https://f.g/>a [b](https://c.d) e (f.g)</a>"],
  // A label that is the address of another host than the link's.
  ["[https://good.example/a](https://bad.example:8/)", "<a href=https://bad.example:8/>https://good.example/a (bad.example:8)</a>"],
  ["[**good.example**](http://bad.example)", "<a href=http://bad.example/><strong>good.example</strong> (bad.example)</a>"],
  ["https://good.example@bad.example/", "<a href=https://good.example@bad.example/>https://good.example@bad.example/ (bad.example)</a>"],
  ["https://a\u0440\u0440le.com", "<a href=https://xn--ale-0eda.com/>https://a\u0440\u0440le.com (xn--ale-0eda.com)</a>"],
  ["[Good.example:8/x](https://good.example) [v1.2 of it](https://b.c)", "<a href=https://good.example/>Good.example:8/x</a> <a href=https://b.c/>v1.2 of it</a>"],
  ["[https://good.example \u2013 sign in](https://bad.example)", "<a href=https://bad.example/>https://good.example \u2013 sign in (bad.example)</a>"],
  ["[Sign in at \"www.good.example\"](https://bad.example)", "<a href=https://bad.example/>Sign in at \"www.good.example\" (bad.example)</a>"],
  ["[at:https://good.example/bad.example](https://bad.example)", "<a href=https://bad.example/>at:https://good.example/bad.example (bad.example)</a>"],
  ["[read good.example](https://good.example) https://a.b/c.html", "<a href=https://good.example/>read good.example</a> <a href=https://a.b/c.html>https://a.b/c.html</a>"],
  // Dollars: formulas, prices, variables of a shell.
  ["$x$ costs $5 and $10", "<math><mi>x</mi></math> costs $5 and $10"],
  ["$HOME/$PATH and US$5", "$HOME/$PATH and US$5"],
  ["\\(y\\) and \\[z\\] and $\\nope{x}$", "<math><mi>y</mi></math> and <math><mi>z</mi></math> and $\\nope{x}$"],
]) check(page.parseInline(text).map(write).join(""), wanted, text);

/* ---- hidden characters --------------------------------------------------------------------------- */

for (const [text, wanted] of [
  ["plain\ttext\n\u00e9\u4e2d", "plain\ttext\n\u00e9\u4e2d"],
  ["echo ok\rrm -rf x\u001b[2J", "echo ok<U+000D>rm -rf x<U+001B>[2J"],
  ["a\r\nb\r\r\n", "a\nb<U+000D>\n"],
  ["a\u202eb\u2066c\u200bd\u2028e\u{e0041}f\ufeff\0", "a<U+202E>b<U+2066>c<U+200B>d<U+2028>e<U+E0041>f<U+FEFF><U+0000>"],
  ["\u2764\ufe0f \u{1f469}\u200d\u{1f4bb} \u0646\u200c\u0645", "\u2764\ufe0f \u{1f469}\u200d\u{1f4bb} \u0646\u200c\u0645"],
  ["x\u200d\u00e9\ufe0f\u200d\ufe0e", "x<U+200D>\u00e9\ufe0f\u200d<U+FE0E>"],
  ["a" + " ".repeat(64) + "b" + " ".repeat(70) + "\n" + "\t".repeat(8) + "c", "a" + " ".repeat(64) + "b" + " ".repeat(70) + "\n" + "\t".repeat(8) + "c"],
  ["ls" + " ".repeat(65) + "; rm", "ls" + "<U+0020>".repeat(65) + "; rm"],
  ["\t".repeat(8) + " x", "<U+0009>".repeat(8) + "<U+0020>x"],
]) check(page.markHidden(text), wanted, JSON.stringify(text));

/* ---- blocks -------------------------------------------------------------------------------------- */

for (const [text, wanted] of [
  ["# H #\n###### deep\n---", "<h2>H</h2><h6>deep</h6><hr></hr>"],
  ["- [x] done\n- [ ] to do\n  - sub\n\n- c", "<ul><li class=task><input checked=></input>done</li><li class=task>" +
    "<input></input><p>to do</p><ul><li>sub</li></ul></li><li>c</li></ul>"],
  ["3. x\n4. y", "<ol start=3><li>x</li><li>y</li></ol>"],
  ["1. a\n\n   b\n2. c", "<ol><li><p>a</p><p>b</p></li><li>c</li></ol>"],
  ["> q\n> > r", "<blockquote><p>q</p><blockquote><p>r</p></blockquote></blockquote>"],
  ["t\n| a | b |\n|:-:|--:|\n| `x|y` | 1\\|2 |", "<p>t</p><div class=table><table><thead><tr><th class=middle>a</th>" +
    "<th class=right>b</th></tr></thead><tbody><tr><td class=middle><code>x|y</code></td><td class=right>1|2</td></tr></tbody></table></div>"],
  ["a | b", "<p>a | b</p>"],
  ["~~~\n```\n~~~\nx", "<div class=code><pre><code>```</code></pre></div><p>x</p>"],
  ["```js\nopen", "<div class=code><pre><code data-language=js>open</code></pre></div>"],
  ["$$\nx^2\n$$", "<p class=formula><math><msup><mi>x</mi><mn>2</mn></msup></math></p>"],
  ["so\n\\begin{gather*}\nx\n\\end{gather*}", "<p>so</p><p class=formula><math><mtable class=grid displaystyle=true><mtr><mtd class=middle><mi>x</mi></mtd></mtr></mtable></math></p>"],
  ["\\begin{document}\nx", "<p>\\begin{document}\nx</p>"],
  ["\\[ x", "<p>\\[ x</p>"],
  ["$$\n\\nope\n$$", "<p class=raw>$$\n\\nope\n$$</p>"],
]) check(page.parseMarkdown(text).map(b => write(b.node)).join(""), wanted, text);
// Deep nesting ends as text rather than in an overflow of the stack, and no text takes long.
for (const text of [">".repeat(20000) + "x", "- ".repeat(20000) + "x", "*".repeat(50000), "[".repeat(50000), "**a ".repeat(20000),
  "`a".repeat(50000), "\\(".repeat(50000), "$a".repeat(50000), "{".repeat(50000), "http://".repeat(20000), "~~a~~b~~".repeat(9000)])
  check(page.parseMarkdown(text).length > 0, true, text.slice(0, 8) + "...");
check(page.convertMath("{".repeat(500) + "x" + "}".repeat(500), true), null, "a formula that is nested too deep");
check(page.convertMath("x".repeat(5000), true), null, "a formula that is too long");
// The blocks before the end of a growing answer keep their sources, by which a view keeps their elements.
const whole = "# A\n\nb **c**\n\n- d\n- e\n\n```\nf\n```\n\ng", blocks = page.parseMarkdown(whole).map(b => b.source);
for (let n = 0; n <= whole.length; n++) {
  const part = page.parseMarkdown(whole.slice(0, n)).map(b => b.source);
  for (let i = 0; i + 1 < part.length; i++) check(part[i], blocks[i], `block ${i} of the first ${n} characters`);
}

/* ---- LaTeX --------------------------------------------------------------------------------------- */

const row = inner => `<mrow>${inner}</mrow>`, op = t => `<mo>${t}</mo>`, mi = t => `<mi>${t}</mi>`, mn = t => `<mn>${t}</mn>`;
const paren = inner => row(`<mo stretchy=true>(</mo>${inner}<mo stretchy=true>)</mo>`);
for (const [text, wanted] of [
  ["\\frac{a}{b}+\\sqrt[3]{x}-\\sqrt y", row(`<mfrac>${mi("a")}${mi("b")}</mfrac>${op("+")}<mroot>${mi("x")}${mn(3)}</mroot>${op("−")}<msqrt>${mi("y")}</msqrt>`)],
  ["\\sum_{i=1}^n", `<munderover>${op("∑")}${row(mi("i") + op("=") + mn(1))}${mi("n")}</munderover>`],
  ["\\int_0^\\infty", `<msubsup>${op("∫")}${mn(0)}<mi>∞</mi></msubsup>`],
  ["\\int\\limits_0^1", `<munderover>${op("∫")}${mn(0)}${mn(1)}</munderover>`],
  ["f''", `<msup>${mi("f")}${op("′′")}</msup>`],
  ["f'^2", `<msup>${mi("f")}${row(op("′") + mn(2))}</msup>`],
  ["\\lim_{h\\to0}", `<munder><mo movablelimits=true>lim</mo>${row(mi("h") + op("→") + mn(0))}</munder>`],
  ["x^12", row(`<msup>${mi("x")}${mn(1)}</msup>${mn(2)}`)],
  ["3.14", mn("3.14")],
  ["\\left(\\frac12\\right)", paren(`<mfrac>${mn(1)}${mn(2)}</mfrac>`)],
  ["\\binom nk", paren(`<mfrac linethickness=0>${mi("n")}${mi("k")}</mfrac>`)],
  ["a \\over b", `<mfrac>${mi("a")}${mi("b")}</mfrac>`],
  ["\\begin{pmatrix}a&b\\\\c&d\\end{pmatrix}", paren("<mtable class=grid displaystyle=false>" +
    [["a", "b"], ["c", "d"]].map(r => `<mtr>${r.map(c => `<mtd class=middle>${mi(c)}</mtd>`).join("")}</mtr>`).join("") + "</mtable>")],
  ["\\begin{cases}1&\\text{if }x\\\\0\\end{cases}", row("<mo stretchy=true>{</mo><mtable class=grid displaystyle=false><mtr>" +
    `<mtd class=left>${mn(1)}</mtd><mtd class=left>${row("<mtext>if\u00a0</mtext>" + mi("x"))}</mtd></mtr><mtr><mtd class=left>${mn(0)}</mtd></mtr></mtable><mrow></mrow>`)],
  ["\\begin{align*}a&=b\\\\[4pt]&=c\\end{align*}", "<mtable class=aligned displaystyle=true><mtr><mtd class=right><mi>a</mi></mtd>" +
    `<mtd class=left>${row(op("=") + mi("b"))}</mtd></mtr><mtr><mtd class=right><mrow></mrow></mtd><mtd class=left>${row(op("=") + mi("c"))}</mtd></mtr></mtable>`],
  ["\\mathbb{R}^n", `<msup>${mi("ℝ")}${mi("n")}</msup>`],
  ["\\mathbf{x}\\mathcal L\\mathrm{rank}", row(mi("𝐱") + mi("ℒ") + mi("rank"))],
  ["\\alpha\\Gamma\\le\\hat\\theta", row(mi("α") + "<mi mathvariant=normal>Γ</mi>" + op("≤") + `<mover accent=true>${mi("θ")}<mo stretchy=false>^</mo></mover>`)],
  ["\\sin x", row(mi("sin") + "<mspace width=0.1667em></mspace>" + mi("x"))],
  ["\\underbrace{x}_{n}", `<munder><munder>${mi("x")}<mo stretchy=true>⏟</mo></munder>${mi("n")}</munder>`],
  ["50\\%\\ \\#1", row(mn(50) + op("%") + "<mspace width=0.333em></mspace>" + op("#") + mn(1))],
  ["a\\not=b", row(mi("a") + op("=\u0338") + mi("b"))],
  ["x % a comment", mi("x")],
  ["\\text{a\\,b}", "<mtext>a\u2009b</mtext>"],
]) { const node = page.convertMath(text, true); check(node ? write(node.children[0]) : "null", wanted, text) }
for (const text of ["\\nope{x}", "{", "}", "x^", "a_b_c", "\\frac{a}", "\\begin{pmatrix}a\\end{bmatrix}", "\\left( x", "\\text{\\bad}",
  "\\href{javascript:alert(1)}{x}", "\\def\\x{\\x}\\x", "\\constructor", "\\begin{constructor}\\end{constructor}", "x^^2", "#", " "])
  check(page.convertMath(text, true), null, text);
// Formulas as answers write them are all converted.
for (const text of ["\\left\\{ x \\in \\mathbb{R} \\mid x > 0 \\right\\}", "\\left. \\frac{df}{dx} \\right|_{x=0}", "\\Pr(A \\mid B) = \\frac{P(B \\mid A)\\,P(A)}{P(B)}",
  "\\|x\\|_2^2", "\\boxed{x = 42}", "\\begin{bmatrix} 1 & 2 \\\\ 3 & 4 \\end{bmatrix}^{-1}", "\\mathbb{E}[X] = \\int_{-\\infty}^{\\infty} x f(x)\\, \\mathrm{d}x",
  "\\frac{\\partial^2 u}{\\partial t^2} = c^2 \\nabla^2 u", "\\operatorname*{arg\\,min}_{\\theta} \\mathcal{L}(\\theta)", "\\sqrt{\\frac{1}{n}\\sum_{i=1}^{n}(x_i-\\bar{x})^2}",
  "\\overset{!}{=} \\quad \\underset{x}{\\max}", "a \\equiv b \\pmod{n}", "\\lim_{n \\to \\infty} \\left(1 + \\frac{1}{n}\\right)^n = e", "9.81\\ \\text{m/s}^2",
  "\\begin{array}{c|cc} 1 & 2 & 3 \\\\ \\hline 4 & 5 & 6 \\end{array}", "\\xrightarrow[n]{\\text{d}}", "\\Big( \\vec{a} \\cdot \\vec{b} \\Big)", "f: A \\to B,\\; x \\mapsto x^2", "\\sum_{\\substack{i<j\\\\ j \\le n}} a_{ij}",
  "\\ce", "e^{i\\pi} + 1 = 0 \\tag{1}"])
  check(page.convertMath(text, true) !== null, text !== "\\ce", text);
// A sum within a line has its limits beside it: the browser decides by the formula's display.
check(write(page.convertMath("\\sum_1^2", false)), `<math><msubsup>${op("∑")}${mn(1)}${mn(2)}</msubsup></math>`, "a sum in a line");

/* ---- colours ------------------------------------------------------------------------------------- */

const c = (name, text) => `<span class=c-${name}>${text}</span>`;
for (const [language, text, wanted] of [
  ["c", "int x = 0x1F; // int\n/* a", c("keyword", "int") + " x = " + c("number", "0x1F") + "; " + c("comment", "// int") + "\n" + c("comment", "/* a")],
  ["Python", "x = f'a' # '\n'''b\nc'''", "x = f" + c("string", "'a'") + " " + c("comment", "# '") + "\n" + c("string", "'''b\nc'''")],
  ["bash", "echo $x # c\n$# a#b", c("keyword", "echo") + " " + c("keyword", "$x") + " " + c("comment", "# c") + "\n" + c("keyword", "$#") + " a#b"],
  ["sql", "Select 1 -- x", c("keyword", "Select") + " " + c("number", "1") + " " + c("comment", "-- x")],
  ["js", "a = `x\n${y}` + 'b\\'c'", "a = " + c("string", "`x\n${y}`") + " + " + c("string", "'b\\'c'")],
  ["html", "<b class=\"x\">t</b><!-- c", c("keyword", "<b") + " class=" + c("string", "\"x\"") + c("keyword", ">") + "t" + c("keyword", "</b") + c("keyword", ">") + c("comment", "<!-- c")],
  ["diff", "-a\n+b\n c", c("removed", "-a") + "\n" + c("added", "+b") + "\n c"],
  ["unheard", "int x", "int x"], ["constructor", "int x", "int x"], ["", "int x", "int x"],
]) {
  const nodes = page.colourCode(text, language), plain = n => typeof n === "string" ? n : n.children.map(plain).join("");
  check(nodes.map(write).join(""), wanted, language + ": " + text);
  check(nodes.map(plain).join(""), text, language + " changes its text");
}

/* ---- records ------------------------------------------------------------------------------------- */

const flat = page.readExport({version: 1, conversations: [{id: "c", title: "t", sampling: {temperature: 1, bad: 2, top_k: "x"},
  messages: [{role: "user", content: "q"}, {role: "system"}, null, {role: "assistant", content: "a"}]}, {messages: 1}, null]});
const dated = page.readExport({conversations: [{messages: []}, {messages: []}, {messages: [], updated: 5}]}).map(r => r.updated);
check(dated[0] > dated[1] && dated[2] === 5, true, "the order of an older export");
check(flat.map(r => r.kind + (r.parent ?? "")), ["conversation", "message", "messagec.0"], "an export of version 1");
check(flat[0].sampling, {temperature: 1}, "sampling that is not known");
const message = (id, parent, role, more) => ({id, parent, role, content: id, thinking: "", files: [], created: Number(id.slice(1)) || 0, error: "", state: "done", ...more});
const tree = [message("q1", "", "user"), message("a2", "q1", "assistant"), message("a3", "q1", "assistant"), message("q4", "a2", "user"), message("q5", "", "user")];
const ids = chosen => page.pathOf({chosen}, tree).map(p => p.message.id + "/" + p.siblings.length);
check(ids({}), ["q5/2"], "the newest branch");
check(ids({"": "q1"}), ["q1/2", "a3/2"], "an earlier question");
check(ids({"": "q1", q1: "a2", a2: "gone"}), ["q1/2", "a2/2", "q4/1"], "an earlier answer");
const cyclic = page.readExport({version: 2, conversations: [{id: "c", messages: [message("a1", "a2", "user"), message("a2", "a1", "user")]}]});
check(page.pathOf(cyclic[0], cyclic.slice(1)).length, 2, "messages in a circle");
const late = page.readExport({version: 2, conversations: [{id: "c", messages: [message("a1", "q2", "assistant"), message("q2", "", "user")]}]});
check(page.pathOf(late[0], late.slice(1)).map(p => p.message.id), ["q2", "a1"], "an answer that stands before its question");
const exported = page.exportRecords([flat[0]], () => flat.slice(1));
check(page.exportRecords(...(r => [[r[0]], () => r.slice(1)])(page.readExport(exported))), exported, "an export that is read again");
// An export beside what is here: equal messages stay once, new ones join, a message of another text makes a copy.
const here = new Map([["c", flat[0]]]), kept = id => (id === "c" ? flat.slice(1) : []);
const join = records => page.joinImport(records, here, kept);
const again = page.readExport(exported), changed = page.readExport(exported), longer = page.readExport(exported);
again[0].title = "an older title";
check(join(again), [flat[0]], "the same messages again, and the title stays");
changed[1].content = "another question";
const copy = join(changed);
check(copy[0].id !== "c" && copy.length === flat.length && copy.slice(1).every(m => m.conversation === copy[0].id), true, "a message of another text");
here.set(copy[0].id, copy[0]);
const withCopy = records => page.joinImport(records, here, id => (id === copy[0].id ? copy.slice(1) : kept(id)));
check(withCopy(changed), [copy[0]], "what was copied before");
here.set(copy[0].id, {...copy[0], deleted: 1});
check(withCopy(changed).length, flat.length, "a copy that is about to be deleted");
here.delete(copy[0].id);
longer.push({...longer[2], id: "c.2", parent: "c.1"});
check(join(longer).map(r => r.id), ["c", "c.2"], "a message more");
here.set("c", {...flat[0], deleted: 1});
check(join(again)[0].id !== "c", true, "a conversation that is about to be deleted");
check(page.requestMessages([message("q1", "", "user"), message("a2", "q1", "assistant", {error: "e", content: ""}),
  message("q3", "a2", "user", {files: [{name: "f", text: "`````x"}]})]),
  [{id: "q3", role: "user", content: "File f:\n``````\n`````x\n``````\n\nq3"}], "a failed answer, and a file");
check(page.requestMessages([message("q1", "", "user"), message("a2", "q1", "assistant", {content: "a\0b"})])[1].content, "a\uFFFDb",
  "a zero byte of a model");
check(page.isContinuable(message("a1", "", "assistant", {state: "stopped"})) && !page.isContinuable(message("a1", "", "assistant")), true, "continue");
// Turns of 10 characters each; of 100 tokens 50 may stay.
const turns = Array.from({length: 10}, (_, i) => ({role: i % 2 ? "assistant" : "user", content: "x".repeat(9)}));
check(page.firstToKeep(turns, 0, 100, 50), 6, "half of the turns, whole ones");
check(page.firstToKeep(turns, 6, 100, 1), 8, "the last turn stays");
check(page.firstToKeep(turns, 8, 100, 1), 8, "nothing more to leave out");
check(page.findWords("Red cat", "a title", [message("the red sun", "", "user"), message("one Cat\nhere", "", "user")]),
  {excerpt: "the red sun", message: "the red sun"}, "words in several messages");
check(page.findWords("red dog", "red", [message("x", "", "user")]), null, "a word that is nowhere");
console.log(failures ? failures + " failed" : "all parts are as they should be");
process.exit(failures ? 1 : 0);
