/* SPDX-License-Identifier: MIT
 * Colours code: comments, strings, numbers and keywords, by a table of languages. An unknown language stays plain. */

const CODE_MAX = 100000; // characters; longer code stays plain, since it is parsed again while an answer grows

const C_WORDS = "auto break case char const continue default do double else enum extern float for goto if inline int " +
  "long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while " +
  "bool true false NULL nullptr";
const SCRIPT_WORDS = "async await break case catch class const continue debugger default delete do else export extends " +
  "false finally for from function if import in instanceof let new null of return static super switch this throw true " +
  "try typeof undefined var void while with yield";

/* Lists the languages. line and block: how comments begin; quotes: characters around strings; more: a further pattern
 * of strings. */
const LANGUAGES = {
  c: {line: "//", block: true, quotes: "\"'", words: C_WORDS, marks: /#[ \t]*[a-z]+/},
  cpp: {line: "//", block: true, quotes: "\"'", marks: /#[ \t]*[a-z]+/, words: C_WORDS + " class namespace template " +
    "typename public private protected virtual override final using new delete this try catch throw constexpr auto " +
    "operator friend noexcept explicit"},
  java: {line: "//", block: true, quotes: "\"'", words: "abstract boolean break byte case catch char class const " +
    "continue default do double else enum extends final finally float for if implements import instanceof int " +
    "interface long native new null package private protected public record return short static super switch " +
    "synchronized this throw throws true false try var void volatile while fun val when object override data sealed " +
    "string namespace using foreach in out ref async await get set"},
  js: {line: "//", block: true, quotes: "\"'`", words: SCRIPT_WORDS},
  ts: {line: "//", block: true, quotes: "\"'`", words: SCRIPT_WORDS + " type interface enum implements private public " +
    "protected readonly as any string number boolean never unknown declare namespace keyof"},
  go: {line: "//", block: true, quotes: "\"'`", words: "break case chan const continue default defer else fallthrough " +
    "for func go goto if import interface map package range return select struct switch type var nil true false " +
    "string int int64 float64 byte rune bool error"},
  rust: {line: "//", block: true, quotes: "\"", words: "as async await break const continue crate dyn else enum extern " +
    "false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type " +
    "unsafe use where while i32 i64 u8 u32 u64 usize f32 f64 bool str String Vec Option Result"},
  swift: {line: "//", block: true, quotes: "\"", words: "as break case catch class continue default defer do else enum " +
    "extension false for func guard if import in init inout is let nil private protocol public return self static " +
    "struct super switch throw throws true try var where while"},
  php: {line: "//|#", block: true, quotes: "\"'", words: "abstract array as break case catch class const continue " +
    "default do echo else elseif extends false final for foreach function if implements include interface namespace " +
    "new null private protected public require return static switch this throw true try use var while"},
  python: {line: "#", quotes: "\"'", more: /[rbfu]*("""[\s\S]*?(?:"""|(?![\s\S]))|'''[\s\S]*?(?:'''|(?![\s\S])))/, words: "and as assert " +
    "async await break class continue def del elif else except False finally for from global if import in is lambda " +
    "None nonlocal not or pass raise return self True try while with yield match case"},
  ruby: {line: "#", quotes: "\"'", words: "alias and begin break case class def defined do else elsif end ensure false " +
    "for if in module next nil not or redo require rescue retry return self super then true undef unless until when " +
    "while yield"},
  sh: {line: "#", quotes: "\"'", words: "if then else elif fi for in do done while until case esac function return " +
    "local export set unset echo exit cd test source read shift trap sudo", marks: /\$\{?[A-Za-z_]\w*\}?|\$[0-9@#?*!]/},
  lua: {line: "--", quotes: "\"'", words: "and break do else elseif end false for function goto if in local nil not or " +
    "repeat return then true until while"},
  haskell: {line: "--", quotes: "\"", words: "case class data deriving do else if import in infix instance let module " +
    "newtype of then type where"},
  sql: {line: "--", block: true, quotes: "\"'", anyCase: true, words: "select from where insert into values update set " +
    "delete create table index view drop alter add primary key foreign references join left right inner outer full on " +
    "group by order having limit offset distinct as and or not null is in like between union all case when then else " +
    "end exists with default unique int integer text varchar"},
  json: {quotes: "\"", words: "true false null"},
  yaml: {line: "#", quotes: "\"'", words: "true false null yes no", marks: /^[ \t-]*[\w.-]+(?=:)/m},
  toml: {line: "#", quotes: "\"'", words: "true false", marks: /^[ \t]*\[[^\]\n]*\]/m},
  css: {block: true, quotes: "\"'", words: "important inherit initial none auto", marks: /@[\w-]+|[\w-]+(?=\s*:)/},
  html: {quotes: "\"'", comment: /<!--[\s\S]*?(?:-->|(?![\s\S]))/, marks: /<\/?[A-Za-z][\w:-]*|\/?>/, words: ""},
  make: {line: "#", quotes: "\"'", words: "ifeq ifneq ifdef ifndef else endif include define endef", marks: /\$[({][^)}\n]*[)}]/},
};
const LANGUAGE_NAMES = {h: "c", cc: "cpp", "c++": "cpp", cxx: "cpp", hpp: "cpp", cs: "java", csharp: "java",
  kotlin: "java", kt: "java", scala: "java", javascript: "js", jsx: "js", mjs: "js", typescript: "ts", tsx: "ts",
  golang: "go", rs: "rust", py: "python", python3: "python", rb: "ruby", bash: "sh", shell: "sh", zsh: "sh",
  console: "sh", hs: "haskell", yml: "yaml", ini: "toml", scss: "css", less: "css", xml: "html", svg: "html",
  makefile: "make", cmake: "make", dockerfile: "sh", jsonc: "js", json5: "js", postgresql: "sql", mysql: "sql"};

