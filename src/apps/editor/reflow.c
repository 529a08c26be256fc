/* SPDX-License-Identifier: MIT
 * Reformats lines: breaks paragraphs at a width, and indents lines by their brackets. */
#include "editor/state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define RANGE_BYTES  (16u << 20) /* maximum number of bytes that one command changes */
#define PREFIX_BYTES 200

struct paragraph {
    /* leaders (see leader_bytes) of the paragraph's first line and of its other lines */
    char first[PREFIX_BYTES], others[PREFIX_BYTES];
    whit_buf *out;
    const char *ending;
    int width, column, n_words;
    int tab_columns;
};

static bool has_comments(const struct ed_doc *doc)
{
    const char *name = whit_syntax_name(doc->syntax);
    return strcmp(name, "markdown") != 0 && strcmp(name, "text") != 0;
}

static size_t blanks_at(const char *line, size_t n)
{
    size_t i = 0;
    while (i < n && (line[i] == ' ' || line[i] == '\t')) i++;
    return i;
}

/* Returns the length of a line's leader: its indentation, and a comment or quotation sign with the blanks after it.
 * comments: comment signs count. */
static size_t leader_bytes(const char *line, size_t n, bool comments)
{
    static const char *const signs[] = {"///", "//!", "//", "#", "*", "--", ";;", ";", "%", ">"};
    size_t i = blanks_at(line, n);
    for (size_t k = comments ? 0 : 9; k < sizeof signs / sizeof *signs; k++) {
        size_t length = strlen(signs[k]);
        if (n - i < length || memcmp(line + i, signs[k], length) != 0) continue;
        if (i + length < n && line[i + length] != ' ' && line[i + length] != '\t') continue;
        if (!strcmp(signs[k], "*") && i + 1 < n && line[i + 1] == '/') continue;
        i += length;
        return i + blanks_at(line + i, n - i);
    }
    return i;
}

/* Returns the length of a list marker such as "- ", "* ", "+ " or "12. " with its blanks; 0 if the text does not begin
 * with one. */
static size_t item_bytes(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && isdigit((uint8_t)text[i])) i++;
    if (i ? i < n && (text[i] == '.' || text[i] == ')') : n && strchr("-*+", *text) != NULL)
        i++;
    else
        return 0;
    return i < n && text[i] == ' ' ? i + blanks_at(text + i, n - i) : 0;
}

static int columns_of(const char *text, int tab_columns)
{
    int column = 0;
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "\t");
        column += whit_glyphs_width(at, n);
        at += n;
        if (*at == '\t') {
            column += tab_columns - column % tab_columns;
            at++;
        }
    }
    return column;
}

static void put_word(struct paragraph *p, const char *word, size_t n)
{
    int width = whit_glyphs_width(word, n);
    bool breaks = p->n_words && p->column + 1 + width > p->width;
    if (breaks) whit_buf_append_str(p->out, p->ending);
    if (breaks || !p->n_words) {
        const char *prefix = p->n_words ? p->others : p->first;
        whit_buf_append_str(p->out, prefix);
        p->column = columns_of(prefix, p->tab_columns);
    } else {
        whit_buf_append(p->out, " ", 1);
        p->column++;
    }
    whit_buf_append(p->out, word, n);
    p->column += width;
    p->n_words++;
}

static void end_paragraph(struct paragraph *p)
{
    if (p->n_words) whit_buf_append_str(p->out, p->ending);
    p->n_words = 0;
}

static void begin_paragraph(struct paragraph *p, const char *line, size_t n_leader, size_t n_item)
{
    int n = (int)(n_leader + n_item < PREFIX_BYTES ? n_leader + n_item : PREFIX_BYTES - 1);
    snprintf(p->first, sizeof p->first, "%.*s", n, line);
    snprintf(p->others, sizeof p->others, "%.*s%*s", (int)(n_leader < PREFIX_BYTES ? n_leader : PREFIX_BYTES - 1), line,
             (int)n_item, "");
}

