/* SPDX-License-Identifier: MIT
 * Runs the line at the bottom: questions, and lists to choose from. */
#include "editor/state.h"
#include "editor/vi_table.h"

#include "base/clock.h"
#include "base/path.h"
#include "base/utf8.h"
#include "code/walk.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define N_ITEMS 200000
/* nanoseconds without a key after which a key answers a question; an earlier one was probably typed before the person
 * saw the question */
#define HASTE_NS 250000000ull

bool ed_prompt_has_list(ed_prompt_kind kind)
{
    return kind == ED_PROMPT_PALETTE || kind == ED_PROMPT_FILES || kind == ED_PROMPT_BUFFERS ||
        kind == ED_PROMPT_RESULTS || kind == ED_PROMPT_SYMBOLS || kind == ED_PROMPT_ACTIONS || kind == ED_PROMPT_HELP ||
        kind == ED_PROMPT_COMPLETE;
}

bool ed_prompt_add(ed *e, const char *label, const char *path, uint64_t line, int command)
{
    struct ed_prompt *prompt = &e->prompt;
    if (prompt->n_items == N_ITEMS) return false;
    if (prompt->n_items == prompt->items_room) {
        size_t room = prompt->items_room ? 2 * prompt->items_room : 64;
        struct ed_item *grown = realloc(prompt->items, room * sizeof *grown);
        if (!grown) return false;
        prompt->items = grown;
        prompt->items_room = room;
    }
    struct ed_item item = {strdup(label), path ? strdup(path) : NULL, line, command};
    if (!item.label || (path && !item.path)) {
        free(item.label);
        free(item.path);
        return false;
    }
    prompt->items[prompt->n_items++] = item;
    return true;
}

/* Returns the cost of a fuzzy match (lower is better), or -1 if the label does not contain the text's letters in their
 * order. */
static int likeness(const char *label, const char *text)
{
    int cost = 0, gap = 0;
    bool started = false;
    for (const char *at = label; *text; at++) {
        if (!*at) return -1;
        if (tolower((uint8_t)*at) == tolower((uint8_t)*text)) {
            bool begins = at == label || !isalnum((uint8_t)at[-1]);
            if (started) cost += gap > 20 ? 20 : gap;
            cost += begins ? 0 : 1;
            text++;
            gap = 0;
            started = true;
        } else {
            gap++;
        }
        if (*text == ' ') text++;
    }
    return cost * 16 + (strlen(label) > 200 ? 15 : (int)strlen(label) / 14);
}

struct rank {
    int cost;
    uint32_t item;
};
static int by_cost(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    if (x->item < y->item) return -1;
    return 1;
}

void ed_prompt_filter(ed *e)
{
    struct ed_prompt *prompt = &e->prompt;
    struct rank *ranks = malloc((prompt->n_items + 1) * sizeof *ranks);
    uint32_t *shown = realloc(prompt->shown, (prompt->n_items + 1) * sizeof *shown);
    if (shown) prompt->shown = shown;
    prompt->n_shown = 0;
    prompt->chosen = 0;
    if (ranks && shown) {
        size_t n = 0;
        for (uint32_t i = 0; i < prompt->n_items; i++) {
            int cost = likeness(prompt->items[i].label, prompt->text);
            if (cost >= 0) ranks[n++] = (struct rank){prompt->n ? cost : 0, i};
        }
        qsort(ranks, n, sizeof *ranks, by_cost);
        for (size_t i = 0; i < n; i++) prompt->shown[prompt->n_shown++] = ranks[i].item;
    }
    free(ranks);
    ed_results_preview(e);
}

static bool add_file(void *user, const char *path)
{
    return ed_prompt_add(user, path, path, 0, -1);
}

