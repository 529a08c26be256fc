/* SPDX-License-Identifier: MIT
 * Opens and closes the editor's documents, and gives keys to the commands that they are bound to. */
#include "editor/state.h"

#include "base/clock.h"
#include "base/path.h"
#include "base/utf8.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void ed_say(ed *e, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->message, sizeof e->message, format, arguments);
    va_end(arguments);
    e->message_is_error = false;
}

void ed_complain(ed *e, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->message, sizeof e->message, format, arguments);
    va_end(arguments);
    e->message_is_error = true;
}

void ed_complain_error(ed *e, const whit_error *error)
{
    ed_complain(e, "%s", error->message);
}

void ed_complain_read_only(ed *e)
{
    const struct ed_doc *doc = e->window->doc;
    if (doc == e->panel.doc)
        ed_complain(e, "the agent's panel is read-only: M-w goes to the text, F9 gives a task");
    else
        ed_complain(e, "%s is read-only; 'save-as' writes it elsewhere", doc->buffer->name);
}

/* ---- documents ----------------------------------------------------------------------------- */

struct watch {
    ed *e;
    struct ed_doc *doc;
};

static void on_change(void *user, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    struct watch *watch = user;
    whit_syntax_states_cut(&watch->doc->states, offset);
    ed_tree_changed(watch->doc, offset, n_removed, n_inserted);
    ed_language_changed(watch->doc, offset, n_removed, n_inserted);
    ed_windows_changed(watch->e, watch->doc, offset, n_removed, n_inserted);
}

void ed_doc_free(struct ed_doc *doc)
{
    ed_compare_forget(doc);
    ed_git_forget(doc);
    ed_tree_close(doc);
    whit_syntax_close(doc->syntax);
    whit_syntax_states_free(&doc->states);
    for (size_t i = 0; i < WHIT_BUFFER_WATCHERS; i++)
        if (doc->buffer->watchers[i].change == on_change) free(doc->buffer->watchers[i].user);
    whit_buffer_close(doc->buffer);
    free(doc);
}

struct ed_doc *ed_doc_add(ed *e, whit_buffer *buffer)
{
    struct ed_doc *doc = calloc(1, sizeof *doc), **end = &e->docs;
    struct watch *watch = malloc(sizeof *watch);
    if (!doc || !watch) {
        free(doc);
        free(watch);
        whit_buffer_close(buffer);
        return NULL;
    }
    char first[128] = "";
    doc->buffer = buffer;
    *watch = (struct watch){e, doc};
    whit_buffer_watch(buffer, on_change, watch);
    size_t n = whit_text_read(buffer->text, 0, first, sizeof first - 1);
    first[n] = 0;
    first[strcspn(first, "\n")] = 0;
    doc->syntax = whit_syntax_for(buffer->path ? buffer->path : buffer->name, first);
    ed_indent_detect(doc, e->settings.tab_columns, e->settings.indent);
    if (e->settings.editorconfig) ed_project_settings(doc);
    for (size_t i = 0; i < ED_VI_MARKS; i++) doc->marks[i] = ED_NONE;
    doc->mark_jump = doc->mark_change = doc->mark_begin = doc->mark_end = ED_NONE;
    while (*end) end = &(*end)->next;
    *end = doc;
    if (e->options.read_only) buffer->read_only = true;
    return doc;
}

struct ed_doc *ed_doc_find(const ed *e, const char *path)
{
    char *full = whit_buffer_full_path(path);
    const char *wanted = full ? full : path;
    struct ed_doc *doc = e->docs;
    while (doc && (!doc->buffer->path || strcmp(doc->buffer->path, wanted))) doc = doc->next;
    free(full);
    return doc;
}

struct ed_doc *ed_doc_peek(ed *e, const char *path)
{
    whit_buffer *buffer;
    whit_error error;
    if (whit_buffer_open(path, NULL, &buffer, &error) != WHIT_OK) return NULL;
    buffer->read_only = true;
    struct ed_doc *doc = ed_doc_add(e, buffer), **at = &e->docs;
    while (doc && *at != doc) at = &(*at)->next;
    if (doc) *at = NULL;
    return doc;
}

