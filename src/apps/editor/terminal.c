/* SPDX-License-Identifier: MIT */
#include "editor/terminal.h"

#include "base/clock.h"
#include "base/items.h"
#include "editor/display.h"
#include "editor/editor.h"
#include "editor/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ESCAPE_MS   30 /* milliseconds after which a lone ESC byte counts as the Escape key */
#define STDIN_BYTES (1u << 30)

struct terminal {
    whit_display display;
    bool mouse, is_open;
    whit_screen screen;
    whit_keys keys;
    uint64_t heard_ns; /* time at which bytes were last received */
    whit_editor *editor;
    int watch, watched; /* watch: inotify descriptor; watched: watch of the current file; -1: none */
};

static volatile sig_atomic_t resized, hung_up;

static void on_resize(int number)
{
    (void)number;
    resized = 1;
}

/* Ends the loop at SIGHUP, when the terminal hangs up, and at SIGQUIT. The terminal's settings are then restored, in
 * case it still exists. */
static void on_hangup(int number)
{
    (void)number;
    hung_up = 1;
}

static void send_text(const struct terminal *terminal, const char *text)
{
    whit_display_send(&terminal->display, text, strlen(text));
}

/* Copies text to the terminal's clipboard by the escape sequence OSC 52. */
static void copy_out(void *user, const char *text, size_t n)
{
    const struct terminal *terminal = user;
    size_t room = sodium_base64_encoded_len(n, sodium_base64_VARIANT_ORIGINAL);
    if (n > 256u << 10) return; /* terminals do not accept longer texts */
    char *encoded = malloc(room);
    if (!encoded) return;
    sodium_bin2base64(encoded, room, (const uint8_t *)text, n, sodium_base64_VARIANT_ORIGINAL);
    send_text(terminal, "\033]52;c;");
    send_text(terminal, encoded);
    send_text(terminal, "\a");
    free(encoded);
}

/* ---- showing ------------------------------------------------------------------------------- */

static void show_screen(struct terminal *terminal)
{
    whit_editor_draw(terminal->editor, &terminal->screen);
    whit_display_show(&terminal->display, whit_editor_theme(terminal->editor), &terminal->screen);
}

static void take_size(struct terminal *terminal, bool tell)
{
    struct winsize size;
    int n_columns = 80, n_rows = 24;
    if (ioctl(terminal->display.out, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        n_columns = size.ws_col;
        n_rows = size.ws_row;
    }
    if (tell) whit_display_resize(&terminal->display, n_columns, n_rows);
    (void)whit_screen_resize(&terminal->screen, n_columns, n_rows); /* without memory the screen keeps its size */
}

static whit_status begin_screen(struct terminal *terminal, whit_error *error)
{
    whit_display *display = &terminal->display;
    display->in = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (display->in < 0 || !isatty(display->in)) {
        if (display->in >= 0) close(display->in);
        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "the editor needs a terminal as input and output");
        display->in = STDIN_FILENO;
    }
    display->out = isatty(STDOUT_FILENO) ? STDOUT_FILENO : display->in;
    WHIT_TRY(whit_display_open(display, whit_editor_theme(terminal->editor), error));
    terminal->is_open = true;
    struct sigaction action = {.sa_handler = on_resize};
    sigaction(SIGWINCH, &action, NULL);
    struct sigaction hangup = {.sa_handler = on_hangup};
    sigaction(SIGHUP, &hangup, NULL);
    sigaction(SIGQUIT, &hangup, NULL);
    take_size(terminal, false);
    send_text(terminal, "\033[?2004h");
    terminal->mouse = whit_editor_wants_mouse(terminal->editor);
    if (terminal->mouse) send_text(terminal, "\033[?1002h\033[?1006h");
    return WHIT_OK;
}