void ed_keys_of(const ed *e, int command, char *keys, size_t room_bytes)
{
    size_t n = 0;
    keys[0] = 0;
    for (size_t i = 0; i < e->n_bindings; i++) {
        char name[24];
        if (e->bindings[i].command != command) continue;
        whit_key_name(e->bindings[i].key, name, sizeof name);
        n += (size_t)snprintf(keys + n, room_bytes - n, "%s%s", n ? " " : "", name);
        if (n >= room_bytes) break;
    }
}

static void fill_list(ed *e)
{
    char label[300], keys[64];
    const char *what;
    switch (e->prompt.kind) {
    case ED_PROMPT_PALETTE:
    case ED_PROMPT_HELP:
        for (size_t i = 0; e->prompt.kind == ED_PROMPT_HELP && e->vi.on && ed_vi_help(i, keys, sizeof keys, &what);
             i++) {
            snprintf(label, sizeof label, "%-26s %s", keys, what);
            ed_prompt_add(e, label, NULL, 0, -1);
        }
        for (size_t i = 0; i < ed_n_commands; i++) {
            ed_keys_of(e, (int)i, keys, sizeof keys);
            snprintf(label, sizeof label, "%-18s %-24s %s", ed_commands[i].name, keys, ed_commands[i].help);
            ed_prompt_add(e, label, NULL, 0, (int)i);
        }
        break;
    case ED_PROMPT_BUFFERS:
        for (struct ed_doc *doc = e->docs; doc; doc = doc->next) {
            snprintf(label, sizeof label, "%.200s%s", doc->buffer->name,
                     whit_buffer_is_modified(doc->buffer) ? " *" : "");
            ed_prompt_add(e, label, doc->buffer->path ? doc->buffer->path : doc->buffer->name, 0, -1);
        }
        break;
    case ED_PROMPT_FILES: whit_walk_files(e->options.project ? e->options.project : ".", add_file, e); break;
    default: break;
    }
    ed_prompt_filter(e);
}

void ed_prompt_open(ed *e, ed_prompt_kind kind, const char *label, const char *text)
{
    ed_prompt_close(e);
    struct ed_prompt *prompt = &e->prompt;
    prompt->kind = kind;
    prompt->origin = ed_selection(ed_cursor(e)).begin;
    prompt->origin_top = e->window->top;
    prompt->asked_ns = whit_now_ns();
    snprintf(prompt->label, sizeof prompt->label, "%s", label);
    snprintf(prompt->text, sizeof prompt->text, "%s", text);
    prompt->n = prompt->at = strlen(prompt->text);
    /* the initial text is the last pattern, the last replacement or the selection, which the first typed letter
     * replaces */
    prompt->is_offered = prompt->n && kind >= ED_PROMPT_FIND && kind <= ED_PROMPT_REPLACE_PROJECT_BY;
    if (ed_prompt_has_list(kind)) fill_list(e);
}

void ed_prompt_close(ed *e)
{
    struct ed_prompt *prompt = &e->prompt;
    ed_results_keep(e);
    for (size_t i = 0; i < prompt->n_items; i++) {
        free(prompt->items[i].label);
        free(prompt->items[i].path);
    }
    free(prompt->items);
    free(prompt->shown);
    *prompt = (struct ed_prompt){0};
}

/* ---- effects of the answers ---------------------------------------------------------------- */

