/* SPDX-License-Identifier: MIT
 * Runs the agent's panel, a text that the editor owns and that shows tasks, answers, diffs, and questions about
 * them. */
#include "editor/state.h"

#include "base/items.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WIDE_COLUMNS 100 /* number of columns from which on the panel is beside the text */
/* number of columns up to which nobody can read a change, nor "more below" in its question */
#define NARROW_COLUMNS 10

/* ---- the panel's text ---------------------------------------------------------------------------------- */

static struct ed_doc *panel_doc(ed *e)
{
    return ed_pad_open(e, &e->panel.doc, "agent", "agent.diff");
}

static void append_text(ed *e, const char *text, size_t n)
{
    ed_pad_append(e, panel_doc(e), text, n);
}

/* Appends a line feed to the panel unless its last line is ended. */
static void begin_line(ed *e)
{
    struct ed_doc *doc = panel_doc(e);
    uint64_t size = doc ? whit_text_size(doc->buffer->text) : 0;
    if (size && whit_text_byte(doc->buffer->text, size - 1) != '\n') append_text(e, "\n", 1);
}

static void append_line(ed *e, const char *mark, const char *line)
{
    begin_line(e);
    append_text(e, mark, strlen(mark));
    append_text(e, line, strlen(line));
    append_text(e, "\n", 1);
}

/* Shows the panel in a window, beside the text if the screen is wide, and makes this window current. Its lines are
 * always wrapped and never folded, so that nobody approves text that is not visible. */
static void show_panel(ed *e)
{
    struct ed_doc *doc = panel_doc(e);
    if (!doc) return;
    (void)ed_pad_show(e, doc, e->n_columns >= WIDE_COLUMNS); /* no prompt is open */
    e->window->wrap = true;
    e->window->layout.n_folds = 0;
    ed_windows_layout(e);
}

void ed_panel_forget(ed *e, const struct ed_doc *doc)
{
    if (e->panel.doc == doc) {
        e->panel.doc = NULL;
        /* hunks that wait for approval must be appended to the next panel again */
        e->panel.asked = e->panel.shown = e->panel.at;
    }
    if (e->panel.rewritten == doc) e->panel.rewritten = NULL;
}

void ed_panel_close(ed *e)
{
    free(e->panel.taken);
    free(e->panel.question);
    free(e->panel.model);
    free(e->panel.url);
    free(e->panel.name);
    free(e->panel.key_file);
}

bool ed_panel_waits(const ed *e)
{
    return e->panel.hunks || e->panel.question;
}

/* ---- questions ------------------------------------------------------------------------------------- */

/* Appends a hunk to the panel; before the first hunk of a file with a reason, appends the reason. */
static void append_hunk(ed *e, size_t i)
{
    struct ed_panel *panel = &e->panel;
    const whit_panel_hunk *hunk = &panel->hunks[i];
    begin_line(e);
    if (hunk->reason && (!i || strcmp(hunk[-1].path, hunk->path) != 0)) {
        append_text(e, "! ", 2);
        append_text(e, hunk->path, strlen(hunk->path));
        append_text(e, ": ", 2);
        append_text(e, hunk->reason, strlen(hunk->reason));
        append_text(e, "\n", 1);
    }
    append_text(e, hunk->text, hunk->n_bytes);
    if (panel->shown <= i) panel->shown = i + 1;
}

/* Returns the beginning of the first row below the current window, UINT64_MAX if the text ends in it. */
static uint64_t row_below(ed *e)
{
    uint64_t row = e->window->top;
    for (int n = e->window->n_rows - 1; n > 0 && row != UINT64_MAX; n--) /* the last row is the status line */
        row = whit_layout_next_row(ed_layout(e), row);
    return row;
}

/* Scrolls the panel so that the text from this offset on is visible, beginning with its first line. */
static void show_from(ed *e, uint64_t from)
{
    struct ed_panel *panel = &e->panel;
    struct ed_window *window = e->window;
    ed_window_follow(e, window); /* computes the width at which a new window wraps lines */
    window->top = from;
    window->moved_away = row_below(e) != UINT64_MAX; /* keep the window at the beginning of the text */
    if (window->moved_away) ed_cursor(e)->offset = from;
    panel->shown_from = from;
    panel->shown_columns = window->n_columns;
    panel->shown_rows = window->n_rows;
}

