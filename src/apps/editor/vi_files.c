/* SPDX-License-Identifier: MIT
 * Runs the commands of vi's line that deal with files, buffers and windows, with settings and with the shell. */
#include "editor/state.h"

#include "base/file.h"
#include "base/items.h"
#include "base/path.h"
#include "base/shell.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

void ed_vi_skip_blanks(const char **at)
{
    while (**at == ' ' || **at == '\t') ++*at;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Writes the path of a typed file name. As in vi, % in a name that no file has stands for this text's file. Returns
 * false, with a message, for what vi reads in another way than as a name. */
static bool take_name(ed *e, const char *typed, char path[PATH_MAX])
{
    const char *name = e->window->doc->buffer->path ? e->window->doc->buffer->name : NULL;
    char expanded[PATH_MAX];
    size_t n = 0;
    whit_file_identity there;
    whit_file_identify(ed_typed_path(typed, path), &there);
    if (there.exists) return true;
    if (!strncmp(typed, ">>", 2)) {
        ed_vi_fail(e, "nothing is appended: ':w !cat >>FILE' does that");
        return false;
    }
    if (!strcmp(typed, "#") || strstr(typed, "%:") || (strchr(typed, '%') && !name)) {
        ed_vi_fail(e, "type the file's name: nothing stands for '%.100s' here", typed);
        return false;
    }
    for (; *typed && n < sizeof expanded; typed++) {
        const char *part = *typed == '%' ? name : typed;
        n += (size_t)snprintf(expanded + n, sizeof expanded - n, "%.*s", part == name ? PATH_MAX : 1, part);
    }
    if (n >= sizeof expanded) {
        ed_vi_fail(e, "the file's name is longer than %d bytes, the limit", PATH_MAX - 1);
        return false;
    }
    expanded[n] = 0;
    ed_typed_path(expanded, path);
    return true;
}

static bool write_doc(ed *e, const char *name, bool force)
{
    struct ed_doc *doc = e->window->doc;
    char path[PATH_MAX];
    if (*name && !take_name(e, name, path)) return false;
    if (*name && doc->buffer->path && ed_doc_find(e, path) != doc) {
        ed_save_copy(e, path, force);
        return false;
    }
    if (*name) {
        ed_save_under(e, path, force, NULL);
        return false;
    }
    ed_save(e, doc, force);
    return !e->prompt.kind && !whit_buffer_is_modified(doc->buffer);
}

static void write_all(ed *e, bool quits)
{
    if (ed_save_all(e) && quits) ed_quit_next(e);
}

static void open_file(ed *e, const char *name)
{
    whit_error error;
    char path[PATH_MAX];
    if (!take_name(e, name, path)) return;
    struct ed_doc *doc = ed_open_file(e, path, &error);
    if (doc)
        ed_show(e, doc);
    else
        ed_complain_error(e, &error);
}

static void read_again(ed *e)
{
    if (!e->window->doc->buffer->path) return;
    if (ed_read_again(e)) ed_say(e, "the file was read again");
}

/* Closes the window. If it is the only one, closes its buffer; unless `force` is set, asks about unsaved changes. */
static void quit(ed *e, bool force)
{
    if (e->root != e->window) {
        ed_window_close(e);
        return;
    }
    if (force)
        ed_close_doc(e, e->window->doc);
    else
        ed_vi_run(e, "close");
}

void ed_vi_set(ed *e, const char *option)
{
    bool on = strncmp(option, "no", 2) != 0;
    const char *name = on ? option : option + 2;
    struct ed_doc *doc = e->window->doc;
    int value = 0;
    if (!strcmp(name, "nu") || !strcmp(name, "number")) {
        e->settings.numbers = on;
    } else if (!strcmp(name, "wrap")) {
        e->window->wrap = on;
    } else if (!strcmp(name, "et") || !strcmp(name, "expandtab")) {
        doc->indent_tabs = !on;
    } else if (sscanf(name, "ts=%d", &value) == 1 || sscanf(name, "tabstop=%d", &value) == 1) {
        if (value >= 1 && value <= 16) doc->tab_columns = value;
    } else if (sscanf(name, "sw=%d", &value) == 1 || sscanf(name, "shiftwidth=%d", &value) == 1) {
        if (value >= 1 && value <= 16) doc->indent_columns = value;
    } else {
        ed_vi_fail(
            e, "':set' supports number, wrap, expandtab, tabstop and shiftwidth; other options are set in edit.conf");
    }
}

/* ---- commands of vi's line ----------------------------------------------------------------- */

/* Advances *at past a word that is a prefix of `name` and at least as long as `least`. Returns false for another
 * word. */
bool ed_vi_takes(const char **at, const char *least, const char *name)
{
    size_t n = 0;
    while (isalpha((uint8_t)(*at)[n])) n++;
    if (n < strlen(least) || n > strlen(name) || strncmp(*at, name, n) || (*at)[n] == '-') return false;
    *at += n;
    return true;
}

bool ed_vi_files(ed *e, const char *at)
{
    const char *from = at;
    bool force;
#define TAKES(least, name)                                                                                             \
    (at = from, ed_vi_takes(&at, least, name) && (force = *at == '!', at += force, ed_vi_skip_blanks(&at), true))
    if (TAKES("w", "write")) {
        write_doc(e, at, force);
    } else if (TAKES("sav", "saveas")) {
        char path[PATH_MAX];
        if (*at && take_name(e, at, path))
            ed_save_under(e, path, force, NULL);
        else if (*at)
            return true;
        else if (!strncmp(from, "save", 4) && !isalpha((uint8_t)from[4])) /* the editor's own command "save" */
            ed_save(e, e->window->doc, force);
        else
            ed_vi_fail(e, "':saveas FILE' needs a name");
    } else if (TAKES("wq", "wq") || TAKES("x", "xit")) {
        struct ed_doc *doc = e->window->doc;
        bool saved = from[0] == 'x' && !*at && !whit_buffer_is_modified(doc->buffer);
        if (saved || write_doc(e, at, force)) quit(e, true);
    } else if (TAKES("wa", "wall")) {
        write_all(e, false);
    } else if (TAKES("wqa", "wqall") || TAKES("xa", "xall")) {
        write_all(e, true);
    } else if (TAKES("qa", "qall")) {
        if (force)
            e->done = true;
        else
            ed_quit_next(e);
    } else if (TAKES("q", "quit") || TAKES("clo", "close")) {
        quit(e, force);
    } else if (TAKES("bd", "bdelete")) {
        if (force)
            ed_close_doc(e, e->window->doc);
        else
            ed_vi_run(e, "close");
    } else if (TAKES("e", "edit")) {
        if (*at)
            open_file(e, at);
        else if (force)
            read_again(e);
        else
            ed_vi_fail(e, "':e FILE' opens a file, ':e!' reads this file again and drops unsaved changes");
    } else if (TAKES("on", "only")) {
        ed_window_only(e);
    } else if (TAKES("bn", "bnext")) {
        ed_vi_run(e, "next-buffer");
    } else if (TAKES("bp", "bprevious") || TAKES("bN", "bNext")) {
        ed_vi_run(e, "previous-buffer");
    } else if (TAKES("ls", "ls") || TAKES("buffers", "buffers") || TAKES("b", "buffer")) {
        ed_vi_run(e, "buffers");
    } else if (TAKES("sp", "split") || TAKES("vs", "vsplit") || TAKES("vsp", "vsplit")) {
        ed_vi_run(e, *from == 'v' ? "split-beside" : "split-below");
        if (*at) open_file(e, at);
    } else if (TAKES("tabe", "tabedit") || TAKES("tabnew", "tabnew")) {
        if (*at) open_file(e, at);
    } else if (TAKES("f", "file")) {
        ed_vi_run(e, "info");
    } else if (TAKES("h", "help")) {
        ed_vi_run(e, "help");
    } else {
        return false;
    }
#undef TAKES
    return true;
}

/* ---- the shell ----------------------------------------------------------------------------- */

/* Returns whether programs can take a file's name as nothing else than a path. Names such as "--output=Makefile",
 * "+!ls" and "host:file" could also be an option, a command of the program's own or a file of another machine. */
static bool is_only_path(const char *name)
{
    const bool has_usual_start = isalnum((uint8_t)*name) || strchr("_.", *name) || (uint8_t)*name >= 0x80;
    return whit_path_is_absolute(name) || (has_usual_start && !strpbrk(name, ":="));
}

/* Copies a command and replaces each % by the text's file, in quotes if its name needs them; \% becomes a plain %.
 * Within the command's own quotes such a name is refused: its quotes would end those, and the shell would run the name.
 */
bool ed_vi_expand(ed *e, const char *from, char *to, size_t room)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-";
    const char *own = e->window->doc->buffer->path ? e->window->doc->buffer->name : "";
    char name[PATH_MAX + 2];
    snprintf(name, sizeof name, "%s%s", is_only_path(own) ? "" : "./", own);
    const bool is_plain = *name && !name[strspn(name, plain)];
    whit_buf word = {0};
    const bool has_word = is_plain ? whit_buf_append_str(&word, name) : whit_shell_quote(&word, name);
    size_t n = 0;
    char quote = 0;         /* the sign that opened the quotes around `from` */
    bool is_nested = false; /* quotes have begun in which others may begin: those in `quote` may not be the shell's */
    for (; *from && n + 8 < room; from++) {
        if (from[0] == '\\' && from[1] == '%') {
            to[n++] = *++from;
        } else if (from[0] == '\\' && from[1] && quote != '\'') {
            to[n++] = *from++;
            to[n++] = *from;
        } else if (*from != '%') {
            const bool is_substituted = *from == '`' || (*from == '$' && from[1] && strchr("({", from[1]));
            if ((quote == '"' && is_substituted) || (!quote && from[0] == '$' && from[1] == '\'')) is_nested = true;
            if (strchr("'\"`", *from) && (!quote || quote == *from)) quote = quote ? 0 : *from;
            to[n++] = *from;
        } else if (!is_plain && (quote || is_nested)) {
            ed_vi_fail(e, "the file's name has signs of the shell: write %% without quotes, which are added%s",
                       quote ? "" : ", and not after \"$(\", \"${\", \"` or $'");
            whit_buf_free(&word);
            return false;
        } else {
            if (!has_word || n + word.size_bytes + 8 >= room) break;
            memcpy(to + n, word.data, word.size_bytes);
            n += word.size_bytes;
        }
    }
    to[n] = 0;
    whit_buf_free(&word);
    if (*from) ed_vi_fail(e, "the command is longer than %zu bytes, the limit", room - 1);
    return !*from;
}