/* Searches for the text typed so far, from the offset where the prompt was opened. */
static void find_now(ed *e)
{
    char why[200], converted[sizeof e->find.pattern];
    struct ed_prompt *prompt = &e->prompt;
    const char *pattern = prompt->text;
    if (!prompt->n) {
        ed_only_main(e);
        *ed_cursor(e) = (struct ed_cursor){prompt->origin, ED_NONE, -1};
        e->window->top = prompt->origin_top;
        return;
    }
    prompt->found = false;
    if (e->vi.on && e->vi.search_pending && e->find.regex) {
        if (!ed_vi_pattern(pattern, converted, sizeof converted)) {
            ed_complain(e, "the pattern is longer than %zu bytes, the limit", sizeof converted - 1);
            return;
        }
        pattern = converted;
    }
    bool is_set = ed_search_set(e, pattern, e->find.regex, why, sizeof why);
    if (is_set && pattern == converted) /* find.pattern keeps the typed form, which is shorter than the converted one */
        snprintf(e->find.pattern, sizeof e->find.pattern, "%.*s", (int)sizeof e->find.pattern - 1, prompt->text);
    if (!is_set)
        ed_complain(e, "%s", why);
    else if (e->vi.on && e->vi.search_pending) /* vi searches from after the cursor, or backwards from the cursor */
        prompt->found =
            ed_search_next(e, e->vi.search_back,
                           e->vi.search_back ? prompt->origin : whit_layout_behind(ed_layout(e), prompt->origin));
    else
        prompt->found = ed_search_next(e, false, prompt->origin);
}

const char *ed_typed_path(const char *typed, char path[PATH_MAX])
{
    if (!whit_path_expand(typed, path, PATH_MAX)) snprintf(path, PATH_MAX, "%s", typed);
    return path;
}

void ed_go_to_file(ed *e, const char *path, uint64_t line)
{
    whit_error error;
    struct ed_doc *doc = ed_open_file(e, path, &error);
    if (!doc) {
        ed_complain_error(e, &error);
        return;
    }
    ed_jump_push(e);
    ed_show(e, doc);
    if (line && !e->prompt.kind) ed_place(e, line, 1);
}

static void choose_item(ed *e)
{
    struct ed_prompt *prompt = &e->prompt;
    ed_prompt_kind kind = prompt->kind;
    struct ed_item item = {.command = -1};
    char path[PATH_MAX] = "";
    if (kind == ED_PROMPT_COMPLETE) {
        uint64_t to = prompt->origin;
        if (prompt->chosen >= prompt->n_shown) return;
        struct ed_item *chosen = &prompt->items[prompt->shown[prompt->chosen]];
        char *text = chosen->path;
        uint64_t from = chosen->line;
        const bool same = prompt->version == e->window->doc->buffer->version;
        chosen->path = NULL;
        ed_prompt_close(e);
        if (same)
            ed_complete_with(e, text, from, to);
        else
            ed_complain(e, "nothing was completed, because the text has changed meanwhile");
        free(text);
        return;
    }
    if (prompt->chosen < prompt->n_shown) item = prompt->items[prompt->shown[prompt->chosen]];
    if (item.path) {
        bool inside = kind == ED_PROMPT_FILES && e->options.project;
        const char *root = inside ? e->options.project : "";
        snprintf(path, sizeof path, "%s%s%s", root, inside ? "/" : "", item.path);
    }
    ed_prompt_close(e);
    if (kind == ED_PROMPT_ACTIONS) {
        if (item.label) ed_language_act(e, item.line);
    } else if (kind == ED_PROMPT_BUFFERS) {
        for (struct ed_doc *doc = e->docs; doc; doc = doc->next)
            if (!strcmp(path, doc->buffer->path ? doc->buffer->path : doc->buffer->name)) {
                ed_show(e, doc);
                return;
            }
    } else if (item.command >= 0) {
        if (kind == ED_PROMPT_PALETTE) ed_run(e, item.command);
    } else if (*path) {
        if (kind == ED_PROMPT_RESULTS) e->results.was_at = true;
        ed_go_to_file(e, path, item.line);
    }
}