void ed_panel_fit(ed *e)
{
    const struct ed_panel *panel = &e->panel;
    const struct ed_window *window = e->window;
    if ((e->prompt.kind != ED_PROMPT_HUNK && e->prompt.kind != ED_PROMPT_AGENT_REPLY) || window->doc != panel->doc)
        return;
    if (window->n_columns != panel->shown_columns || window->n_rows != panel->shown_rows)
        show_from(e, panel->shown_from);
}

static uint64_t panel_end(ed *e)
{
    begin_line(e);
    return whit_text_size(e->panel.doc->buffer->text);
}

/* Returns the longest end of a path that is at most n_columns wide and 100 bytes long, since the words after it in a
 * question must be visible. */
static const char *path_end(const char *path, int n_columns)
{
    size_t n = strlen(path);
    while (n && (n > 100 || whit_glyphs_width(path, n) > n_columns)) {
        do {
            path++;
            n--;
        } while (((uint8_t)*path & 0xC0) == 0x80);
    }
    return path;
}

/* Returns whether the current window shows the panel, and has room for a change. */
static bool has_room(const ed *e)
{
    const struct ed_window *window = e->window;
    return e->panel.doc && window->doc == e->panel.doc && window->n_rows > 1 && window->n_columns > NARROW_COLUMNS;
}

static bool is_cut_off(ed *e)
{
    return row_below(e) < whit_text_size(e->panel.doc->buffer->text);
}

/* Writes the prompt of the question that the agent has asked. */
static void label_question(ed *e)
{
    struct ed_panel *panel = &e->panel;
    const bool has_window = has_room(e);
    const char *label = "Answer (Esc gives none): ";
    if (has_window && !is_cut_off(e)) panel->is_seen = true;
    if (!has_window)
        label = "no room to show the question (Esc gives no answer): ";
    else if (!panel->is_seen)
        label = "more below (PageDown shows it, Esc gives no answer): ";
    snprintf(e->prompt.label, sizeof e->prompt.label, "%s", label);
}

void ed_panel_label(ed *e)
{
    static const char keys[] = "y yes, n no, a all, d none: ", dots[] = "...";
    const struct ed_panel *panel = &e->panel;
    const whit_panel_hunk *hunk = panel->hunks ? &panel->hunks[panel->at] : NULL;
    char *label = e->prompt.label, rest[80];
    const size_t n_label = sizeof e->prompt.label;
    if (e->prompt.kind == ED_PROMPT_AGENT_REPLY) label_question(e);
    if (e->prompt.kind != ED_PROMPT_HUNK || !hunk) return;
    if (!has_room(e)) {
        snprintf(label, n_label, "no room to show the change: n no, d none, Esc later");
        return;
    }
    const bool has_more = is_cut_off(e);
    if (!has_more) e->panel.is_seen = true;
    if (panel->asks_all) {
        snprintf(label, n_label, "%s: a all, d none, y n one by one: %zu to %zu",
                 has_more ? "more below (PageDown)" : "all hunks are shown", panel->at + 1, panel->n_hunks);
        return;
    }
    const char *below = has_more ? "more below; " : ""; /* at the beginning, which a narrow terminal shows, too */
    snprintf(rest, sizeof rest, ", %zu of %zu%s", panel->at + 1, panel->n_hunks, hunk->reason ? " (!)" : "");
    const int room = e->n_columns - (int)(strlen(below) + sizeof keys - 1 + strlen(rest));
    const char *path = path_end(hunk->path, room);
    const bool is_cut = path != hunk->path;
    if (is_cut) path = path_end(path, room - (int)sizeof dots + 1);
    snprintf(label, n_label, "%s%s%s%s%s", below, keys, is_cut ? dots : "", path, rest);
}

static void ask_hunk(ed *e)
{
    struct ed_panel *panel = &e->panel;
    show_panel(e);
    if (panel->asked <= panel->at) { /* append the hunk only when its question is first opened */
        panel->from = panel_end(e);
        append_hunk(e, panel->at);
        panel->asked = panel->at + 1;
    }
    show_from(e, panel->from);
    panel->asks_all = panel->is_seen = false;
    ed_prompt_open(e, ED_PROMPT_HUNK, "", "");
}