struct ed_doc *ed_open_file(ed *e, const char *path, whit_error *error)
{
    whit_buffer *buffer;
    struct ed_doc *doc = ed_doc_find(e, path);
    if (doc) return doc;
    whit_error local;
    if (!error) error = &local;
    error->message[0] = 0;
    error->status = WHIT_OK;
    if (whit_buffer_open(path, e->options.journal_folder, &buffer, error) != WHIT_OK) return NULL;
    /* the journal could not be opened, but the file can be edited */
    if (error->status != WHIT_OK) ed_complain_error(e, error);
    doc = ed_doc_add(e, buffer);
    if (!doc) whit_fail_memory(error, "a document", sizeof *doc);
    return doc;
}

void ed_show(ed *e, struct ed_doc *doc)
{
    if (e->window->doc != doc) ed_window_show(e, e->window, doc);
    ed_windows_layout(e);
    ed_check_journal(e);
}

static void leave_doc(ed *e, struct ed_window *window, struct ed_doc *doc, struct ed_doc *other)
{
    if (window->child[0]) {
        leave_doc(e, window->child[0], doc, other);
        leave_doc(e, window->child[1], doc, other);
    } else if (window->doc == doc) {
        window->doc = NULL;
        ed_window_show(e, window, other);
    }
}

void ed_close_doc(ed *e, struct ed_doc *doc)
{
    struct ed_doc **at = &e->docs, *previous = NULL;
    for (; *at != doc; at = &(*at)->next) previous = *at;
    struct ed_doc *other = doc->next ? doc->next : previous;
    if (!other) {
        e->done = true;
        return;
    }
    leave_doc(e, e->root, doc, other);
    size_t n = 0;
    for (size_t i = 0; i < e->n_jumps; i++)
        if (e->jumps[i].doc != doc) e->jumps[n++] = e->jumps[i];
    e->n_jumps = n;
    *at = doc->next;
    ed_language_forget(e, doc);
    ed_panel_forget(e, doc);
    ed_vi_forget(e, doc);
    ed_shell_forget(e, doc);
    ed_files_forget(e, doc);
    if (e->suggestion.doc == doc) ed_suggest_drop(e);
    ed_doc_free(doc);
    ed_windows_layout(e);
    ed_check_journal(e);
}

bool ed_ask_to_save(ed *e, struct ed_doc *doc, ed_prompt_kind kind)
{
    bool nameless_empty = !doc->buffer->path && !whit_text_size(doc->buffer->text);
    if (!whit_buffer_is_modified(doc->buffer) || nameless_empty) return false;
    ed_show(e, doc);
    if (e->prompt.kind) return true; /* another question, such as about the journal, must be answered first */
    char label[200];
    snprintf(label, sizeof label, "%.120s is not saved: s save, d discard, Esc cancel", doc->buffer->name);
    ed_prompt_open(e, kind, label, "");
    return true;
}

void ed_quit_next(ed *e)
{
    e->quitting = true;
    for (struct ed_doc *doc = e->docs; doc; doc = doc->next)
        if (ed_ask_to_save(e, doc, ED_PROMPT_QUIT)) return;
    e->done = true;
}

/* Opens the question about unsaved text of an earlier run, or reports that another editor has the file open. */
void ed_check_journal(ed *e)
{
    struct ed_doc *doc = e->window->doc;
    char label[200];
    const char *name = doc->buffer->name;
    switch (doc->buffer->found) {
    case WHIT_FOUND_UNSAVED:
    case WHIT_FOUND_PARTIAL:
        snprintf(label, sizeof label, "unsaved text was found: r recover, d delete it, l later");
        ed_prompt_open(e, ED_PROMPT_RECOVER, label, "");
        break;
    case WHIT_FOUND_LOST:
        snprintf(label, sizeof label,
                 "%.90s was changed; unsaved edits cannot be applied any more: d delete them, l later", name);
        ed_prompt_open(e, ED_PROMPT_RECOVER, label, "");
        break;
    case WHIT_FOUND_BUSY:
        if (doc->told) break;
        doc->told = true;
        ed_complain(e, "%s is open in another editor: what you type here is not kept until it is saved", name);
        break;
    default: break;
    }
}