static void accept_prompt(ed *e)
{
    struct ed_prompt *prompt = &e->prompt;
    char text[sizeof prompt->text], path[PATH_MAX], why[200];
    memcpy(text, prompt->text, sizeof text);
    ed_prompt_kind kind = prompt->kind;
    if (ed_prompt_has_list(kind)) {
        choose_item(e);
        return;
    }
    ed_prompt_close(e);
    switch (kind) {
    case ED_PROMPT_LINE: {
        char *behind;
        unsigned long line = strtoul(text, &behind, 10), column = *behind == ':' ? strtoul(behind + 1, NULL, 10) : 1;
        if (!line)
            ed_complain(e, "a line must be a number from 1 on, as in 120 or 120:8");
        else
            ed_place(e, line, column);
        break;
    }
    case ED_PROMPT_SAVE_AS: ed_save_under(e, ed_typed_path(text, path), false, NULL); break;
    case ED_PROMPT_OPEN:
        if (*text) ed_go_to_file(e, ed_typed_path(text, path), 0);
        break;
    case ED_PROMPT_REPLACE:
    case ED_PROMPT_REPLACE_PROJECT:
        if (!*text) break;
        if (!ed_search_set(e, text, e->find.regex, why, sizeof why))
            ed_complain(e, "%s", why);
        else
            ed_prompt_open(e, kind == ED_PROMPT_REPLACE ? ED_PROMPT_REPLACE_BY : ED_PROMPT_REPLACE_PROJECT_BY,
                           "By: ", e->find.by);
        break;
    case ED_PROMPT_REPLACE_BY:
        memcpy(e->find.by, text, sizeof e->find.by - 1);
        ed_replace_begin(e);
        break;
    case ED_PROMPT_REPLACE_PROJECT_BY:
        memcpy(e->find.by, text, sizeof e->find.by - 1);
        ed_replace_in_project(e);
        break;
    case ED_PROMPT_PROJECT:
        if (!*text) break;
        if (!ed_search_set(e, text, e->find.regex, why, sizeof why))
            ed_complain(e, "%s", why);
        else
            ed_project_search(e);
        break;
    case ED_PROMPT_VI: ed_vi_line(e, text); break;
    case ED_PROMPT_SHELL: ed_shell_start(e, ED_SHELL_SHOW, text, (whit_range){0, 0}); break;
    case ED_PROMPT_RENAME: ed_rename_to(e, text); break;
    case ED_PROMPT_AGENT: ed_agent_task(e, text); break;
    case ED_PROMPT_AGENT_REPLY: ed_panel_reply(e, text); break;
    case ED_PROMPT_REWRITE: ed_rewrite_as(e, text); break;
    default: break;
    }
}

static void cancel(ed *e)
{
    struct ed_prompt *prompt = &e->prompt;
    if (prompt->kind == ED_PROMPT_FIND) {
        ed_only_main(e);
        *ed_cursor(e) = (struct ed_cursor){prompt->origin, ED_NONE, -1};
        e->window->top = prompt->origin_top;
        if (e->vi.on && e->vi.search_pending) ed_vi_searched(e, prompt->origin, false);
    }
    if (prompt->kind == ED_PROMPT_REPLACING) {
        whit_buffer_seal(e->window->doc->buffer);
        ed_replace_forget(e);
        ed_say(e, "replaced %zu", e->find.n_replaced);
    }
    const bool declines = prompt->kind == ED_PROMPT_AGENT_REPLY;
    e->quitting = false;
    ed_prompt_close(e);
    if (declines) ed_panel_reply(e, NULL);
}

