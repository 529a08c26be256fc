/* SPDX-License-Identifier: MIT */
#include "editor/state.h"
#include "base/items.h"
#include "base/path.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OUTPUT_BYTES (64u << 20)
#define INPUT_BYTES  (64u << 20)
#define LINE_BYTES   1000 /* number of bytes at the beginning of an output line that are searched for a place */
#define NO_ERRORS    " 2>/dev/null"
#define FOLDERS_MAX  32 /* maximum nesting of the folders that `make` reports to enter */

static const char *folder_of(const ed *e)
{
    return e->options.project ? e->options.project : ".";
}

/* ---- starting and ending ------------------------------------------------------------------- */

static bool read_input(ed *e, whit_range range)
{
    struct ed_shell *shell = &e->shell;
    size_t n = (size_t)(range.end - range.begin);
    if (!n) return true;
    if (n > INPUT_BYTES || !whit_buf_reserve(&shell->input, n)) {
        ed_complain(e, "a command takes at most %u MiB of text", INPUT_BYTES >> 20);
        return false;
    }
    shell->input.size_bytes = whit_text_read(ed_text(e), range.begin, shell->input.data, n);
    return true;
}

static void complain_long_command(ed *e)
{
    ed_complain(e, "the command is longer than %zu bytes, the limit", sizeof e->shell.command - 1);
}

void ed_shell_start(ed *e, ed_shell_kind kind, const char *command, whit_range range)
{
    struct ed_shell *shell = &e->shell;
    if (ed_shell_runs(e)) {
        ed_complain(e, "'%.100s' is still running; Esc stops it", shell->command);
        return;
    }
    while (*command == ' ') command++;
    if (!*command) {
        ed_complain(e, "no command was given: type one, as in 'make test'");
        return;
    }
    if ((size_t)snprintf(shell->command, sizeof shell->command, "%s", command) >= sizeof shell->command) {
        complain_long_command(e);
        return;
    }
    shell->kind = kind;
    shell->doc = e->window->doc;
    shell->range = range;
    shell->version = shell->doc->buffer->version;
    shell->cursor = ed_cursor(e)->offset;
    shell->stopped = false;
    shell->n_sent = 0;
    shell->output.limit_bytes = OUTPUT_BYTES;
    if (kind != ED_SHELL_INSERT && !read_input(e, range)) return;
    char line[sizeof shell->command + sizeof NO_ERRORS];
    whit_error error;
    /* warnings of a formatter that succeeds are no part of the text */
    snprintf(line, sizeof line, "%s%s", shell->command, kind == ED_SHELL_FORMAT ? NO_ERRORS : "");
    if (whit_piped_start_line(&shell->child, line, folder_of(e), &error) != WHIT_OK) {
        ed_complain_error(e, &error);
        return;
    }
    ed_say(e, "running '%.200s'; Esc stops it", shell->command);
    if (!shell->input.size_bytes) whit_piped_close_input(&shell->child);
}

bool ed_shell_runs(const ed *e)
{
    return e->shell.child.process != 0;
}

void ed_shell_stop(ed *e)
{
    if (!ed_shell_runs(e)) return;
    e->shell.stopped = true;
    whit_piped_kill(&e->shell.child);
}

void ed_shell_forget(ed *e, const struct ed_doc *doc)
{
    if (e->shell.pad == doc) e->shell.pad = NULL;
    if (e->shell.doc == doc) e->shell.doc = NULL;
}

static void free_buffers(struct ed_shell *shell)
{
    whit_buf_free(&shell->input);
    whit_buf_free(&shell->output);
}

void ed_shell_close(ed *e)
{
    struct ed_shell *shell = &e->shell;
    (void)whit_piped_end(&shell->child, 0);
    free_buffers(shell);
}

/* ---- places in the output ------------------------------------------------------------------ */

struct folders {
    char names[FOLDERS_MAX][PATH_MAX];
    size_t n;
};

/* Updates the stack of folders from make's lines "Entering directory 'x'" and "Leaving directory 'x'". */
static void follow_make(struct folders *folders, const char *line)
{
    const char *enters = strstr(line, "Entering directory '"), *name = enters ? strchr(enters, '\'') + 1 : NULL;
    const char *end = name ? strchr(name, '\'') : NULL;
    if (end && folders->n < FOLDERS_MAX)
        snprintf(folders->names[folders->n++], PATH_MAX, "%.*s", (int)(end - name), name);
    if (strstr(line, "Leaving directory '") && folders->n) folders->n--;
}