void ed_place(ed *e, uint64_t line, uint64_t column)
{
    whit_text *text = ed_text(e);
    if (!line) line = 1;
    uint64_t start = whit_text_line_start(text, line - 1);
    if (start == UINT64_MAX) { /* count the lines of a large file up to the needed one */
        whit_buffer *buffer = e->window->doc->buffer;
        while ((start = whit_text_line_start(text, line - 1)) == UINT64_MAX &&
               whit_text_count(text, 16u << 20, whit_file_drop, &buffer->file)) {
        }
        start = whit_text_line_start(text, line - 1);
    }
    ed_only_main(e);
    e->shift = false;
    uint64_t end = whit_layout_line_end(ed_layout(e), start);
    for (; column > 1 && start < end; column--) start = whit_layout_behind(ed_layout(e), start);
    ed_move_to(e, ed_cursor(e), start);
    whit_layout_unfold(ed_layout(e), start);
    e->window->moved_away = false;
}

bool ed_read_again(ed *e)
{
    whit_error error;
    whit_layout *layout = ed_layout(e);
    uint64_t offset = ed_cursor(e)->offset, begin = whit_layout_line_begin(layout, offset), column = 1;
    /* If the line is too long to scan, or lines are not counted yet, the byte offset is kept instead of line and
     * column. */
    uint64_t line = offset - begin > WHIT_SEGMENT_BYTES ? UINT64_MAX : whit_text_line_at(ed_text(e), offset);
    for (uint64_t at = begin; line != UINT64_MAX && at < offset; column++) at = whit_layout_behind(layout, at);
    if (whit_buffer_take(e->window->doc->buffer, &error) != WHIT_OK) {
        ed_complain_error(e, &error);
        return false;
    }
    e->window->doc->conflict_shown = false;
    if (line != UINT64_MAX) {
        ed_place(e, line + 1, column);
        return true;
    }
    ed_only_main(e);
    e->shift = false;
    ed_move_to(e, ed_cursor(e), offset);
    if (offset < whit_text_size(ed_text(e))) /* move the cursor to the beginning of a character */
        ed_cursor(e)->offset = whit_layout_before(layout, whit_layout_behind(layout, offset));
    return true;
}

void ed_jump_push(ed *e)
{
    if (e->n_jumps == ED_JUMPS_MAX) memmove(e->jumps, e->jumps + 1, --e->n_jumps * sizeof *e->jumps);
    e->jumps[e->n_jumps++] = (struct ed_jump){e->window->doc, ed_cursor(e)->offset};
}

/* ---- the editor ---------------------------------------------------------------------------- */

whit_status whit_editor_open(const whit_editor_options *options, whit_editor **editor, whit_error *error)
{
    ed *e = calloc(1, sizeof *e);
    *editor = NULL;
    if (!e) return whit_fail_memory(error, "the editor", sizeof *e);
    e->options = *options;
    e->settings.tab_columns = 8;
    e->settings.text_columns = 79;
    e->settings.wrap = true;
    e->settings.numbers = true;
    e->settings.mouse = true;
    e->settings.editorconfig = true;
    e->vi.last_insert = e->find.to = ED_NONE;
    whit_theme_named("auto", &e->settings.theme);
    e->n_columns = 80;
    e->n_rows = 24;
    if (options->config_path) snprintf(e->settings.path, sizeof e->settings.path, "%s", options->config_path);
    ed_config_read(e, options->config, options->config_path);
    *editor = e;
    return WHIT_OK;
}