static void end_screen(struct terminal *terminal)
{
    if (terminal->is_open) {
        if (terminal->mouse) send_text(terminal, "\033[?1006l\033[?1002l");
        send_text(terminal, "\033[?2004l");
    }
    whit_display_close(&terminal->display);
    if (terminal->watch >= 0) close(terminal->watch);
    if (terminal->display.in > STDIN_FILENO) close(terminal->display.in);
    whit_screen_free(&terminal->screen);
    whit_keys_free(&terminal->keys);
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Watches the current file with inotify, which avoids polling it. */
static void watch_file(struct terminal *terminal)
{
    const char *path = whit_editor_path(terminal->editor);
    if (terminal->watch < 0) return;
    if (terminal->watched >= 0) inotify_rm_watch(terminal->watch, terminal->watched);
    terminal->watched = path
        ? inotify_add_watch(terminal->watch, path, IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
        : -1;
    char drained[4096];
    while (read(terminal->watch, drained, sizeof drained) > 0) {
    }
}

static void take_key(struct terminal *terminal, whit_key key)
{
    const whit_buf *paste = &terminal->keys.paste;
    if (key.code != WHIT_KEY_PASTE || paste->failed)
        whit_editor_key(terminal->editor, key, NULL, 0);
    else
        whit_editor_key(terminal->editor, key, paste->size_bytes ? whit_chars(paste) : "", paste->size_bytes);
}

static void take_keys(struct terminal *terminal, bool final)
{
    whit_key key;
    while (!whit_editor_is_done(terminal->editor) && whit_keys_next(&terminal->keys, final, &key))
        take_key(terminal, key);
}

/* Milliseconds without a byte after which a paste's end mark counts as lost, so that keys typed later do not become
 * part of the paste. */
#define PASTE_MS 10000

/* Returns after how many milliseconds an unfinished paste must be inserted, or -1 if no paste is in progress. */
static int paste_wait_ms(const struct terminal *terminal)
{
    if (!terminal->keys.pasting) return -1;
    uint64_t waited_ms = (whit_now_ns() - terminal->heard_ns) / 1000000;
    return waited_ms >= PASTE_MS ? 0 : (int)(PASTE_MS - waited_ms);
}

static whit_status loop(struct terminal *terminal, const volatile bool *stop, whit_error *error)
{
    /* check: whit_editor_check_files() must be called, since another program may have changed the current file */
    bool idle_work = true, redraw = true, check = false;
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGWINCH);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    sigaddset(&blocked, SIGQUIT);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    while (!whit_editor_is_done(terminal->editor) && !(stop && *stop) && !hung_up) {
        if (resized) {
            resized = 0;
            take_size(terminal, true);
            redraw = true;
        }
        if (redraw) show_screen(terminal);
        redraw = false;
        bool waiting = whit_keys_is_waiting(&terminal->keys) && !terminal->keys.pasting;
        struct timespec soon = {0, waiting ? ESCAPE_MS * 1000000L : 0};
        struct pollfd fds[2 + WHIT_EDITOR_FDS] = {{terminal->display.in, POLLIN, 0}, {terminal->watch, POLLIN, 0}};
        size_t n_others = whit_editor_fds(terminal->editor, fds + 2, WHIT_EDITOR_FDS);
        int wait_ms = waiting || idle_work ? -1 : whit_editor_wait_ms(terminal->editor);
        int paste_ms = paste_wait_ms(terminal);
        if (paste_ms >= 0 && !waiting && !idle_work && (wait_ms < 0 || paste_ms < wait_ms)) wait_ms = paste_ms;
        if (wait_ms >= 0) soon = (struct timespec){wait_ms / 1000, wait_ms % 1000 * 1000000L};
        int n = ppoll(fds, 2 + n_others, waiting || idle_work || wait_ms >= 0 ? &soon : NULL, &before);
        if (n < 0 && errno != EINTR) return whit_fail_errno(error, "the terminal", "wait for keys");
        whit_key pasted;
        if (n == 0 && waiting) {
            take_keys(terminal, true);
            redraw = true;
        } else if (n == 0 && paste_wait_ms(terminal) == 0 && whit_keys_end_paste(&terminal->keys, &pasted)) {
            take_key(terminal, pasted);
            redraw = true;
        } else if (n == 0) {
            idle_work = whit_editor_idle(terminal->editor, &redraw);
            continue;
        }
        for (size_t i = 0; n > 0 && i < n_others; i++)
            if (fds[2 + i].revents) {
                redraw = whit_editor_ready(terminal->editor);
                whit_editor_flush(terminal->editor);
                idle_work = true;
                break;
            }
        if (n > 0 && !fds[0].revents && !fds[1].revents) continue;
        if (n > 0 && fds[1].revents) {
            watch_file(terminal);
            check = redraw = true;
        }
        if (n > 0 && fds[0].revents) {
            char bytes[65536];
            ssize_t got = read(terminal->display.in, bytes, sizeof bytes);
            if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) break; /* the terminal is gone */
            terminal->heard_ns = whit_now_ns();
            if (got > 0 && !whit_keys_feed(&terminal->keys, bytes, (size_t)got))
                return whit_fail_memory(error, "keys", (size_t)got);
            const char *path = whit_editor_path(terminal->editor);
            take_keys(terminal, false);
            if (path != whit_editor_path(terminal->editor)) {
                watch_file(terminal);
                check = true;
            }
            /* without inotify, check for changes by other programs after each key */
            if (terminal->watch < 0) check = true;
            redraw = true;
        }
        if (check) check = !whit_editor_check_files(terminal->editor);
        whit_editor_flush(terminal->editor);
        idle_work = true;
    }
    whit_editor_flush(terminal->editor);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return WHIT_OK;
}