/* Carries out a one-letter answer to the open question. */
static void answer_letter(ed *e, uint32_t letter)
{
    ed_prompt_kind kind = e->prompt.kind;
    struct ed_doc *doc = e->window->doc;
    char path[sizeof e->prompt.text];
    whit_file_identity now, there;
    bool is_same;
    switch (kind) {
    case ED_PROMPT_REPLACING:
        if (letter == 'y') ed_replace_here(e);
        if (letter == 'a') ed_replace_all(e);
        if (letter == 'n') ed_replace_skip(e);
        if (letter == 'q') ed_replace_forget(e);
        if (letter == 'q' || letter == 'a' || ((letter == 'y' || letter == 'n') && !ed_replace_step(e))) {
            whit_buffer_seal(doc->buffer);
            /* ed_replace_step() may have opened the question about the next file's journal instead */
            if (e->prompt.kind == kind) ed_prompt_close(e);
        }
        break;
    case ED_PROMPT_CLOSE:
    case ED_PROMPT_QUIT:
        if (letter != 's' && letter != 'd') break;
        ed_prompt_close(e);
        if (letter == 'd') {
            ed_close_doc(e, doc);
            if (kind == ED_PROMPT_QUIT && !e->done) ed_quit_next(e);
            break;
        }
        ed_save(e, doc, false);
        if (e->prompt.kind || whit_buffer_is_modified(doc->buffer)) break;
        if (kind == ED_PROMPT_CLOSE)
            ed_close_doc(e, doc);
        else
            ed_quit_next(e);
        break;
    case ED_PROMPT_CONFLICT:
        if (letter == 'o') {
            there = e->prompt.there;
            whit_file_identify(doc->buffer->path, &now);
            ed_prompt_close(e);
            if (whit_file_same(&now, &there))
                ed_save_over(e, doc, &there);
            else /* asks about the file as it is now */
                ed_save(e, doc, false);
            if (e->quitting && !whit_buffer_is_modified(doc->buffer)) ed_quit_next(e);
        } else if (letter == 'r' && whit_path_exists(doc->buffer->path)) {
            ed_prompt_close(e);
            if (ed_read_again(e)) ed_say(e, "the file was read again");
        }
        break;
    case ED_PROMPT_OVERWRITE:
        if (letter != 'o') break;
        memcpy(path, e->prompt.text, sizeof path);
        there = e->prompt.there;
        is_same = e->prompt.version == doc->buffer->version;
        ed_prompt_close(e);
        if (is_same)
            ed_save_under(e, path, false, &there);
        else
            ed_complain(e, "nothing was saved, because the text has changed meanwhile");
        break;
    case ED_PROMPT_HUNK: ed_panel_answer(e, letter); break;
    case ED_PROMPT_RECOVER:
        if (letter == 'r' && doc->buffer->recovered) {
            whit_buffer_recover(doc->buffer);
            ed_only_main(e);
            *ed_cursor(e) = (struct ed_cursor){0, ED_NONE, -1};
            ed_prompt_close(e);
            ed_say(e,
                   whit_buffer_is_conflicting(doc->buffer)
                       ? "the text was recovered; another program has changed the file since: saving will ask"
                       : "the text was recovered; undo goes back step by step");
        } else if (letter == 'd') {
            whit_buffer_forget(doc->buffer);
            ed_prompt_close(e);
        } else if (letter == 'l') {
            whit_error error;
            bool has_file = doc->buffer->path != NULL;
            whit_status status = whit_buffer_later(doc->buffer, e->options.journal_folder, &error);
            ed_prompt_close(e);
            if (status != WHIT_OK)
                ed_complain_error(e, &error);
            else
                ed_say(e,
                       has_file ? "the file is open read-only, without the unsaved text; close and open it to choose"
                                : "the text is kept until the next start without a file");
        }
        break;
    default: break;
    }
}

static void insert(ed *e, const char *text, size_t n)
{
    struct ed_prompt *prompt = &e->prompt;
    if (prompt->is_offered) {
        prompt->n = prompt->at = 0;
        prompt->text[0] = 0;
    }
    for (size_t i = 0; i < n; i++) /* insert only the first line of a pasted text */
        if (text[i] == '\r' || text[i] == '\n' || !text[i]) n = i;
    if (prompt->n + n >= sizeof prompt->text) return;
    memmove(prompt->text + prompt->at + n, prompt->text + prompt->at, prompt->n - prompt->at + 1);
    memcpy(prompt->text + prompt->at, text, n);
    prompt->n += n;
    prompt->at += n;
}

static void erase(struct ed_prompt *prompt, size_t from, size_t to)
{
    memmove(prompt->text + from, prompt->text + to, prompt->n - to + 1);
    prompt->n -= to - from;
    prompt->at = from;
}