void whit_editor_close(whit_editor *e)
{
    if (!e) return;
    ed_prompt_close(e);
    ed_window_free(e->root);
    e->root = e->window = NULL;
    while (e->docs) {
        struct ed_doc *next = e->docs->next;
        /* `done` is false if a signal or a lost terminal ended the editor: unsaved text stays in the journal */
        e->docs->buffer->keep_journal = !e->done;
        ed_language_forget(e, e->docs);
        ed_doc_free(e->docs);
        e->docs = next;
    }
    ed_language_close(e);
    ed_suggest_close(e);
    ed_replace_forget(e);
    ed_search_free(e->find.search);
    ed_panel_close(e);
    ed_results_close(e);
    ed_files_close(e);
    ed_shell_close(e);
    free(e->settings.make);
    json_decref(e->actions);
    ed_vi_close(e);
    ed_graph_close(e);
    free(e->bindings);
    free(e->clipboard.text);
    free(e->macro.keys);
    free(e);
}

static whit_status show_first(ed *e, struct ed_doc *doc, whit_error *error)
{
    if (!e->root) {
        e->root = e->window = ed_window_new(e, doc);
        if (!e->root) return whit_fail_memory(error, "a window", sizeof *e->root);
        ed_check_journal(e);
    }
    ed_windows_layout(e);
    return WHIT_OK;
}

whit_status whit_editor_add_file(whit_editor *e, const char *name, whit_error *error)
{
    /* split FILE:LINE[:COLUMN], unless a file with the whole name exists */
    char path[PATH_MAX];
    unsigned long numbers[2] = {0, 0};
    if (strlen(name) >= sizeof path)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%.100s...: the path is longer than %zu bytes, the limit", name,
                         sizeof path - 1);
    snprintf(path, sizeof path, "%s", name);
    for (int i = 0; i < 2 && !whit_path_exists(path); i++) {
        char *colon = strrchr(path, ':'), *end;
        if (!colon || colon == path || colon[1] < '0' || colon[1] > '9') break;
        unsigned long number = strtoul(colon + 1, &end, 10);
        if (*end) break;
        numbers[1] = numbers[0];
        numbers[0] = number;
        *colon = 0;
    }
    struct ed_doc *doc = ed_open_file(e, path, error);
    if (!doc) {
        ed_complain_error(e, error);
        return error->status;
    }
    bool first = !e->root;
    WHIT_TRY(show_first(e, doc, error));
    struct ed_doc *before = e->window->doc;
    if (numbers[0]) {
        if (!first) ed_window_show(e, e->window, doc);
        ed_place(e, numbers[0], numbers[1]);
        if (!first && before != doc) ed_window_show(e, e->window, before);
    }
    return WHIT_OK;
}

whit_status whit_editor_add_text(whit_editor *e, const char *name, const void *data, size_t n, whit_error *error)
{
    whit_buffer *buffer;
    WHIT_TRY(whit_buffer_open(NULL, NULL, &buffer, error));
    char *own = strdup(name);
    if (own) {
        free(buffer->name);
        buffer->name = own;
    }
    whit_error no_journal = {.status = WHIT_OK};
    if (e->options.journal_folder && !e->options.read_only)
        (void)whit_buffer_keep_nameless(buffer, e->options.journal_folder, !n, &no_journal);
    whit_status status = n ? whit_buffer_edit(buffer, 0, 0, data, n, error) : WHIT_OK;
    whit_buffer_seal(buffer);
    if (status != WHIT_OK) {
        whit_buffer_close(buffer);
        return status;
    }
    struct ed_doc *doc = ed_doc_add(e, buffer);
    if (!doc) return whit_fail_memory(error, "a document", sizeof *doc);
    if (no_journal.status != WHIT_OK) ed_complain_error(e, &no_journal);
    return show_first(e, doc, error);
}

void whit_editor_arrange(whit_editor *e, whit_arrangement how, int n_columns, int n_rows)
{
    struct ed_doc *first = e->window->doc;
    e->n_columns = n_columns;
    e->n_rows = n_rows;
    if (how == WHIT_ARRANGE_COMPARED) {
        if (!first->next || first->next->next) {
            ed_complain(e, "only two files can be compared: give exactly two");
            return;
        }
        ed_compare(e, first, first->next);
    }
    ed_windows_layout(e);
    for (struct ed_doc *doc = first->next; doc && how != WHIT_ARRANGE_TABS; doc = doc->next) {
        if (!ed_window_split(e, how != WHIT_ARRANGE_BELOW)) break;
        ed_window_show(e, e->window, doc);
    }
    while (e->window->doc != first) e->window = ed_window_next(e, e->window);
}