static whit_status read_stdin(whit_editor *editor, whit_error *error)
{
    whit_buf text = {.limit_bytes = STDIN_BYTES};
    whit_status status = WHIT_OK;
    for (;;) {
        if (!whit_buf_reserve(&text, 65536)) {
            status = whit_fail_memory(error, "what comes on stdin", text.size_bytes);
            break;
        }
        ssize_t n = read(STDIN_FILENO, text.data + text.size_bytes, 65536);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) status = whit_fail_errno(error, "stdin", "read");
        if (n <= 0) break;
        text.size_bytes += (size_t)n;
    }
    if (status == WHIT_OK) status = whit_editor_add_text(editor, "stdin", text.data, text.size_bytes, error);
    whit_buf_free(&text);
    return status;
}

static whit_status open_all(whit_editor *editor, const whit_edit_options *options, whit_error *error)
{
    size_t n_open = 0;
    for (size_t i = 0; i < options->n_files; i++) {
        bool is_stdin = !strcmp(options->files[i], "-");
        whit_status status =
            is_stdin ? read_stdin(editor, error) : whit_editor_add_file(editor, options->files[i], error);
        if (status == WHIT_OK)
            n_open++;
        else if (options->n_files == 1)
            return status;
    }
    return n_open ? WHIT_OK : whit_editor_add_text(editor, "unnamed", NULL, 0, error);
}

whit_status whit_edit_run(const whit_edit_options *options, bool *stopped, whit_error *error)
{
    struct terminal terminal = {.display = {.in = -1, .out = -1}, .watch = -1, .watched = -1};
    char folder[PATH_MAX], config[PATH_MAX] = "";
    const char *configs = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    whit_error no_folder;
    bool has_folder = !options->no_journal && whit_journal_folder(folder, sizeof folder, &no_folder);
    if (options->config_path)
        snprintf(config, sizeof config, "%s", options->config_path);
    else if (configs && *configs)
        snprintf(config, sizeof config, "%s/whit/edit.conf", configs);
    else if (home)
        snprintf(config, sizeof config, "%s/.config/whit/edit.conf", home);
    whit_editor_options editor_options = {.journal_folder = has_folder ? folder : NULL,
                                          .config_path = *config ? config : NULL,
                                          .suggester = options->suggester,
                                          .read_only = options->read_only,
                                          .copy = copy_out,
                                          .user = &terminal,
                                          .panel = options->panel};
    *stopped = false;
    WHIT_TRY(whit_editor_open(&editor_options, &terminal.editor, error));
    whit_status status = open_all(terminal.editor, options, error);
    if (status == WHIT_OK) status = begin_screen(&terminal, error);
    if (status == WHIT_OK) {
        whit_editor_arrange(terminal.editor, options->arrangement, terminal.screen.n_columns, terminal.screen.n_rows);
        if (options->line) whit_editor_line(terminal.editor, options->line);
        terminal.watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        watch_file(&terminal);
        status = loop(&terminal, options->stop, error);
        *stopped = hung_up || (options->stop && *options->stop);
    }
    end_screen(&terminal);
    whit_editor_close(terminal.editor);
    return status;
}