static size_t char_before(const struct ed_prompt *prompt)
{
    return prompt->at ? whit_glyph_begin((const uint8_t *)prompt->text, prompt->n, prompt->at - 1) : 0;
}

static size_t char_behind(const struct ed_prompt *prompt)
{
    if (prompt->at >= prompt->n) return prompt->n;
    whit_glyph glyph;
    whit_glyph_read((const uint8_t *)prompt->text + prompt->at, prompt->n - prompt->at, &glyph);
    return prompt->at + glyph.n_bytes;
}

/* Returns the offset at which the file name to be completed begins: after the last blank in vi's line that has no
 * backslash, 0 elsewhere. */
static size_t path_begin(const struct ed_prompt *prompt)
{
    size_t at = prompt->kind == ED_PROMPT_VI ? prompt->at : 0;
    while (at && (prompt->text[at - 1] != ' ' || (at > 1 && prompt->text[at - 2] == '\\'))) at--;
    return at;
}

/* Copies the name before the cursor, in vi's line without the backslashes of insert_name(). Returns its length. */
static size_t read_typed_name(const struct ed_prompt *prompt, size_t begin, char name[sizeof prompt->text])
{
    size_t n = 0;
    for (size_t at = begin; at < prompt->at; at++) {
        const bool is_escape = prompt->kind == ED_PROMPT_VI && prompt->text[at] == '\\' && at + 1 < prompt->at;
        if (is_escape && !isalnum((uint8_t)prompt->text[at + 1])) at++;
        name[n++] = prompt->text[at];
    }
    name[n] = 0;
    return n;
}

/* Returns whether a part of vi's line before a file name may be a command of the shell: it has a '!' that does not
 * force another command (":w!"), or begins with :make. */
static bool is_for_shell(const char *line, size_t n)
{
    const char *at = line + strspn(line, " \t:%$.,+-0123456789");
    if (ed_vi_takes(&at, "mak", "make")) return true;
    for (at = line; (at = memchr(at, '!', n - (size_t)(at - line))) != NULL; at++) {
        const char *word = at;
        while (word > line && isalpha((uint8_t)word[-1])) word--;
        if (word == at || (word > line && word[-1] == '\'') || ed_vi_takes(&word, "r", "read")) return true;
    }
    return false;
}

static bool has_control(const char *name)
{
    while (*name && (uint8_t)*name >= 32 && *name != 127) name++;
    return *name != 0;
}

/* Inserts a part of a file's name at the prompt's cursor. In vi's line, signs of the line or of the shell get a
 * backslash, so that a name is only a name. */
static void insert_name(ed *e, const char *name, size_t n, bool is_shell)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+,:=@-";
    char text[2 * NAME_MAX + 2];
    size_t n_text = 0;
    const bool is_quoted = is_shell && strcspn(e->prompt.text, "'\"`") < e->prompt.at;
    for (size_t i = 0; i < n && n_text + 2 < sizeof text; i++) {
        const bool is_sign = is_shell ? !strchr(plain, name[i]) && !((uint8_t)name[i] & 0x80) : name[i] == '|';
        if (is_sign && is_quoted) {
            ed_complain(e, "after quotes, names with signs of the shell are not completed");
            return;
        }
        if (is_sign && e->prompt.kind == ED_PROMPT_VI) text[n_text++] = '\\';
        text[n_text++] = name[i];
    }
    insert(e, text, n_text);
}

/* Extends the file name before the cursor by the letters that all matching names share. Names with controls are left
 * out: a prompt shows one line. */