/* Shows all hunks that were not shown yet, and asks again, so that no hunk is approved unseen. */
static void ask_all(ed *e)
{
    struct ed_panel *panel = &e->panel;
    show_panel(e);
    uint64_t from = panel_end(e);
    for (size_t i = panel->shown; i < panel->n_hunks; i++) append_hunk(e, i);
    show_from(e, from);
    panel->asks_all = true;
    panel->is_seen = false;
    ed_prompt_open(e, ED_PROMPT_HUNK, "", "");
}

static void finish_hunks(ed *e)
{
    struct ed_panel *panel = &e->panel;
    size_t n_taken = 0;
    for (size_t i = 0; i < panel->n_hunks; i++) n_taken += panel->taken[i];
    ed_say(e, "%zu of %zu hunks approved", n_taken, panel->n_hunks);
    panel->hunks = NULL;
    e->options.panel->choose(e->options.panel->user, panel->taken, panel->n_hunks);
}

void ed_panel_answer(ed *e, uint32_t letter)
{
    struct ed_panel *panel = &e->panel;
    if (!panel->hunks) return;
    if (letter != 'y' && letter != 'n' && letter != 'a' && letter != 'd') return;
    if ((letter == 'y' || letter == 'a') && !ed_panel_may_reply(e)) return; /* the question says so */
    ed_prompt_close(e);
    if (letter == 'a' && panel->shown < panel->n_hunks) {
        ask_all(e);
        return;
    }
    if (letter == 'y') panel->taken[panel->at] = 1;
    if (letter == 'a') memset(panel->taken + panel->at, 1, panel->n_hunks - panel->at);
    panel->at = letter == 'a' || letter == 'd' ? panel->n_hunks : panel->at + 1;
    if (panel->at < panel->n_hunks)
        ask_hunk(e);
    else
        finish_hunks(e);
}

void ed_panel_scroll(ed *e, whit_key key)
{
    struct ed_window *before = e->window, *window = e->panel.doc ? ed_pad_window(e, e->panel.doc) : NULL;
    const char *name = "page-down";
    if (key.code == WHIT_KEY_PAGE_UP)
        name = "page-up";
    else if (key.code == WHIT_KEY_UP)
        name = "up";
    else if (key.code == WHIT_KEY_DOWN)
        name = "down";
    int command = ed_command_find(name);
    if (!window || command < 0) return;
    e->window = window;
    ed_run(e, command);
    e->window = before;
}

static void append_question(ed *e)
{
    begin_line(e);
    if (e->panel.doc) e->panel.from = panel_end(e);
    append_line(e, "? ", e->panel.question);
}

static void ask_now(ed *e)
{
    if (e->panel.hunks) {
        ask_hunk(e);
    } else if (e->panel.question) {
        /* the panel was closed after the question was appended */
        if (!e->panel.doc) append_question(e);
        show_panel(e);
        if (!e->panel.doc) return;
        show_from(e, e->panel.from);
        e->panel.is_seen = false;
        ed_prompt_open(e, ED_PROMPT_AGENT_REPLY, "", "");
    }
}

static bool may_ask(const ed *e)
{
    const bool is_shown = e->panel.doc && e->window->doc == e->panel.doc;
    return !e->prompt.kind && (is_shown || e->panel.is_turning);
}

static void forget_question(ed *e)
{
    free(e->panel.question);
    e->panel.question = NULL;
}

bool ed_panel_may_reply(const ed *e)
{
    return e->panel.is_seen && has_room(e);
}

void ed_panel_reply(ed *e, const char *text)
{
    const whit_panel *agent = e->options.panel;
    if (!e->panel.question) return;
    forget_question(e);
    append_line(e, "> ", text ? text : "(no answer was given)");
    agent->reply(agent->user, text);
}

/* ---- requests of the person ------------------------------------------------------------------------ */

whit_panel_wish ed_panel_wish(const ed *e)
{
    const struct ed_panel *panel = &e->panel;
    return (whit_panel_wish){panel->model, panel->url, panel->name, panel->key_file};
}

static bool begin_request(ed *e, whit_panel_request request)
{
    struct ed_panel *panel = &e->panel;
    const whit_panel *agent = e->options.panel;
    whit_error error;
    if (panel->working) {
        ed_complain(e, "the agent is at work; agent-stop (S-F9) stops it");
        return false;
    }
    request.wish = ed_panel_wish(e);
    if (agent->begin(agent->user, &request, &error) != WHIT_OK) {
        ed_complain_error(e, &error);
        return false;
    }
    panel->working = true;
    panel->is_turning = request.kind == WHIT_PANEL_UNDO || request.kind == WHIT_PANEL_REDO;
    return true;
}