void whit_editor_line(whit_editor *e, const char *line)
{
    if (e->done) return;
    ed_vi_line(e, line + (*line == ':'));
    if (e->done) return;
    ed_vi_hold(e, false);
    e->vi.changed = false;
}

void ed_run(ed *e, int number)
{
    const struct ed_command *command = &ed_commands[number];
    if (!(command->flags & ED_EDITS)) whit_buffer_seal(e->window->doc->buffer);
    if ((command->flags & ED_EDITS) && e->window->doc->buffer->read_only) {
        ed_complain_read_only(e);
        return;
    }
    if (command->flags & ED_ONE) ed_only_main(e);
    if (command->flags & ED_JUMPS) ed_jump_push(e);
    if (command->flags & ED_EDITS) whit_buffer_seal(e->window->doc->buffer);
    struct ed_doc *doc = e->window->doc;
    command->run(e);
    if (e->done) return;
    if ((command->flags & ED_EDITS) && e->window->doc == doc) whit_buffer_seal(doc->buffer);
    e->window->moved_away = false;
    if (e->window->n_cursors > 1) ed_merge_cursors(e);
    if ((command->flags & (ED_MOVES | ED_EDITS)) && e->window->layout.n_folds) {
        uint64_t offset = ed_cursor(e)->offset;
        for (size_t i = 0; i < e->window->layout.n_folds; i++)
            if (offset > e->window->layout.folds[i].begin && offset <= e->window->layout.folds[i].end) {
                whit_layout_unfold(&e->window->layout, offset);
                break;
            }
    }
}

int ed_command_find(const char *name)
{
    for (size_t i = 0; i < ed_n_commands; i++)
        if (!strcmp(ed_commands[i].name, name)) return (int)i;
    return -1;
}

static void record(ed *e, whit_key key)
{
    if (e->macro.n == e->macro.room) {
        size_t room = e->macro.room ? 2 * e->macro.room : 64;
        whit_key *grown = room > 65536 ? NULL : realloc(e->macro.keys, room * sizeof *grown);
        if (!grown) {
            e->macro.recording = false;
            ed_complain(e, "the macro is longer than 65,536 keys, the limit: recording has ended");
            return;
        }
        e->macro.keys = grown;
        e->macro.room = room;
    }
    e->macro.keys[e->macro.n++] = key;
}

void ed_take_key(ed *e, whit_key key, const char *paste, size_t n_paste)
{
    if (e->prompt.kind && ed_prompt_key(e, key, paste, n_paste)) return;
    if (key.code >= WHIT_KEY_PRESS && key.code <= WHIT_KEY_WHEEL_DOWN) {
        if (!e->prompt.kind) ed_click(e, key);
        if (!e->prompt.kind && key.code == WHIT_KEY_PRESS) ed_files_enter(e);
        return;
    }
    if (key.code == WHIT_KEY_ENTER && !key.mods && ed_files_enter(e)) return;
    if (e->vi.on && ed_vi_key(e, key, paste, n_paste)) return;
    if (key.code == WHIT_KEY_PASTE) {
        ed_paste(e, paste, n_paste);
        return;
    }
    int command = ed_config_command(e, key);
    e->shift = false;
    if (command < 0 && (key.mods & WHIT_MOD_SHIFT)) { /* Shift with a movement key extends the selection */
        whit_key plain = key;
        plain.mods &= (uint8_t)~WHIT_MOD_SHIFT;
        command = ed_config_command(e, plain);
        if (command >= 0 && !(ed_commands[command].flags & ED_MOVES)) command = -1;
        e->shift = command >= 0;
    }
    if (command >= 0) {
        ed_run(e, command);
        e->shift = false;
        if (!e->done && key.code == WHIT_KEY_ENTER && !e->vi.on && !*e->message && e->window->n_cursors == 1)
            ed_welcome_stranger(e);
    } else if (key.code < WHIT_KEY_NONE && !(key.mods & (WHIT_MOD_ALT | WHIT_MOD_CTRL))) {
        uint8_t text[4];
        size_t n = whit_utf8_encode(key.code, text);
        ed_type(e, (const char *)text, n);
    } else if (key.code != WHIT_KEY_ESCAPE) {
        char name[24];
        whit_key_name(key, name, sizeof name);
        ed_complain(e, "%s does nothing; F1 shows the keys", name);
    } else {
        ed_only_main(e);
        ed_cursor(e)->anchor = ED_NONE;
    }
}

