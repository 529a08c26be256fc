/* SPDX-License-Identifier: MIT */
#include "base/phrase.h"
#include "editor/terminal.h"

#include "base/clock.h"
#include "base/items.h"
#include "editor/curses_names.h"
#include "editor/editor.h"
#include "editor/journal.h"
#include "whit_config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#if WHIT_HAVE_NCURSESW
#define NCURSES_WIDECHAR 1
#include <dlfcn.h>
#include <ncurses.h>
#include <wchar.h>

#define ESCAPE_MS   30 /* after this time a lone ESC is the Escape key */
#define STDIN_BYTES (1u << 30)

struct curses {
    void *library;
    WINDOW **screen; /* stdscr */
    int *n_colors;
#define MEMBER(name) __typeof__(&name) name;
    EDITOR_CURSES(MEMBER)
#undef MEMBER
};

struct terminal {
    struct curses curses;
    int in, out;
    FILE *in_file, *out_file;
    bool colored, shown, mouse, direct; /* direct: painted without the library */
    whit_screen screen, before;         /* before: the screen shown by a terminal that is painted directly */
    whit_keys keys;
    uint64_t heard_ns; /* time of the last keys */
    whit_editor *editor;
    int watch, watched; /* inotify: descriptor and watch of the current file */
};

static volatile sig_atomic_t resized, hung_up;

static void on_resize(int number)
{
    (void)number;
    resized = 1;
}

/* The terminal may be there still, and is given back as it was. */
static void on_hangup(int number)
{
    (void)number;
    hung_up = 1;
}

