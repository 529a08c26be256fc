/* SPDX-License-Identifier: MIT
 * Shows characters that a browser hides, so that what is read is what is sent and copied (src/base/plain.c has the
 * same list). A carriage return in a line of code would be a hidden Enter in the shell into which it is pasted, and
 * many blanks would move the rest of a line out of sight. */

const HIDDEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2028\u2029\u2800\ufff9-\ufffb\u{13430}-\u{1343f}\u{1d159}]/u;
const JOINER = /[\u200c\u200d\ufe00-\ufe0f]/;
const BLANKS_MAX = 64, TAB_COLUMNS = 8;

const markOf = c => "<U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + ">";

/* Marks the blanks of runs wider than BLANKS_MAX columns that have text after them. */
function markRuns(text) {
  const width = run => [...run].reduce((n, c) => n + (c === "\t" ? TAB_COLUMNS : 1), 0);
  return text.replace(/[ \t]{9,}(?=[^ \t\r\n])/g, run => width(run) > BLANKS_MAX ? [...run].map(markOf).join("") : run);
}

/* Returns a text in which every hidden character is a mark such as <U+202E>. Two joiners or variation selectors after a
 * character outside ASCII belong to scripts and emoji, and stay. */
function markHidden(text) {
  text = markRuns(text);
  if (!HIDDEN.test(text)) return text;
  let marked = "", joiners = 0;
  for (const c of text.replaceAll("\r\n", "\n")) {
    const isJoined = joiners > 0 && JOINER.test(c), isHidden = !isJoined && HIDDEN.test(c);
    if (isJoined) joiners--;
    else joiners = c > "\x7f" && !isHidden ? 2 : 0;
    marked += isHidden ? markOf(c) : c;
  }
  return marked;
}