static void start_shell(ed *e, ed_shell_kind kind, const char *command, whit_range range)
{
    char expanded[sizeof e->shell.command];
    if (e->vi.global) {
        ed_vi_fail(e, "':g' and ':v' run no command of the shell in each line");
        return;
    }
    bool changes = kind == ED_SHELL_INSERT || kind == ED_SHELL_FILTER;
    if (!ed_vi_expand(e, command, expanded, sizeof expanded) || (changes && !ed_vi_may_change(e))) return;
    ed_vi_hold(e, false); /* the command's output will be a step of undo of its own */
    ed_shell_start(e, kind, expanded, range);
}

/* Runs ":r FILE": inserts a file's text at the offset lines.end. */
static void read_file(ed *e, const char *name, whit_range lines)
{
    char path[PATH_MAX];
    whit_error error;
    whit_buf text = {0};
    if (!ed_vi_may_change(e) || !take_name(e, name, path)) return;
    if (whit_read_file(path, ED_VI_BYTES_MAX, &text, &error) != WHIT_OK)
        ed_complain_error(e, &error);
    else if (text.size_bytes)
        ed_put_lines(e, e->window->doc, lines.end, whit_chars(&text), text.size_bytes);
    whit_buf_free(&text);
}

static void list_registers(ed *e)
{
    static const char names[] = "\"0123456789abcdefghijklmnopqrstuvwxyz-%/:";
    ed_prompt_open(e, ED_PROMPT_RESULTS, "Registers; Esc closes: ", "");
    for (const char *name = names; *name; name++) {
        struct ed_vi_register reg;
        char label[120];
        if (!ed_vi_register_read(e, (uint8_t)*name, &reg)) continue;
        snprintf(label, sizeof label, "\"%c  %.*s", *name, (int)(reg.n_bytes < 100 ? reg.n_bytes : 100), reg.text);
        ed_prompt_add(e, label, NULL, 0, -1);
    }
    if (e->prompt.n_items)
        ed_prompt_filter(e);
    else
        ed_prompt_close(e);
}