static bool load_curses(struct curses *curses)
{
    curses->library = dlopen("libncursesw.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!curses->library) return false;
    curses->screen = dlsym(curses->library, "stdscr");
    curses->n_colors = dlsym(curses->library, "COLORS");
    bool ok = curses->screen && curses->n_colors;
#define LOAD(name) ok = (*(void **)&curses->name = dlsym(curses->library, #name)) && ok;
    EDITOR_CURSES(LOAD)
#undef LOAD
    return ok;
}

static void send_bytes(const struct terminal *terminal, const char *text, size_t n)
{
    while (n) {
        ssize_t written = write(terminal->out, text, n);
        if (written < 0 && errno != EINTR) return;
        if (written > 0) {
            text += written;
            n -= (size_t)written;
        }
    }
}

static void send_text(const struct terminal *terminal, const char *text)
{
    send_bytes(terminal, text, strlen(text));
}

/* The terminal's clipboard, by OSC 52. */
static void copy_out(void *user, const char *text, size_t n)
{
    const struct terminal *terminal = user;
    size_t room = sodium_base64_encoded_len(n, sodium_base64_VARIANT_ORIGINAL);
    if (n > 256u << 10) return; /* terminals accept no more */
    char *encoded = malloc(room);
    if (!encoded) return;
    sodium_bin2base64(encoded, room, (const uint8_t *)text, n, sodium_base64_VARIANT_ORIGINAL);
    send_text(terminal, "\033]52;c;");
    send_text(terminal, encoded);
    send_text(terminal, "\a");
    free(encoded);
}

/* ---- colours ------------------------------------------------------------------------------- */

static void begin_colors(struct terminal *terminal)
{
    struct curses *curses = &terminal->curses;
    const whit_theme *theme = whit_editor_theme(terminal->editor);
    const char *depth = getenv("COLORTERM");
    if (getenv("NO_COLOR") || !theme->colored || curses->start_color() == ERR || *curses->n_colors < 8) return;
    terminal->direct = depth && (!strcmp(depth, "truecolor") || !strcmp(depth, "24bit"));
    if (terminal->direct) return;
    curses->use_default_colors();
    bool many = *curses->n_colors >= 256;
    for (short i = 0; i <= WHIT_N_STYLES; i++) {
        whit_look look = i < WHIT_N_STYLES ? theme->looks[i] : theme->match;
        int ink = many ? whit_color_256(look.ink) : whit_color_8(look.ink);
        int paper = many ? whit_color_256(look.paper) : whit_color_8(look.paper);
        curses->init_pair((short)(i + 1), (short)ink, (short)paper);
    }
    terminal->colored = true;
}

/* Bars and matches whose background the terminal does not have are shown in reverse video. */
static attr_t attributes_of(const struct terminal *terminal, const whit_cell *cell, short *pair)
{
    static const attr_t known[] = {A_BOLD, A_DIM, A_ITALIC, A_UNDERLINE, A_REVERSE};
    const whit_theme *theme = whit_editor_theme(terminal->editor);
    whit_look look = whit_theme_look(theme, cell);
    attr_t attributes = 0;
    for (int i = 0; i < 5; i++)
        if (look.attributes & 1 << i) attributes |= known[i];
    bool bar = cell->style == WHIT_STYLE_STATUS || cell->style == WHIT_STYLE_STATUS_OTHER ||
        cell->style == WHIT_STYLE_LIST_HERE || (cell->flags & WHIT_CELL_MATCH);
    bool paper = terminal->colored && (*terminal->curses.n_colors >= 256 || whit_color_8(look.paper) >= 0);
    if (bar && look.paper != WHIT_COLOR_NONE && !paper) attributes ^= A_REVERSE;
    *pair = 0;
    if (terminal->colored) *pair = (short)((cell->flags & WHIT_CELL_MATCH ? WHIT_N_STYLES : cell->style) + 1);
    return attributes;
}

/* ---- showing ------------------------------------------------------------------------------- */

/* Paints with 24-bit colours, which the library's description of the terminal does not have. */
static void show_direct(struct terminal *terminal)
{
    whit_buf out = {0};
    whit_screen *before = &terminal->before;
    const whit_screen *after = &terminal->screen;
    if (whit_theme_paint(whit_editor_theme(terminal->editor), before->cells ? before : NULL, after, &out))
        send_bytes(terminal, whit_chars(&out), out.size_bytes);
    whit_buf_free(&out);
    if (!whit_screen_resize(before, after->n_columns, after->n_rows)) {
        whit_screen_free(before); /* all of it is painted the next time */
        return;
    }
    memcpy(before->cells, after->cells, (size_t)(after->n_columns * after->n_rows) * sizeof *after->cells);
    before->cursor_x = after->cursor_x;
    before->cursor_y = after->cursor_y;
}

static void show_screen(struct terminal *terminal)
{
    struct curses *curses = &terminal->curses;
    WINDOW *window = *curses->screen;
    whit_editor_draw(terminal->editor, &terminal->screen);
    const whit_screen *screen = &terminal->screen;
    if (terminal->direct) {
        show_direct(terminal);
        return;
    }
    for (int y = 0; y < screen->n_rows; y++) {
        for (int x = 0; x < screen->n_columns; x++) {
            const whit_cell *cell = &screen->cells[y * screen->n_columns + x];
            if (!cell->codes[0]) continue; /* the right half of a wide character */
            bool wide = x + 1 < screen->n_columns && !cell[1].codes[0];
            wchar_t text[WHIT_CELL_CODES + 1] = {0};
            for (int i = 0; i < WHIT_CELL_CODES && cell->codes[i]; i++) text[i] = (wchar_t)cell->codes[i];
            /* wcwidth's tables may be older than ours: a character of another width there is replaced by U+FFFD. */
            if (wcwidth(text[0]) != (wide ? 2 : 1)) {
                text[0] = 0xFFFD;
                text[1] = 0;
                wide = false;
            }
            for (int i = 1; text[i]; i++)
                if (wcwidth(text[i]) != 0) text[i] = 0;
            short pair;
            cchar_t out;
            attr_t attributes = attributes_of(terminal, cell, &pair);
            curses->setcchar(&out, text, attributes, pair, NULL);
            curses->wmove(window, y, x);
            curses->wadd_wch(window, &out); /* ERR at the last cell, which is filled all the same */
            if (!wide && x + 1 < screen->n_columns && !cell[1].codes[0]) {
                wchar_t blank[2] = L" ";
                curses->setcchar(&out, blank, attributes, pair, NULL);
                curses->wadd_wch(window, &out);
            }
        }
    }
    bool visible = screen->cursor_x >= 0;
    if (visible) curses->wmove(window, screen->cursor_y, screen->cursor_x);
    if (visible != terminal->shown) curses->curs_set(visible);
    terminal->shown = visible;
    curses->wrefresh(window);
}

static void take_size(struct terminal *terminal, bool tell)
{
    struct winsize size;
    int n_columns = 80, n_rows = 24;
    if (ioctl(terminal->out, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        n_columns = size.ws_col;
        n_rows = size.ws_row;
    }
    if (tell) terminal->curses.resizeterm(n_rows, n_columns);
    if (!whit_screen_resize(&terminal->screen, n_columns, n_rows)) return;
    if (tell && terminal->direct) whit_screen_free(&terminal->before);
    if (tell) terminal->curses.wredrawln(*terminal->curses.screen, 0, n_rows);
}

static whit_status begin_screen(struct terminal *terminal, whit_error *error)
{
    const char *type = getenv("TERM");
    /* UTF-8 whatever the locale is: the editor's texts are. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX < 4) setlocale(LC_CTYPE, "C.UTF-8");
    terminal->in = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal->in < 0) {
        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "the editor wants a terminal, and there is none");
        terminal->in = STDIN_FILENO;
    }
    terminal->out = isatty(STDOUT_FILENO) ? STDOUT_FILENO : terminal->in;
    int out = dup(terminal->out), in = dup(terminal->in);
    terminal->out_file = out < 0 ? NULL : fdopen(out, "w");
    terminal->in_file = in < 0 ? NULL : fdopen(in, "r");
    if (!terminal->out_file || !terminal->in_file) return whit_fail_errno(error, "the terminal", "open");
    if (!load_curses(&terminal->curses))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "the editor wants ncursesw (libncursesw6): %s", dlerror());
    struct curses *curses = &terminal->curses;
    if (!type || !*type || !curses->newterm(NULL, terminal->out_file, terminal->in_file))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "the terminal '%s' is not known: set TERM, for example to xterm", whit_or_empty(type));
    curses->raw();
    curses->noecho();
    curses->nonl();
    curses->typeahead(-1); /* it would write in small pieces, to look for keys between them */
    curses->keypad(*curses->screen, TRUE);
    terminal->shown = true;
    begin_colors(terminal);
    struct sigaction action = {.sa_handler = on_resize};
    sigaction(SIGWINCH, &action, NULL);
    struct sigaction hangup = {.sa_handler = on_hangup};
    sigaction(SIGHUP, &hangup, NULL);
    sigaction(SIGQUIT, &hangup, NULL);
    take_size(terminal, false);
    if (terminal->direct) curses->wrefresh(*curses->screen); /* goes to the other screen */
    send_text(terminal, "\033[?2004h");
    terminal->mouse = whit_editor_wants_mouse(terminal->editor);
    if (terminal->mouse) send_text(terminal, "\033[?1002h\033[?1006h");
    return WHIT_OK;
}

static void end_screen(struct terminal *terminal)
{
    if (terminal->screen.cells) {
        if (terminal->mouse) send_text(terminal, "\033[?1006l\033[?1002l");
        send_text(terminal, terminal->direct ? "\033[0m\033[?25h\033[?2004l" : "\033[?2004l");
        terminal->curses.endwin();
    }
    if (terminal->watch >= 0) close(terminal->watch);
    if (terminal->out_file) fclose(terminal->out_file);
    if (terminal->in_file) fclose(terminal->in_file);
    if (terminal->in > STDIN_FILENO) close(terminal->in);
    whit_screen_free(&terminal->screen);
    whit_screen_free(&terminal->before);
    whit_keys_free(&terminal->keys);
    /* The library stays loaded: it keeps pointers of its own until the end. */
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Watches the current file with inotify, so that it need not be polled. */
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

/* After this long without a byte, the end of a paste was lost; keys typed later must not become part of it. */
#define PASTE_MS 10000

/* Milliseconds until an unfinished paste is taken as it is; -1 if there is no paste. */
static int paste_wait_ms(const struct terminal *terminal)
{
    if (!terminal->keys.pasting) return -1;
    uint64_t waited_ms = (whit_now_ns() - terminal->heard_ns) / 1000000;
    return waited_ms >= PASTE_MS ? 0 : (int)(PASTE_MS - waited_ms);
}

static whit_status loop(struct terminal *terminal, const volatile bool *stop, whit_error *error)
{
    bool idle_work = true, redraw = true, check = false; /* check: the current file may be another */
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
        struct pollfd fds[2 + WHIT_EDITOR_FDS] = {{terminal->in, POLLIN, 0}, {terminal->watch, POLLIN, 0}};
        size_t n_others = whit_editor_fds(terminal->editor, fds + 2, WHIT_EDITOR_FDS);
        int wait_ms = waiting || idle_work ? -1 : whit_editor_wait_ms(terminal->editor);
        int paste_ms = paste_wait_ms(terminal);
        if (paste_ms >= 0 && !waiting && !idle_work && (wait_ms < 0 || paste_ms < wait_ms)) wait_ms = paste_ms;
        if (wait_ms >= 0) soon = (struct timespec){wait_ms / 1000, wait_ms % 1000 * 1000000L};
        int n = ppoll(fds, 2 + n_others, waiting || idle_work || wait_ms >= 0 ? &soon : NULL, &before);
        if (n < 0 && errno != EINTR) return whit_fail_errno(error, "the terminal", "wait for");
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
            ssize_t got = read(terminal->in, bytes, sizeof bytes);
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
    struct terminal terminal = {.in = -1, .watch = -1, .watched = -1};
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

#else

whit_status whit_edit_run(const whit_edit_options *options, bool *stopped, whit_error *error)
{
    (void)options;
    *stopped = false;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "this whit was built without its editor: install libncurses-dev and build again");
}

#endif