void whit_editor_key(whit_editor *e, whit_key key, const char *paste, size_t n_paste)
{
    if (!e->root || e->done) return;
    e->message[0] = 0;
    e->git_wish = ED_GIT_NOTHING;
    if (e->macro.recording && !e->macro.playing && key.code < WHIT_KEY_PASTE) record(e, key);
    if (key.code == WHIT_KEY_PASTE && !paste) {
        ed_complain(e, "a paste of more than %u MiB is ignored", WHIT_PASTE_LIMIT_BYTES >> 20);
        return;
    }
    bool stops = key.code == WHIT_KEY_ESCAPE || (key.code == 'c' && key.mods == WHIT_MOD_CTRL && e->vi.on);
    if (stops && ed_shell_runs(e) && !e->prompt.kind && !(e->vi.on && ed_vi_is_inserting(e))) {
        ed_shell_stop(e);
        return;
    }
    if (key.code == WHIT_KEY_TAB && !key.mods && ed_suggest_accept(e)) return;
    const struct ed_doc *doc = e->window->doc;
    uint64_t version = doc->buffer->version, offset = ed_cursor(e)->offset;
    ed_take_key(e, key, paste, n_paste);
    if (e->done) return;
    if (key.code == WHIT_KEY_PASTE && e->macro.recording) ed_complain(e, "pasted text is not recorded in the macro");
    if (e->vi.on) ed_vi_settle(e, key);
    ed_suggest_key(e, doc, version, offset);
    bool opens = (key.code == '(' || key.code == ',') && !key.mods && doc->buffer->version != version;
    if (opens && !e->prompt.kind && e->window->doc == doc && (!e->vi.on || ed_vi_is_inserting(e)))
        ed_signature_typed(e);
}

bool whit_editor_is_done(const whit_editor *e)
{
    return e->done;
}

const char *whit_editor_path(const whit_editor *e)
{
    return e->window && !e->done ? e->window->doc->buffer->path : NULL;
}

bool whit_editor_wants_mouse(const whit_editor *e)
{
    return e->settings.mouse;
}

size_t whit_editor_fds(const whit_editor *e, struct pollfd *fds, size_t max)
{
    size_t n = 0;
    int agent = e->options.panel ? e->options.panel->fd(e->options.panel->user) : -1;
    if (agent >= 0 && n < max) fds[n++] = (struct pollfd){agent, POLLIN, 0};
    for (size_t i = 0; i < e->n_servers; i++) {
        int both[2];
        if (!e->servers[i].lsp || n + 2 > max) continue;
        whit_lsp_fds(e->servers[i].lsp, both);
        fds[n++] = (struct pollfd){both[0], POLLIN, 0};
        fds[n++] = (struct pollfd){both[1], POLLOUT, 0};
    }
    int git = e->window ? whit_git_fd(e->window->doc->git.file) : -1;
    if (git >= 0 && n < max) fds[n++] = (struct pollfd){git, POLLIN, 0};
    if (ed_shell_runs(e) && n + 2 <= max) {
        fds[n++] = (struct pollfd){e->shell.child.out, POLLIN, 0};
        fds[n++] = (struct pollfd){e->shell.child.in, POLLOUT, 0};
    }
    if (e->options.suggester && n < max) fds[n++] = (struct pollfd){e->options.suggester->fd, POLLIN, 0};
    return n;
}