static bool is_there(ed *e)
{
    if (!e->options.panel)
        ed_complain(e, "this editor has no agent: start it as 'whit edit' with -m MODEL or --url URL");
    return e->options.panel != NULL;
}

void ed_agent(ed *e)
{
    if (!is_there(e)) return;
    if (ed_panel_waits(e))
        ask_now(e);
    else if (e->panel.working)
        show_panel(e);
    else
        ed_prompt_open(e, ED_PROMPT_AGENT, "Task: ", "");
}

void ed_agent_task(ed *e, const char *text)
{
    if (!*text || !begin_request(e, (whit_panel_request){.kind = WHIT_PANEL_TASK, .text = text})) return;
    show_panel(e);
    append_line(e, "> ", text);
}

void ed_agent_stop(ed *e)
{
    if (!is_there(e)) return;
    if (!e->panel.working) {
        ed_say(e, "the agent is idle");
        return;
    }
    e->options.panel->stop(e->options.panel->user);
    e->panel.hunks = NULL;
    forget_question(e);
    ed_say(e, "the agent was asked to stop");
}

static void take_back(ed *e, whit_panel_kind kind)
{
    if (is_there(e)) begin_request(e, (whit_panel_request){.kind = kind});
}
void ed_agent_undo(ed *e)
{
    take_back(e, WHIT_PANEL_UNDO);
}
void ed_agent_redo(ed *e)
{
    take_back(e, WHIT_PANEL_REDO);
}

/* Sends a request about the selection or, without one, about the cursor's line. */
static void about_selection(ed *e, whit_panel_kind kind, const char *text)
{
    struct ed_doc *doc = e->window->doc;
    whit_range range = ed_selection(ed_cursor(e));
    if (range.end == range.begin) {
        range.begin = whit_text_line_begin(ed_text(e), range.begin);
        range.end = whit_text_line_end(ed_text(e), range.end);
    }
    size_t n = (size_t)(range.end - range.begin);
    if (!n || doc == e->panel.doc) {
        ed_complain(e, "nothing is selected: select text first");
        return;
    }
    char *selection = n < (1u << 20) ? malloc(n + 1) : NULL;
    if (!selection) {
        ed_complain(e,
                    n < (1u << 20) ? "not enough memory for the selection"
                                   : "the selection is longer than 1 MiB, the limit");
        return;
    }
    whit_text_read(ed_text(e), range.begin, selection, n);
    selection[n] = 0;
    whit_buf around = {0};
    if (!ed_read_around(e, range.begin, range.end, &around)) {
        ed_complain(e, "not enough memory for the selection");
        free(selection);
        return;
    }
    whit_panel_request request = {.kind = kind,
                                  .text = text,
                                  .selection = selection,
                                  .selection_bytes = n,
                                  .name = doc->buffer->name,
                                  .path = doc->buffer->path,
                                  .around = whit_chars(&around),
                                  .around_bytes = around.size_bytes,
                                  .language = whit_syntax_name(doc->syntax)};
    if (begin_request(e, request)) {
        e->panel.rewritten = doc;
        e->panel.range = range;
        e->panel.version = doc->buffer->version;
        show_panel(e);
        append_line(e, "> ", kind == WHIT_PANEL_EXPLAIN ? "explain" : text);
    }
    whit_buf_free(&around);
    free(selection);
}

void ed_explain(ed *e)
{
    if (is_there(e)) about_selection(e, WHIT_PANEL_EXPLAIN, "");
}
void ed_rewrite(ed *e)
{
    if (is_there(e)) ed_prompt_open(e, ED_PROMPT_REWRITE, "Rewrite how? ", "");
}
void ed_rewrite_as(ed *e, const char *text)
{
    if (*text) about_selection(e, WHIT_PANEL_REWRITE, text);
}

/* ---- output of the agent --------------------------------------------------------------------------- */

void whit_editor_agent_text(whit_editor *e, const char *text, size_t n)
{
    append_text(e, text, n);
}

void whit_editor_agent_note(whit_editor *e, const char *line)
{
    append_line(e, "  . ", line);
}