static void grep(ed *e, const char *pattern)
{
    char why[200], text[sizeof e->find.pattern];
    if (!*pattern)
        ed_vi_fail(e, "':grep PATTERN' searches in the project's files");
    else if (!ed_vi_pattern(pattern, text, sizeof text) || !ed_search_set(e, text, true, why, sizeof why))
        ed_vi_fail(e, "the pattern is longer than 511 bytes, the limit, or not a regular expression");
    else
        ed_project_search(e);
}

bool ed_vi_takes_rest(const char *at)
{
    if (*at == '!' || ed_vi_takes(&at, "gr", "grep") || ed_vi_takes(&at, "mak", "make")) return true;
    bool reads = ed_vi_takes(&at, "r", "read");
    if (!reads && !ed_vi_takes(&at, "w", "write")) return false;
    const char *word_end = at;
    ed_vi_skip_blanks(&at);
    return *at == '!' && (reads || at > word_end); /* ":w!" forces writing, while ":w !" runs a shell command */
}

bool ed_vi_shell(ed *e, whit_range lines, bool has_range, const char *at)
{
    const char *from = at;
#define TAKES(least, name) (at = from, ed_vi_takes(&at, least, name) && (ed_vi_skip_blanks(&at), true))
    if (*at == '!') {
        start_shell(e, has_range ? ED_SHELL_FILTER : ED_SHELL_SHOW, at + 1, has_range ? lines : (whit_range){0, 0});
    } else if (TAKES("r", "read")) {
        if (*at == '!')
            start_shell(e, ED_SHELL_INSERT, at + 1, (whit_range){lines.end, lines.end});
        else if (*at)
            read_file(e, at, lines);
        else
            ed_vi_fail(e, "':r FILE' inserts a file, ':r !COMMAND' inserts a command's output");
    } else if (TAKES("w", "write") && *at == '!' && at > from + strspn(from, "write")) {
        start_shell(e, ED_SHELL_SHOW, at + 1, has_range ? lines : (whit_range){0, whit_text_size(ed_text(e))});
    } else if (has_range) {
        return false;
    } else if (TAKES("mak", "make")) {
        char expanded[sizeof e->shell.command];
        if (ed_vi_expand(e, at, expanded, sizeof expanded)) ed_make(e, expanded);
    } else if (TAKES("gr", "grep")) {
        grep(e, at);
    } else if (TAKES("cn", "cnext")) {
        ed_results_next(e);
    } else if (TAKES("cp", "cprevious") || TAKES("cN", "cNext")) {
        ed_results_previous(e);
    } else if (TAKES("cc", "cc")) {
        ed_results_go(e, isdigit((uint8_t)*at) ? (size_t)strtoull(at, NULL, 10) - 1 : e->results.at);
    } else if (TAKES("cope", "copen") || TAKES("cl", "clist") || TAKES("cw", "cwindow")) {
        ed_results_list(e);
    } else if (TAKES("reg", "registers") || TAKES("di", "display")) {
        list_registers(e);
    } else if (TAKES("Ex", "Explore")) {
        ed_vi_run(e, "tree");
    } else {
        return false;
    }
#undef TAKES
    return true;
}