int whit_editor_wait_ms(const whit_editor *e)
{
    int map_ms = ed_vi_map_wait_ms(e);
    if (map_ms >= 0) return map_ms;
    if (!e->suggestion.due_ns) return -1;
    uint64_t now = whit_now_ns();
    return e->suggestion.due_ns <= now ? 0 : (int)((e->suggestion.due_ns - now + 999999) / 1000000);
}

bool whit_editor_ready(whit_editor *e)
{
    if (!e->root || e->done) return false;
    bool redraw = ed_language_pump(e);
    redraw = ed_suggest_take(e) || redraw;
    redraw = ed_git_answer(e) || redraw;
    redraw = ed_shell_pump(e) || redraw;
    return (e->options.panel && e->options.panel->pump(e->options.panel->user, e)) || redraw;
}

const whit_theme *whit_editor_theme(const whit_editor *e)
{
    return &e->settings.theme;
}

void whit_editor_flush(whit_editor *e)
{
    whit_error error;
    for (struct ed_doc *doc = e->docs; doc; doc = doc->next)
        if (whit_buffer_flush(doc->buffer, &error) != WHIT_OK) ed_complain_error(e, &error);
}

static void check_file(ed *e, struct ed_doc *doc)
{
    if (!whit_buffer_is_conflicting(doc->buffer)) {
        doc->conflict_shown = false;
        return;
    }
    ed_git_forget(doc);
    if (doc->conflict_shown) return;
    doc->conflict_shown = true;
    bool lost = whit_file_is_lost(&doc->buffer->file);
    if (!whit_buffer_is_modified(doc->buffer) && access(doc->buffer->path, R_OK) == 0) {
        if (ed_read_again(e)) ed_say(e, "%s was changed by another program and read again", doc->buffer->name);
        return;
    }
    const char *deed = "changed";
    if (lost)
        deed = "truncated";
    else if (!whit_path_exists(doc->buffer->path))
        deed = "removed";
    ed_complain(e, "%s was %s by another program; saving will ask", doc->buffer->name, deed);
}

bool whit_editor_check_files(whit_editor *e)
{
    if (!e->root || e->done) return true;
    if (e->prompt.kind) return false;
    check_file(e, e->window->doc);
    return true;
}

bool whit_editor_idle(whit_editor *e, bool *redraw)
{
    *redraw = false;
    if (!e->root) return false;
    if (ed_vi_map_wait_ms(e) == 0) {
        ed_vi_map_flush(e);
        return *redraw = true;
    }
    for (struct ed_doc *doc = e->docs; doc; doc = doc->next) {
        if (whit_text_is_counted(doc->buffer->text)) continue;
        bool more = whit_text_count(doc->buffer->text, 4u << 20, whit_file_drop, &doc->buffer->file);
        *redraw = !more && doc == e->window->doc;
        return true;
    }
    /* If the nearest known syntax state is too far before the window's top for a paint, compute the state at the top
     * now. */
    struct ed_window *window = e->window;
    if (window->doc->syntax) {
        uint32_t state;
        bool known = whit_syntax_states_at(&window->doc->states, window->doc->syntax, window->doc->buffer->text,
                                           window->top, WHIT_SYNTAX_PAINT_BYTES, &state);
        if (!known) {
            *redraw = whit_syntax_states_at(&window->doc->states, window->doc->syntax, window->doc->buffer->text,
                                            window->top, 256u << 10, &state);
            return true;
        }
    }
    ed_suggest_idle(e);
    if (ed_tree_update(e, window->doc, redraw)) return true;
    if (ed_servers_look(e)) return *redraw = true;
    bool told = ed_language_update(e);
    if (ed_language_pump(e)) *redraw = told = true; /* sending a question may have read an answer */
    if (told) return true;
    if (ed_git_update(window->doc)) return *redraw = true;
    struct ed_doc *other = window->doc->compared.with;
    if (other && ed_git_update(other)) return *redraw = true;
    return false;
}