static void complete_path(ed *e)
{
    struct ed_prompt *prompt = &e->prompt;
    const size_t n_before = path_begin(prompt);
    if (prompt->kind == ED_PROMPT_VI && !n_before) return; /* the word is a command, not a file name */
    char name[sizeof prompt->text], typed[PATH_MAX], folder[PATH_MAX], common[256] = "";
    const size_t n_name = read_typed_name(prompt, n_before, name);
    const char *slash = memrchr(name, '/', n_name);
    size_t n_folder = slash ? (size_t)(slash + 1 - name) : 0, n_common = 0, n_found = 0;
    snprintf(typed, sizeof typed, "%.*s", n_folder ? (int)n_folder : 1, n_folder ? name : ".");
    ed_typed_path(typed, folder);
    const char *begin = name + n_folder;
    size_t n_begin = n_name - n_folder;
    DIR *entries = opendir(folder);
    bool is_folder = false;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (strncmp(entry->d_name, begin, n_begin) || (entry->d_name[0] == '.' && !n_begin)) continue;
        if (has_control(entry->d_name)) continue;
        if (!n_found++) {
            snprintf(common, sizeof common, "%s", entry->d_name);
            n_common = strlen(common);
            is_folder = entry->d_type == DT_DIR;
        }
        size_t same = 0;
        while (same < n_common && entry->d_name[same] == common[same]) same++;
        n_common = same;
    }
    if (entries) closedir(entries);
    const bool is_shell = is_for_shell(prompt->text, n_before);
    if (n_found && n_common > n_begin) insert_name(e, common + n_begin, n_common - n_begin, is_shell);
    if (n_found == 1 && is_folder) insert(e, "/", 1);
    if (n_found > 1) ed_say(e, "%zu names match", n_found);
    if (!n_found) ed_complain(e, "no name matches");
}

/* Returns whether a key was typed before the person could see the question, and if so, begins the waiting time again.
 * The question about each match of a replacement does not wait. */
static bool is_hasty(struct ed_prompt *prompt)
{
    const uint64_t now_ns = whit_now_ns();
    if (prompt->kind == ED_PROMPT_REPLACING || now_ns - prompt->asked_ns >= HASTE_NS) return false;
    prompt->asked_ns = now_ns;
    return true;
}