static bool find_file(const ed *e, const struct folders *folders, const char *name, size_t n, char *path)
{
    const char *folder = folders->n ? folders->names[folders->n - 1] : folder_of(e);
    if (!n || n >= PATH_MAX) return false;
    int written = whit_path_is_absolute(name) || !strcmp(folder, ".")
        ? snprintf(path, PATH_MAX, "%.*s", (int)n, name)
        : snprintf(path, PATH_MAX, "%s/%.*s", folder, (int)n, name);
    struct stat about;
    return written > 0 && written < PATH_MAX && stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* Finds a place in a line of output: FILE:LINE of compilers and grep, also after "--> ", or Python's File "FILE", line
 * LINE. */
static bool find_place(const ed *e, const struct folders *folders, const char *line, char *path, uint64_t *number)
{
    const char *at = line + strspn(line, " \t"), *colon;
    if (!strncmp(at, "--> ", 4)) at += 4;
    if (!strncmp(at, "File \"", 6)) {
        const char *name = at + 6, *quote = strchr(name, '"');
        if (!quote || strncmp(quote, "\", line ", 8) != 0) return false;
        *number = strtoull(quote + 8, NULL, 10);
        return *number && find_file(e, folders, name, (size_t)(quote - name), path);
    }
    for (colon = strchr(at, ':'); colon; colon = strchr(colon + 1, ':')) {
        if (!isdigit((uint8_t)colon[1])) continue;
        *number = strtoull(colon + 1, NULL, 10);
        return *number && find_file(e, folders, at, (size_t)(colon - at), path);
    }
    return false;
}

static void find_places(ed *e)
{
    const whit_buf *output = &e->shell.output;
    struct folders *folders = calloc(1, sizeof *folders);
    ed_results_begin(e, "Make: ");
    for (size_t at = 0, n; folders && at < output->size_bytes; at += n + 1) {
        const char *begin = whit_chars(output) + at;
        const char *feed = memchr(begin, '\n', output->size_bytes - at);
        char line[LINE_BYTES], path[PATH_MAX];
        uint64_t number;
        n = feed ? (size_t)(feed - begin) : output->size_bytes - at;
        snprintf(line, sizeof line, "%.*s", n < sizeof line ? (int)n : (int)sizeof line - 1, begin);
        follow_make(folders, line);
        if (find_place(e, folders, line, path, &number) && !ed_results_add(e, line, path, number)) break;
    }
    free(folders);
}

/* ---- end of a command ---------------------------------------------------------------------- */

/* Shows a single line of less than 200 bytes in the message line (ED_SHELL_SHOW only), and other output in a window;
 * the keyboard focus stays in the text. */
static void show_output(ed *e)
{
    struct ed_shell *shell = &e->shell;
    const char *text = whit_chars(&shell->output);
    size_t n = shell->output.size_bytes;
    if (!n) return;
    const char *feed = memchr(text, '\n', n);
    if (n < 200 && (!feed || feed + 1 == text + n) && shell->kind == ED_SHELL_SHOW) {
        ed_say(e, "%.*s", (int)(feed ? feed - text : (ptrdiff_t)n), text);
        return;
    }
    struct ed_doc *doc = ed_pad_open(e, &shell->pad, "output", "output");
    if (!doc) return;
    ed_pad_clear(doc);
    ed_pad_append(e, doc, text, n);
    struct ed_window *before = e->window;
    if (!ed_pad_show(e, doc, false)) {
        ed_say(e, "the output of '%.200s' is in the buffer 'output'", shell->command);
        return;
    }
    *ed_cursor(e) = (struct ed_cursor){0, ED_NONE, -1};
    if (before->doc != doc) e->window = before;
}

static bool is_blank(const whit_text *text)
{
    for (uint64_t at = 0; at < whit_text_size(text);) {
        whit_span span = whit_text_at(text, at);
        for (uint64_t i = 0; i < span.size_bytes; i++)
            if (!isspace(span.data[i])) return false;
        at += span.size_bytes;
    }
    return true;
}

/* Replaces the document's text by the formatter's output. */
static void put_formatted(ed *e, struct ed_doc *doc)
{
    const whit_buf *output = &e->shell.output;
    whit_error why;
    if (!output->size_bytes && !is_blank(doc->buffer->text))
        ed_complain(e, "nothing was formatted, because the formatter printed nothing");
    else if (whit_buffer_become(doc->buffer, output->size_bytes ? whit_chars(output) : "", output->size_bytes, &why) !=
             WHIT_OK)
        ed_complain_error(e, &why);
    else
        ed_say(e, "formatted; not saved yet");
}

/* Runs a formatter that has failed again, to show its errors. */
static void show_format_errors(ed *e)
{
    struct ed_shell *shell = &e->shell;
    char command[sizeof shell->command];
    if (shell->doc != e->window->doc ||
        snprintf(command, sizeof command, "%s >/dev/null", shell->command) >= (int)sizeof command)
        return;
    ed_shell_start(e, ED_SHELL_SHOW, command, (whit_range){0, whit_text_size(ed_text(e))});
}

static void put_output(ed *e)
{
    struct ed_shell *shell = &e->shell;
    struct ed_doc *doc = shell->doc;
    if (!doc || doc->buffer->version != shell->version) {
        ed_complain(e, "the text has changed meanwhile: the output of '%.100s' was not inserted", shell->command);
        return;
    }
    if (shell->kind == ED_SHELL_FORMAT) {
        put_formatted(e, doc);
        return;
    }
    const char *text = shell->output.size_bytes ? whit_chars(&shell->output) : "";
    whit_error error = {0};
    uint64_t n_removed = shell->kind == ED_SHELL_FILTER ? shell->range.end - shell->range.begin : 0;
    uint64_t at = n_removed ? shell->range.begin : shell->range.end;
    whit_buffer_seal(doc->buffer);
    doc->buffer->held = true; /* the removal and the insertion become one step of undo */
    whit_status status = n_removed ? whit_buffer_edit(doc->buffer, at, n_removed, NULL, 0, &error) : WHIT_OK;
    if (status != WHIT_OK)
        ed_complain_error(e, &error);
    else if (shell->output.size_bytes)
        ed_put_lines(e, doc, at, text, shell->output.size_bytes);
    doc->buffer->held = false;
    whit_buffer_seal(doc->buffer);
}

/* Returns whether the person has neither typed nor moved since the command was started. Otherwise, showing a place of
 * the output would put the next keys into another text. */
static bool is_left_alone(ed *e)
{
    const struct ed_shell *shell = &e->shell;
    return !e->prompt.kind && e->window->doc == shell->doc && shell->doc->buffer->version == shell->version &&
        ed_cursor(e)->offset == shell->cursor;
}

static void finish_command(ed *e)
{
    struct ed_shell *shell = &e->shell;
    /* a command that has closed its output is ended at once, not waited for */
    const int code = whit_piped_end(&shell->child, 0);
    if (shell->output.size_bytes)
        shell->output.size_bytes = whit_piped_plain(WHIT_ITEMS(char, &shell->output), shell->output.size_bytes);
    if (shell->stopped || code < 0)
        ed_say(e, "'%.200s' was stopped", shell->command);
    else if (code)
        ed_complain(e, "'%.200s' ended with status %d", shell->command, code);
    else
        ed_say(e, "'%.200s' has ended", shell->command);
    if (shell->output.failed)
        ed_complain(e, "'%.200s' printed more than %u MiB: the rest is lost", shell->command, OUTPUT_BYTES >> 20);
    if (shell->kind == ED_SHELL_MAKE) {
        find_places(e);
        show_output(e);
        if (e->results.n && is_left_alone(e)) ed_results_go(e, 0);
    } else if (shell->kind == ED_SHELL_SHOW) {
        show_output(e);
    } else if (code || shell->stopped || shell->output.failed) {
        show_output(e);
    } else {
        put_output(e);
    }
    free_buffers(shell);
    if (shell->kind == ED_SHELL_FORMAT && code > 0 && !shell->stopped) show_format_errors(e);
}

bool ed_shell_pump(ed *e)
{
    struct ed_shell *shell = &e->shell;
    if (!ed_shell_runs(e)) return false;
    while (shell->child.in >= 0) {
        if (shell->n_sent == shell->input.size_bytes) {
            whit_piped_close_input(&shell->child);
            break;
        }
        ssize_t n = write(shell->child.in, shell->input.data + shell->n_sent, shell->input.size_bytes - shell->n_sent);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        /* the command has closed its input before reading all of it */
        if (n < 0) whit_piped_close_input(&shell->child);
        if (n > 0) shell->n_sent += (size_t)n;
    }
    for (;;) {
        if (!whit_buf_reserve(&shell->output, 65536)) ed_shell_stop(e);
        char dropped[4096];
        bool full = shell->output.failed;
        ssize_t n = full ? read(shell->child.out, dropped, sizeof dropped)
                         : read(shell->child.out, shell->output.data + shell->output.size_bytes, 65536);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return false;
        if (n <= 0) break;
        if (!full) shell->output.size_bytes += (size_t)n;
    }
    finish_command(e);
    return true;
}

void ed_make(ed *e, const char *arguments)
{
    char command[sizeof e->shell.command];
    const char *make = e->settings.make ? e->settings.make : "make";
    if (snprintf(command, sizeof command, "%s%s%s", make, *arguments ? " " : "", arguments) >= (int)sizeof command)
        complain_long_command(e);
    else
        ed_shell_start(e, ED_SHELL_MAKE, command, (whit_range){0, 0});
}