static void take_line(struct paragraph *p, const char *line, size_t n, bool comments)
{
    size_t leader = leader_bytes(line, n, comments), item = item_bytes(line + leader, n - leader);
    if (leader == n) { /* a line that consists of a leader only is kept and ends the paragraph */
        end_paragraph(p);
        whit_buf_append(p->out, line, n);
        whit_buf_append_str(p->out, p->ending);
        return;
    }
    if (item) end_paragraph(p);
    if (!p->n_words) begin_paragraph(p, line, leader, item);
    for (size_t at = leader + item; at < n;) {
        size_t begin = at + blanks_at(line + at, n - at), end = begin;
        while (end < n && line[end] != ' ' && line[end] != '\t') end++;
        if (end > begin) put_word(p, line + begin, end - begin);
        at = end;
    }
}

/* Returns a copy of the lines of a range. Returns NULL, with a message, if the range is too long or memory runs out. */
static char *read_lines(ed *e, whit_range lines)
{
    size_t n = (size_t)(lines.end - lines.begin);
    char *text = n <= RANGE_BYTES ? malloc(n + 1) : NULL;
    if (n > RANGE_BYTES)
        ed_complain(e, "at most %u MiB can be reflowed or indented at once", RANGE_BYTES >> 20);
    else if (!text)
        ed_complain(e, "not enough memory to reflow or indent %zu bytes", n);
    if (text) text[whit_text_read(ed_text(e), lines.begin, text, n)] = 0;
    return text;
}

static void put_back(ed *e, whit_range lines, const char *before, const whit_buf *after)
{
    size_t n = (size_t)(lines.end - lines.begin), same = 0;
    if (after->failed || (after->size_bytes == n && !memcmp(after->data, before, n))) return;
    while (same < n && same < after->size_bytes && before[same] == (char)after->data[same]) same++;
    while (same && before[same - 1] != '\n') same--;
    ed_edit(e, lines.begin + same, n - same, after->data + same, after->size_bytes - same);
}

uint64_t ed_reflow(ed *e, whit_range lines)
{
    struct ed_doc *doc = e->window->doc;
    char *text = read_lines(e, lines);
    whit_buf out = {0};
    size_t n = (size_t)(lines.end - lines.begin);
    if (!text) return lines.begin;
    int width = doc->project.line_columns ? doc->project.line_columns : e->settings.text_columns;
    struct paragraph p = {
        .out = &out, .ending = ed_line_ending(e, lines.begin), .width = width, .tab_columns = doc->tab_columns};
    bool feeds = n && text[n - 1] == '\n';
    for (size_t at = 0, length; at < n; at += length + 1) {
        const char *feed = memchr(text + at, '\n', n - at);
        length = feed ? (size_t)(feed - text) - at : n - at;
        size_t end = at + length;
        while (end > at && strchr(" \t\r", text[end - 1])) end--;
        take_line(&p, text + at, end - at, has_comments(doc));
    }
    end_paragraph(&p);
    if (!feeds && out.size_bytes) out.size_bytes -= strlen(p.ending);
    put_back(e, lines, text, &out);
    uint64_t last = lines.begin + (out.size_bytes > feeds ? out.size_bytes - feeds : 0);
    whit_buf_free(&out);
    free(text);
    return last;
}

/* ---- indentation --------------------------------------------------------------------------- */

/* Returns the bracket depth after a line, given the depth before it. Strings and // comments are skipped. */
static int follow_brackets(const char *line, size_t n, int depth)
{
    for (size_t i = 0; i < n; i++) {
        char byte = line[i];
        if (byte == '/' && i + 1 < n && line[i + 1] == '/') break;
        if (byte == '"' || (byte == '\'' && i + 2 < n && (line[i + 2] == '\'' || line[i + 1] == '\\'))) {
            for (i++; i < n && line[i] != byte; i++)
                if (line[i] == '\\') i++;
        } else if (strchr("([{", byte)) {
            depth++;
        } else if (strchr(")]}", byte)) {
            depth--;
        }
    }
    return depth;
}

static void put_indent(whit_buf *out, const struct ed_doc *doc, int columns)
{
    if (doc->indent_tabs)
        for (; columns >= doc->tab_columns; columns -= doc->tab_columns) whit_buf_append(out, "\t", 1);
    for (; columns > 0; columns--) whit_buf_append(out, " ", 1);
}

