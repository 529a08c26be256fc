/* SPDX-License-Identifier: MIT
 * Reads Markdown byte by byte in one of these states:
 *
 *     START   the first bytes of a line are held until they determine the kind of the line
 *     TEXT    within a line
 *     SPAN    a mark of bold, italics or code and the text after it are held until the closing mark
 *     CODE    within a block of code; the first bytes of its lines are read in START_CODE, as they may end the block
 *     LABEL   the rest of the line that begins a block of code, which names the language, is read */
#include "cli/markup.h"

#include <ctype.h>
#include <string.h>

enum { START, TEXT, SPAN, LABEL, START_CODE, CODE };

cli_markup cli_markup_begin(cli_markup_fn *write, void *user)
{
    return (cli_markup){.write = write, .user = user, .before = '\n'};
}

static bool flush_out(cli_markup *m)
{
    size_t n = m->n_out;
    m->n_out = 0;
    return !n || m->write(m->user, m->out, n, m->out_style, m->out_verbatim);
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

static bool put_bytes(cli_markup *m, const char *text, size_t n, unsigned style)
{
    bool is_verbatim = m->state >= LABEL, ok = true;
    style |= m->line;
    if (m->n_out && (style != m->out_style || is_verbatim != m->out_verbatim)) ok = flush_out(m);
    m->out_style = style;
    m->out_verbatim = is_verbatim;
    for (size_t i = 0; ok && i < n; i++) {
        bool is_full = m->n_out + 8 > sizeof m->out && !is_continuation(text[i]);
        if (is_full || m->n_out == sizeof m->out) ok = flush_out(m);
        m->out[m->n_out++] = text[i];
    }
    if (n) m->before = text[n - 1];
    return ok;
}

static bool put_held(cli_markup *m, unsigned style)
{
    size_t n = m->n_held;
    m->n_held = 0;
    return put_bytes(m, m->held, n, style);
}

/* ---- blocks of code -------------------------------------------------------------------------------- */

/* Returns whether the held word is a keyword in one of many programming languages. */
static bool is_keyword(const cli_markup *m)
{
    static const char words[] =
        " and as async await bool break case catch char class const continue def default del do double elif else enum "
        "except export extends extern false finally float fn for from func function go if impl import in int interface "
        "is lambda let long loop match mod mut new nil None not null or package pass pub raise return self short "
        "signed sizeof static struct switch then this throw trait True False try type typedef union unsigned use using "
        "var void volatile while with yield true done esac fi local echo select where insert update delete ";
    char word[20];
    if (m->n_held + 3 > sizeof word) return false;
    word[0] = ' ';
    memcpy(word + 1, m->held, m->n_held);
    word[m->n_held + 1] = ' ';
    word[m->n_held + 2] = 0;
    return strstr(words, word) != NULL;
}

static bool put_word(cli_markup *m)
{
    unsigned style = 0;
    if (m->n_held && isdigit((unsigned char)m->held[0]))
        style = CLI_STYLE_NUMBER;
    else if (m->n_held && is_keyword(m))
        style = CLI_STYLE_KEYWORD;
    return put_held(m, CLI_STYLE_CODE | style);
}

/* Returns the byte with which comments begin in the language that a block's label names: '#', or '-' or '/' (doubled).
 * Unknown languages have '/'. Returns 0 if there are no comments or no label. */
static char find_comment(const char *label, size_t n)
{
    static const struct {
        const char *names;
        char byte;
    } rows[] = {
        {" python py sh bash shell zsh console ruby rb perl yaml yml toml make makefile dockerfile r julia elixir "
         "cmake "
         "conf ini nix awk tcl ",
         '#'},
        {" sql lua haskell hs ada elm ", '-'},
        {" text txt markdown md json html xml css csv diff plain output ", 0},
    };
    char name[24] = " ";
    size_t n_name = 0;
    while (n_name < n && n_name + 3 < sizeof name && (isalnum((unsigned char)label[n_name]) || label[n_name] == '+')) {
        name[n_name + 1] = (char)tolower((unsigned char)label[n_name]);
        n_name++;
    }
    name[n_name + 1] = ' ';
    name[n_name + 2] = 0;
    for (size_t i = 0; n_name && i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(rows[i].names, name)) return rows[i].byte;
    return n_name ? '/' : 0;
}

static bool add_code(cli_markup *m, char c)
{
    if (m->has_comment) return put_bytes(m, &c, 1, CLI_STYLE_CODE | CLI_STYLE_COMMENT);
    if (m->quote) {
        if (!m->is_escaped && c == m->quote) m->quote = 0;
        m->is_escaped = !m->is_escaped && c == '\\';
        return put_bytes(m, &c, 1, CLI_STYLE_CODE | CLI_STYLE_STRING);
    }
    if (isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80) {
        if (m->n_held + 8 > sizeof m->held && !is_continuation(c) && !put_word(m)) return false;
        if (m->n_held == sizeof m->held && !put_word(m)) return false;
        m->held[m->n_held++] = c;
        return true;
    }
    /* Only a doubled '/' or '-' begins a comment, so the first of them is held until the next byte. */
    bool is_second = m->comment && m->comment != '#' && m->n_held == 1 && m->held[0] == m->comment && c == m->comment;
    if (is_second) {
        m->has_comment = true;
        return put_held(m, CLI_STYLE_CODE | CLI_STYLE_COMMENT) &&
            put_bytes(m, &c, 1, CLI_STYLE_CODE | CLI_STYLE_COMMENT);
    }
    if (!put_word(m)) return false;
    if (c == '#' && m->comment == '#' && strchr(" \t\n;", m->before)) {
        m->has_comment = true;
        return put_bytes(m, &c, 1, CLI_STYLE_CODE | CLI_STYLE_COMMENT);
    }
    if (m->comment && m->comment != '#' && c == m->comment) {
        m->held[m->n_held++] = c;
        return true;
    }
    if (m->comment && (c == '"' || (c == '\'' && !isalnum((unsigned char)m->before)))) {
        m->quote = c;
        m->is_escaped = false;
        return put_bytes(m, &c, 1, CLI_STYLE_CODE | CLI_STYLE_STRING);
    }
    return put_bytes(m, &c, 1, CLI_STYLE_CODE);
}

static bool end_code_line(cli_markup *m)
{
    bool ok = put_word(m) && put_bytes(m, "\n", 1, CLI_STYLE_CODE);
    m->quote = 0;
    m->has_comment = false;
    m->state = START_CODE;
    return ok;
}

/* Returns how many fence marks follow the blanks at the beginning of the held line; *at: the offset after them. */
static size_t count_fence(const cli_markup *m, char mark, size_t *at)
{
    size_t begin = 0;
    while (begin < m->n_held && m->held[begin] == ' ') begin++;
    *at = begin;
    while (*at < m->n_held && m->held[*at] == mark) ++*at;
    return *at - begin;
}

static bool add_code_byte(cli_markup *m, char c)
{
    return c == '\n' ? end_code_line(m) : add_code(m, c);
}

/* Passes the held bytes from index `i` on to `add` again; the earlier ones are dropped. */
static bool replay_held(cli_markup *m, size_t i, bool (*add)(cli_markup *m, char c))
{
    char held[sizeof m->held];
    size_t n = m->n_held;
    memcpy(held, m->held, n);
    m->n_held = 0;
    bool ok = true;
    for (; ok && i < n; i++) ok = add(m, held[i]);
    return ok;
}

/* Adds one of the first bytes of a line of code. They are held as long as the line may be the fence that ends the
 * block. */
static bool add_start_code(cli_markup *m, char c)
{
    size_t at;
    m->held[m->n_held++] = c;
    size_t n = count_fence(m, m->fence, &at);
    if (at == m->n_held && m->n_held < 80) return true; /* so far only blanks and fence marks */
    if (n >= m->n_fence && c == '\n') {                 /* a line of fence marks alone ends the block */
        bool ok = put_held(m, CLI_STYLE_CODE | CLI_STYLE_COMMENT);
        m->state = START;
        return ok;
    }
    if (n >= m->n_fence && c == ' ' && m->n_held < 80) return true;
    m->state = CODE;
    return replay_held(m, 0, add_code_byte);
}

/* ---- spans of bold, italics and code -------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Returns whether '*' or '_' after this byte may open a span. After a letter or digit it may not: "2*3" and
 * "snake_case" contain no marks. */
static bool opens_after(char c)
{
    return is_blank(c) || strchr("([{\"'>-/:,;", c) != NULL;
}

/* Returns the length of the mark at the beginning of the held span: **, __, * or _, or one to eight `. */
static size_t mark_bytes(const cli_markup *m)
{
    size_t n = 1, most = m->held[0] == '`' ? 8 : 2;
    while (n < m->n_held && n < most && m->held[n] == m->held[0]) n++;
    return n;
}

static bool add_text(cli_markup *m, char c);

/* Writes the mark that begins the held text as ordinary text, since it begins no span, and reads the rest of the text
 * again. */
static bool give_up_span(cli_markup *m)
{
    char rest[sizeof m->held];
    size_t n_mark = mark_bytes(m), n = m->n_held;
    memcpy(rest, m->held, n);
    m->n_held = 0;
    m->state = TEXT;
    bool ok = put_bytes(m, rest, n_mark, 0);
    for (size_t i = n_mark; ok && i < n; i++) ok = add_text(m, rest[i]);
    return ok;
}

/* If the held text ends with the closing mark, writes the span without its marks. c: the byte after the held text.
 * *is_closed: the span was written. */
static bool close_span(cli_markup *m, char c, bool *is_closed)
{
    size_t n_mark = mark_bytes(m), n = m->n_held, n_end = 0;
    char mark = m->held[0], text[sizeof m->held];
    bool is_code = mark == '`';
    while (n_end < n - n_mark && m->held[n - 1 - n_end] == mark) n_end++;
    *is_closed = n > 2 * n_mark && n_end == n_mark && c != mark &&
        (is_code ||
         (!is_blank(m->held[n - n_mark - 1]) && !is_blank(m->held[n_mark]) &&
          (mark == '*' || !isalnum((unsigned char)c))));
    if (!*is_closed) return true;
    memcpy(text, m->held + n_mark, n - 2 * n_mark);
    m->n_held = 0;
    m->state = TEXT;
    unsigned style = CLI_STYLE_ITALIC;
    if (is_code)
        style = CLI_STYLE_CODE;
    else if (n_mark == 2)
        style = CLI_STYLE_BOLD;
    return put_bytes(m, text, n - 2 * n_mark, style);
}

static bool add_span(cli_markup *m, char c)
{
    size_t n_mark = mark_bytes(m);
    bool is_code = m->held[0] == '`', is_closed = false;
    bool is_more = m->n_held == n_mark && c == m->held[0] && n_mark < (is_code ? 8u : 2u);
    if (!is_more && !close_span(m, c, &is_closed)) return false;
    if (is_closed) return add_text(m, c);
    bool is_empty = m->n_held == n_mark && !is_code && is_blank(c);
    if (c == '\n' || is_empty || m->n_held + 1 >= sizeof m->held) return give_up_span(m) && add_text(m, c);
    m->held[m->n_held++] = c;
    return true;
}

static bool add_text(cli_markup *m, char c)
{
    if (m->state == SPAN) return add_span(m, c);
    if (c == '\n') {
        bool ok = put_bytes(m, &c, 1, 0);
        m->line = 0;
        m->state = START;
        return ok;
    }
    if (c == '`' || ((c == '*' || c == '_') && opens_after(m->before))) {
        m->held[m->n_held++] = c;
        m->state = SPAN;
        return true;
    }
    return put_bytes(m, &c, 1, 0);
}

/* ---- beginnings of lines -------------------------------------------------------------------------- */

/* Ends the state START: passes the held bytes from index `i` on to the state TEXT. */
static bool begin_text(cli_markup *m, size_t i)
{
    m->state = TEXT;
    return replay_held(m, i, add_text);
}

/* Adds one of the first bytes of a line. They are held until they form the mark of a heading, list, quote or block, or
 * cannot form one. */
static bool add_start(cli_markup *m, char c)
{
    size_t begin = 0, at;
    m->held[m->n_held++] = c;
    while (begin < m->n_held && m->held[begin] == ' ') begin++;
    if (begin == m->n_held) return m->n_held < 40 || begin_text(m, 0);
    const char *mark = m->held + begin;
    size_t n = m->n_held - begin, n_same = 1;
    while (n_same < n && mark[n_same] == mark[0]) n_same++;
    bool all_same = n_same == n;
    switch (mark[0]) {
    case '#':
        if (all_same && n <= 6) return true;
        if (c != ' ' || n_same > 6) break;
        m->line = CLI_STYLE_BOLD;
        return begin_text(m, m->n_held); /* the held marks are not written */
    case '>':
        if (n == 1) return true;
        m->line = CLI_STYLE_QUOTE;
        return begin_text(m, 0);
    case '`':
    case '~':
        if (all_same && n < 3) return true;
        if (n < 3 || !all_same) break;
        m->n_fence = count_fence(m, mark[0], &at);
        m->fence = mark[0];
        m->state = LABEL;
        return true;
    case '-':
    case '*':
    case '+':
        if (n == 1) return true;
        if (n == 2 && c == ' ') { /* the line begins with the mark of a list's item */
            static const char bullet[] = "\xe2\x80\xa2 ";
            m->n_held = begin;
            return put_held(m, 0) && put_bytes(m, bullet, sizeof bullet - 1, 0) && begin_text(m, 0);
        }
        break;
    default: break;
    }
    return begin_text(m, 0);
}

/* Adds a byte of the label, which is the rest of the line that begins a block of code. */
static bool add_label(cli_markup *m, char c)
{
    size_t at;
    if (c == m->fence && m->n_fence < 12) {
        size_t n = count_fence(m, m->fence, &at);
        if (at == m->n_held) m->n_fence = n + 1;
    }
    if (c != '\n' && m->n_held + 1 < sizeof m->held) {
        /* If fence marks occur again in the line, as in ```one line```, the line does not begin a block. */
        m->held[m->n_held++] = c;
        (void)count_fence(m, m->fence, &at);
        if (c == '`' && m->fence == '`' && at < m->n_held) return begin_text(m, 0);
        return true;
    }
    (void)count_fence(m, m->fence, &at);
    while (at < m->n_held && m->held[at] == ' ') at++;
    m->comment = find_comment(m->held + at, m->n_held - at);
    m->quote = 0;
    m->has_comment = false;
    bool ok = put_held(m, CLI_STYLE_CODE | CLI_STYLE_COMMENT);
    m->state = CODE;
    if (c == '\n') return ok && end_code_line(m);
    return ok && add_code(m, c);
}

static bool add_byte(cli_markup *m, char c)
{
    switch (m->state) {
    case START: return add_start(m, c);
    case LABEL: return add_label(m, c);
    case START_CODE: return add_start_code(m, c);
    case CODE: return c == '\n' ? end_code_line(m) : add_code(m, c);
    default: return add_text(m, c);
    }
}

/* Returns the length of the text before the next possible mark, line feed or zero byte; 0 outside the state TEXT. This
 * text is written at once, so that characters are not split. */
static size_t plain_run(const cli_markup *m, const char *text, size_t n)
{
    size_t i = 0;
    if (m->state != TEXT) return 0;
    while (i < n && !strchr("\n`*_", text[i] ? text[i] : '\n')) i++;
    return i;
}

bool cli_markup_add(cli_markup *m, const char *text, size_t n_bytes)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n_bytes;) {
        size_t n = plain_run(m, text + i, n_bytes - i);
        ok = n ? put_bytes(m, text + i, n, 0) : add_byte(m, text[i]);
        i += n ? n : 1;
    }
    return ok && flush_out(m);
}

bool cli_markup_is_code(const cli_markup *m)
{
    return m->state >= LABEL;
}

bool cli_markup_end(cli_markup *m)
{
    bool is_closed, ok = m->state != START || begin_text(m, 0);
    while (ok && m->state == SPAN) ok = close_span(m, '\n', &is_closed) && (is_closed || give_up_span(m));
    return ok && put_held(m, m->state >= LABEL ? CLI_STYLE_CODE : 0) && flush_out(m);
}