bool ed_prompt_key(ed *e, whit_key key, const char *paste, size_t n_paste)
{
    struct ed_prompt *prompt = &e->prompt;
    bool question = prompt->kind == ED_PROMPT_REPLACING || prompt->kind == ED_PROMPT_CLOSE ||
        prompt->kind == ED_PROMPT_QUIT || prompt->kind == ED_PROMPT_CONFLICT || prompt->kind == ED_PROMPT_RECOVER ||
        prompt->kind == ED_PROMPT_HUNK || prompt->kind == ED_PROMPT_OVERWRITE;
    const bool scrolls = key.code == WHIT_KEY_PAGE_UP || key.code == WHIT_KEY_PAGE_DOWN || key.code == WHIT_KEY_UP ||
        key.code == WHIT_KEY_DOWN;
    bool list = ed_prompt_has_list(prompt->kind), changed = false;
    if (prompt->kind == ED_PROMPT_SERVERS) return ed_servers_answer(e, key);
    if (key.code == WHIT_KEY_ESCAPE || (key.code == 'c' && key.mods == WHIT_MOD_CTRL)) {
        /* Esc does not close the question about unsaved text of an earlier run */
        if (prompt->kind != ED_PROMPT_RECOVER) cancel(e);
        return true;
    }
    if (question) {
        if (prompt->kind == ED_PROMPT_HUNK && scrolls)
            ed_panel_scroll(e, key);
        else if (!is_hasty(prompt) && !key.mods)
            answer_letter(e, key.code);
        return true;
    }
    if (prompt->kind == ED_PROMPT_AGENT_REPLY && scrolls) {
        ed_panel_scroll(e, key);
        return true;
    }
    if (prompt->kind == ED_PROMPT_AGENT_REPLY && key.code == WHIT_KEY_ENTER && !ed_panel_may_reply(e)) return true;
    size_t page = e->n_rows > 6 ? (size_t)e->n_rows / 2 : 1;
    size_t chosen = prompt->chosen;
    switch (key.code) {
    case WHIT_KEY_ENTER:
        if (prompt->kind == ED_PROMPT_FIND) {
            /* with an empty pattern, search for vi's last pattern */
            bool again = e->vi.on && e->vi.search_pending && !prompt->n;
            uint64_t origin = prompt->origin;
            bool found = prompt->found;
            ed_prompt_close(e);
            if (again) found = ed_search_next(e, e->vi.search_back, origin + !e->vi.search_back);
            if (e->vi.on) ed_vi_searched(e, origin, found);
        } else
            accept_prompt(e);
        return true;
    case WHIT_KEY_UP:
        if (list && prompt->chosen) prompt->chosen--;
        if (prompt->kind == ED_PROMPT_FIND) ed_search_next(e, true, ed_selection(ed_cursor(e)).begin);
        if (prompt->chosen != chosen) ed_results_preview(e);
        return true;
    case WHIT_KEY_DOWN:
        if (list && prompt->chosen + 1 < prompt->n_shown) prompt->chosen++;
        if (prompt->kind == ED_PROMPT_FIND) ed_search_next(e, false, ed_selection(ed_cursor(e)).end);
        if (prompt->chosen != chosen) ed_results_preview(e);
        return true;
    case WHIT_KEY_PAGE_UP:
        prompt->chosen = prompt->chosen > page ? prompt->chosen - page : 0;
        if (prompt->chosen != chosen) ed_results_preview(e);
        return true;
    case WHIT_KEY_PAGE_DOWN:
        if (prompt->chosen + page < prompt->n_shown)
            prompt->chosen = prompt->chosen + page;
        else if (prompt->n_shown)
            prompt->chosen = prompt->n_shown - 1;
        else
            prompt->chosen = 0;
        if (prompt->chosen != chosen) ed_results_preview(e);
        return true;
    case WHIT_KEY_LEFT: prompt->at = char_before(prompt); break;
    case WHIT_KEY_RIGHT: prompt->at = char_behind(prompt); break;
    case WHIT_KEY_HOME: prompt->at = 0; break;
    case WHIT_KEY_END: prompt->at = prompt->n; break;
    case WHIT_KEY_TAB:
        if (prompt->kind == ED_PROMPT_OPEN || prompt->kind == ED_PROMPT_SAVE_AS || prompt->kind == ED_PROMPT_VI)
            complete_path(e);
        return true;
    case WHIT_KEY_BACKSPACE:
        if (prompt->kind == ED_PROMPT_VI && !prompt->n)
            cancel(e);
        else if ((changed = prompt->at > 0))
            erase(prompt, char_before(prompt), prompt->at);
        break;
    case WHIT_KEY_DELETE:
        if ((changed = prompt->at < prompt->n)) {
            size_t at = prompt->at;
            erase(prompt, at, char_behind(prompt));
        }
        break;
    case WHIT_KEY_PASTE:
        insert(e, paste, n_paste);
        changed = true;
        break;
    default:
        if (key.code == 'u' && key.mods == WHIT_MOD_CTRL) {
            erase(prompt, 0, prompt->n);
            changed = true;
        } else if (key.code == 'r' && key.mods == WHIT_MOD_ALT) {
            e->find.regex = !e->find.regex;
            ed_say(e, e->find.regex ? "the pattern is a regular expression" : "the pattern is plain text");
            changed = prompt->kind == ED_PROMPT_FIND;
        } else if (key.code < WHIT_KEY_NONE && key.code >= 32 && !(key.mods & (WHIT_MOD_ALT | WHIT_MOD_CTRL))) {
            uint8_t text[5] = {0};
            insert(e, (const char *)text, whit_utf8_encode(key.code, text));
            changed = true;
        }
    }
    prompt->is_offered = false;
    if (changed && list) ed_prompt_filter(e);
    if (changed && prompt->kind == ED_PROMPT_FIND) find_now(e);
    return true;
}