/* Builds the pattern of a language; its named groups are the classes of CSS. */
function languagePattern(l) {
  const comments = [], strings = [];
  if (l.comment) comments.push(l.comment.source);
  if (l.block) comments.push("/\\*[\\s\\S]*?(?:\\*/|(?![\\s\\S]))");
  if (l.line) comments.push("(?:" + (l.line === "#" ? "(?<![\\w$\\\\])#" : l.line) + ").*");
  if (l.more) strings.push(l.more.source);
  for (const q of l.quotes || "")
    strings.push(q === "`" ? "`(?:[^`\\\\]|\\\\[\\s\\S])*`?" : `${q}(?:[^${q}\\\\\\n]|\\\\[\\s\\S])*${q}?`);
  const parts = [];
  if (comments.length) parts.push(`(?<comment>${comments.join("|")})`);
  if (strings.length) parts.push(`(?<string>${strings.join("|")})`);
  if (l.marks) parts.push(`(?<keyword>${l.marks.source})`);
  parts.push("(?<number>\\b(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\w*)", "(?<word>[A-Za-z_$][\\w$]*)");
  return new RegExp(parts.join("|"), "gm");
}

/* Returns the nodes of a block of code. */
function colourCode(text, language) {
  const name = language.toLowerCase().replace(/^\{?\.?|\}$/g, "");
  if (name === "diff" || name === "patch") return colourDiff(text);
  const known = Object.hasOwn(LANGUAGE_NAMES, name) ? LANGUAGE_NAMES[name] : name;
  if (!Object.hasOwn(LANGUAGES, known) || text.length > CODE_MAX) return [text];
  const l = LANGUAGES[known];
  l.pattern = l.pattern || languagePattern(l);
  l.set = l.set || new Set(l.words.split(" "));
  const nodes = [];
  let at = 0;
  for (const m of text.matchAll(l.pattern)) {
    const g = m.groups;
    let name = g.comment !== undefined ? "comment" : g.string !== undefined ? "string" : null;
    if (!name && g.keyword !== undefined) name = "keyword";
    if (!name && g.number !== undefined) name = "number";
    if (!name && l.set.has(l.anyCase ? g.word.toLowerCase() : g.word)) name = "keyword";
    if (!name || !m[0]) continue;
    if (m.index > at) nodes.push(text.slice(at, m.index));
    nodes.push(makeNode("span", m[0], {class: "c-" + name}));
    at = m.index + m[0].length;
  }
  if (at < text.length || !nodes.length) nodes.push(text.slice(at));
  return nodes;
}

function colourDiff(text) {
  const classes = {"+": "c-added", "-": "c-removed", "@": "c-keyword"};
  return text.split("\n").flatMap((line, i) => {
    const name = classes[line[0]], end = i ? ["\n"] : [];
    return [...end, name ? makeNode("span", line, {class: name}) : line];
  });
}