void whit_editor_agent_done(whit_editor *e, const char *line, bool is_error)
{
    struct ed_panel *panel = &e->panel;
    panel->working = false;
    panel->hunks = NULL;
    forget_question(e);
    if (e->prompt.kind == ED_PROMPT_HUNK || e->prompt.kind == ED_PROMPT_AGENT_REPLY) ed_prompt_close(e);
    if (panel->doc) append_line(e, is_error ? "! " : "  = ", line);
    if (is_error)
        ed_complain(e, "%s", line);
    else
        ed_say(e, "%s", line);
}

void whit_editor_agent_hunks(whit_editor *e, const whit_panel_hunk *hunks, size_t n)
{
    struct ed_panel *panel = &e->panel;
    uint8_t *taken = calloc(n + 1, 1);
    free(panel->taken);
    panel->taken = taken;
    panel->n_hunks = taken ? n : 0;
    panel->at = panel->asked = panel->shown = 0;
    panel->hunks = hunks;
    if (!panel->n_hunks)
        finish_hunks(e);
    else if (may_ask(e))
        ask_now(e);
}

void whit_editor_agent_question(whit_editor *e, const char *question)
{
    struct ed_panel *panel = &e->panel;
    forget_question(e);
    panel->question = strdup(question);
    if (!panel->question) {
        ed_complain(e, "not enough memory for the agent's question");
        e->options.panel->reply(e->options.panel->user, NULL);
        return;
    }
    append_question(e);
    if (may_ask(e)) ask_now(e);
}

bool whit_editor_agent_replace(whit_editor *e, const char *text, size_t n)
{
    struct ed_panel *panel = &e->panel;
    struct ed_doc *doc = panel->rewritten;
    whit_error error;
    panel->rewritten = NULL;
    if (!doc || doc->buffer->version != panel->version) return false;
    whit_buffer_seal(doc->buffer);
    whit_status status =
        whit_buffer_edit(doc->buffer, panel->range.begin, panel->range.end - panel->range.begin, text, n, &error);
    whit_buffer_seal(doc->buffer);
    if (status != WHIT_OK) ed_complain_error(e, &error);
    return status == WHIT_OK;
}

/* ---- open texts ------------------------------------------------------------------------------------ */

static struct ed_doc *unsaved_doc(const ed *e, const char *path)
{
    struct ed_doc *doc = ed_doc_find(e, path);
    return doc && whit_buffer_is_modified(doc->buffer) ? doc : NULL;
}

bool whit_editor_unsaved(whit_editor *e, const char *path, whit_buf *content)
{
    struct ed_doc *doc = unsaved_doc(e, path);
    if (!doc) return false;
    uint64_t size = whit_text_size(doc->buffer->text);
    if (!whit_buf_reserve(content, (size_t)size + 4)) return false;
    if (doc->buffer->file.has_mark) whit_buf_append(content, WHIT_FILE_MARK, 3);
    content->size_bytes += whit_text_read(doc->buffer->text, 0, content->data + content->size_bytes, (size_t)size);
    return true;
}

bool whit_editor_unsaved_paths(const whit_editor *e, const char *folder, whit_buf *paths)
{
    size_t n = strlen(folder);
    for (const struct ed_doc *doc = e->docs; doc; doc = doc->next) {
        const char *path = doc->buffer->path;
        if (!path || !whit_buffer_is_modified(doc->buffer) || strncmp(path, folder, n) != 0 || path[n] != '/') continue;
        if (!whit_buf_append(paths, path + n + 1, strlen(path + n + 1) + 1)) return false;
    }
    return true;
}

whit_status whit_editor_patch(whit_editor *e, const char *path, const char *before, size_t before_bytes,
                              const char *after, size_t after_bytes, whit_error *error)
{
    struct ed_doc *doc = unsaved_doc(e, path);
    whit_buf now = {0};
    bool same = doc && whit_editor_unsaved(e, path, &now) && now.size_bytes == before_bytes &&
        (!before_bytes || memcmp(now.data, before, before_bytes) == 0);
    whit_buf_free(&now);
    if (!same) return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s was changed in the editor meanwhile", path);
    return whit_buffer_become(doc->buffer, after_bytes ? after : "", after_bytes, error);
}

void whit_editor_written(whit_editor *e, const char *path)
{
    struct ed_doc *doc = ed_doc_find(e, path);
    whit_error error;
    if (!doc || whit_buffer_is_modified(doc->buffer) || !whit_buffer_is_conflicting(doc->buffer)) return;
    if (access(path, R_OK) == 0 && whit_buffer_take(doc->buffer, &error) != WHIT_OK) ed_complain_error(e, &error);
}