/* Returns the column to which the first line of a range at `begin` is indented: that of the last line before it that is
 * neither blank nor a '#' line, plus one level if that line opens a bracket. */
static int base_columns(ed *e, uint64_t begin)
{
    struct ed_doc *doc = e->window->doc;
    while (begin) {
        uint64_t line = whit_text_line_begin(ed_text(e), begin - 1);
        char text[1000];
        size_t n =
            whit_text_read(ed_text(e), line, text, begin - line < sizeof text - 1 ? begin - line : sizeof text - 1);
        text[n] = 0;
        size_t blanks = blanks_at(text, n);
        begin = line;
        if (blanks == n || strchr("\r\n#", text[blanks])) continue;
        int depth = follow_brackets(text + blanks, n - blanks, 0);
        text[blanks] = 0;
        return columns_of(text, doc->tab_columns) + (depth > 0 ? doc->indent_columns : 0);
    }
    return 0;
}

bool ed_reindent(ed *e, whit_range lines)
{
    static const char *const others[] = {"python", "yaml", "markdown", "text", "make"};
    struct ed_doc *doc = e->window->doc;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(whit_syntax_name(doc->syntax), others[i])) {
            ed_complain(e, "%s has no brackets to indent by", others[i]);
            return false;
        }
    char *text = read_lines(e, lines);
    whit_buf out = {0};
    size_t n = (size_t)(lines.end - lines.begin);
    int base = base_columns(e, lines.begin), depth = 0;
    if (!text) return false;
    for (size_t at = 0, length; at < n; at += length) {
        const char *feed = memchr(text + at, '\n', n - at);
        length = feed ? (size_t)(feed - text) + 1 - at : n - at;
        size_t blanks = blanks_at(text + at, length), from = at + blanks;
        bool empty = blanks == length || text[from] == '\n' || text[from] == '\r';
        size_t closers = 0;
        while (!empty && from + closers < at + length && strchr(")]}", text[from + closers])) closers++;
        int columns = base + (depth - (int)closers) * doc->indent_columns;
        /* a line that begins with '#', such as a preprocessor directive, keeps its indentation */
        if (!empty && text[from] == '#')
            whit_buf_append(&out, text + at, blanks);
        else if (!empty)
            put_indent(&out, doc, columns > 0 ? columns : 0);
        whit_buf_append(&out, text + from, at + length - from);
        depth = follow_brackets(text + from, at + length - from, depth);
    }
    put_back(e, lines, text, &out);
    whit_buf_free(&out);
    free(text);
    return true;
}

/* ---- commands ------------------------------------------------------------------------------ */

/* Returns the range of the selected lines or, with `paragraph` and no selection, of the cursor's paragraph. */
static whit_range lines_here(ed *e, bool paragraph)
{
    whit_range range = ed_selection(ed_cursor(e));
    uint64_t size = whit_text_size(ed_text(e));
    whit_range lines = {whit_text_line_begin(ed_text(e), range.begin), 0};
    uint64_t last = range.end > range.begin ? range.end - 1 : range.end;
    lines.end = whit_text_line_end(ed_text(e), last);
    if (range.begin == range.end && paragraph) {
        while (lines.begin && !ed_vi_is_empty_line(e, lines.begin - 1))
            lines.begin = whit_text_line_begin(ed_text(e), lines.begin - 1);
        while (lines.end < size && !ed_vi_is_empty_line(e, lines.end + 1) && lines.end + 1 < size)
            lines.end = whit_text_line_end(ed_text(e), lines.end + 1);
    }
    if (lines.end < size) lines.end++;
    return lines;
}

void ed_do_reflow(ed *e)
{
    uint64_t last = ed_reflow(e, lines_here(e, true));
    *ed_cursor(e) = (struct ed_cursor){last, ED_NONE, -1};
}

void ed_do_reindent(ed *e)
{
    whit_range lines = lines_here(e, false);
    if (ed_reindent(e, lines)) *ed_cursor(e) = (struct ed_cursor){ed_skip_blanks(e, lines.begin), ED_NONE, -1};
}
