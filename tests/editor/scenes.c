/* SPDX-License-Identifier: MIT
 * Plays scripts of keys to `whit edit` in a pseudo-terminal and compares every cell of the screen.
 *
 *     editor_scenes WHIT FILE.scenes [--write | --svg SCENE OUT.svg]
 *
 * A file of scenes has lines of these kinds:
 *     scene NAME             begins one: an empty folder, a terminal of 60 by 12
 *     size COLUMNS ROWS      of the terminal
 *     file NAME              the following lines that begin with '|' are its content (\xNN, \t, \r)
 *     env NAME=VALUE         a variable that the editor is started with; $HOME in it is the scene's home
 *     finds-servers          the editor asks about installed language servers; otherwise the answer is always no
 *     needs WORD...          commands, or libgit2: if one is missing, the scene is skipped with a message
 *     open ARGUMENTS         starts the editor
 *     keys WORD...           C-s, Enter, "text": what is typed; click X Y, drag X Y, paste "text"
 *     resize COLUMNS ROWS
 *     shell COMMAND          in the scene's folder, while the editor runs; $SCENES is the script's folder
 *     kill                   with SIGKILL
 *     signal NUMBER          another signal
 *     pause MILLISECONDS     nothing is typed for this time, which begins when the editor has taken all that was typed
 *     until FILE             nothing is typed until there is a file of this name in the scene's folder
 *     screen                 the following lines must be shown; blanks at their ends are omitted
 *     style X Y WORD...      a cell's looks: bold, reverse, underline, colored, plain, ink=RRGGBB, paper=RRGGBB
 *     saved NAME             the following lines must be the file's content; the editor may still run
 *     ended STATUS           the editor must have ended
 * On a busy machine a state may take a while to appear, so it is checked again for up to a minute. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vterm.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "editor/keys.h"
#include "whit_config.h"

#define PATIENCE_NS   60000000000ull
#define QUIET_MS      400 /* with --write, the screen is recorded once nothing has arrived for this time */
#define LINES_MAX     8000
#define VARIABLES_MAX 4

static char *lines[LINES_MAX];
static size_t n_lines;
static const char *program;
static char folder[] = "/tmp/whit-scenes-XXXXXX";

static struct scene {
    char name[80], variables[VARIABLES_MAX][200];
    size_t n_variables;
    bool finds_servers;
    int n_columns, n_rows, pty, status;
    pid_t child;
    bool ended;
    VTerm *vt;
    VTermScreen *screen;
    size_t line; /* current line of the script, for messages */
} scene;
static bool failed;

static void complain(const char *what, const char *wanted, const char *got)
{
    fprintf(stderr, "FAILED: scene %s, line %zu: %s\n", scene.name, scene.line + 1, what);
    if (wanted) fprintf(stderr, "--- wanted\n%s--- got\n%s---\n", wanted, got);
    failed = true;
}

static void on_output(const char *bytes, size_t n, void *user)
{
    (void)user;
    if (scene.pty >= 0 && write(scene.pty, bytes, n) < 0) return;
}

/* Reads what the editor writes within timeout_ms, and feeds it to the terminal emulator. */
static bool pump(int timeout_ms)
{
    struct pollfd fd = {scene.pty, POLLIN, 0};
    char bytes[65536];
    if (scene.pty < 0 || poll(&fd, 1, timeout_ms) <= 0) return false;
    ssize_t n = read(scene.pty, bytes, sizeof bytes);
    if (n <= 0) {
        if (n < 0 && errno == EINTR) return true;
        close(scene.pty);
        scene.pty = -1;
        waitpid(scene.child, &scene.status, 0);
        scene.ended = true;
        return false;
    }
    vterm_input_write(scene.vt, bytes, (size_t)n);
    return true;
}

static void settle(void)
{
    while (pump(QUIET_MS)) {
    }
}

static void end_scene(void)
{
    if (scene.vt) vterm_free(scene.vt);
    if (scene.pty >= 0) close(scene.pty);
    if (scene.child > 0 && !scene.ended) {
        kill(scene.child, SIGKILL);
        waitpid(scene.child, NULL, 0);
    }
    scene.vt = NULL;
    scene.pty = -1;
    scene.child = 0;
    scene.ended = false;
}

static size_t n_started;

static void set_variable(const char *text)
{
    const char *home = strstr(text, "$HOME");
    if (scene.n_variables == VARIABLES_MAX) {
        fprintf(stderr, "%s: more than %d variables\n", scene.name, VARIABLES_MAX);
        exit(2);
    }
    char *to = scene.variables[scene.n_variables++];
    if (home)
        snprintf(to, sizeof scene.variables[0], "%.*s%s%s", (int)(home - text), text, getenv("HOME"), home + 5);
    else
        snprintf(to, sizeof scene.variables[0], "%s", text);
}

/* Stores an answer to the question about language servers on this machine, so that the editor does not ask. */
static void answer_servers(void)
{
    static const char *const folders[] = {".local", ".local/state", ".local/state/whit"};
    char path[5000];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", getenv("HOME"), folders[i]);
        mkdir(path, 0700);
    }
    snprintf(path, sizeof path, "%s/.local/state/whit/servers", getenv("HOME"));
    FILE *file = fopen(path, "w");
    if (file) fputs("no /\n", file);
    if (file) fclose(file);
}

static void start(char *arguments)
{
    char *argv[32] = {(char *)(uintptr_t)program, "edit"};
    int argc = 2;
    end_scene();
    if (!scene.finds_servers) answer_servers();
    for (char *word = strtok(arguments, " "); word && argc < 31; word = strtok(NULL, " ")) argv[argc++] = word;
    struct winsize size = {(unsigned short)scene.n_rows, (unsigned short)scene.n_columns, 0, 0};
    scene.vt = vterm_new(scene.n_rows, scene.n_columns);
    vterm_set_utf8(scene.vt, 1);
    vterm_output_set_callback(scene.vt, on_output, NULL);
    scene.screen = vterm_obtain_screen(scene.vt);
    vterm_screen_enable_altscreen(scene.screen, 1);
    vterm_screen_reset(scene.screen, 1);
    scene.child = forkpty(&scene.pty, NULL, NULL, &size);
    if (scene.child < 0) {
        if (n_started) {
            perror("FAILED: a pseudo-terminal");
            exit(1);
        }
        printf("[ SKIPPED ] this system gives no pseudo-terminals\n");
        exit(77);
    }
    n_started++;
    if (scene.child == 0) {
        setenv("TERM", "xterm-256color", 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
        unsetenv("XDG_STATE_HOME");
        unsetenv("XDG_CONFIG_HOME");
        unsetenv("XDG_CACHE_HOME");
        unsetenv("NO_COLOR");
        unsetenv("COLORFGBG");
        unsetenv("COLORTERM");
        setenv("WHIT_PORT", "1", 1); /* prevents the editor from finding a model server of this machine */
        setenv("OLLAMA_HOST", "127.0.0.1:1", 1);
        for (size_t i = 0; i < scene.n_variables; i++)
            if (putenv(scene.variables[i])) _exit(127);
        execv(program, argv);
        _exit(127);
    }
}

/* ---- the screen ---------------------------------------------------------------------------- */

static void cell_text(int x, int y, char *text)
{
    VTermScreenCell cell;
    VTermPos at = {y, x};
    size_t n = 0;
    if (!vterm_screen_get_cell(scene.screen, at, &cell)) {
        strcpy(text, "?");
        return;
    }
    if (cell.chars[0] == (uint32_t)-1) cell.chars[0] = 0; /* right half of a wide character */
    for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell.chars[i] && n < 40; i++)
        n += whit_utf8_encode(cell.chars[i], (uint8_t *)text + n);
    text[n] = 0;
}

/* Writes all rows without trailing blanks. */
static void take_screen(whit_buf *out)
{
    out->size_bytes = 0;
    for (int y = 0; y < scene.n_rows && scene.vt; y++) {
        whit_buf row = {0};
        for (int x = 0; x < scene.n_columns; x++) {
            char text[64];
            VTermScreenCell cell;
            cell_text(x, y, text);
            whit_buf_append_str(&row, *text ? text : " ");
            if (vterm_screen_get_cell(scene.screen, (VTermPos){y, x}, &cell) && cell.width == 2) x++;
        }
        while (row.size_bytes && row.data[row.size_bytes - 1] == ' ') row.size_bytes--;
        whit_buf_append(out, "|", 1);
        whit_buf_append(out, row.data, row.size_bytes);
        whit_buf_append(out, "\n", 1);
        whit_buf_free(&row);
    }
    whit_buf_append(out, "", 1);
}

static bool take_file(const char *name, whit_buf *out)
{
    FILE *file = fopen(name, "r");
    uint8_t bytes[16384];
    out->size_bytes = 0;
    size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0, length;
    if (file) fclose(file);
    for (size_t i = 0; i < n; i += length) {
        uint32_t code = whit_utf8_decode(bytes + i, n - i, &length);
        if (!i || bytes[i - 1] == '\n') whit_buf_append(out, "|", 1);
        if (code == '\n')
            whit_buf_append(out, "\n", 1);
        else if (code == WHIT_UTF8_INVALID || code < 32) {
            length = 1;
            whit_buf_printf(out, code == '\t' ? "\\t" : code == '\r' ? "\\r" : "\\x%02x", bytes[i]);
        } else
            whit_buf_append(out, bytes + i, length);
    }
    if (n && bytes[n - 1] != '\n') whit_buf_append_str(out, "\\\n"); /* marks a file without a final line feed */
    return whit_buf_append(out, "", 1);
}

/* Waits until the editor has painted. Until then the terminal is in cooked mode and would handle some keys itself. */
static void wait_paint(void)
{
    whit_buf seen = {0};
    for (uint64_t begin = whit_now_ns(); whit_now_ns() - begin < PATIENCE_NS && !scene.ended; pump(20)) {
        take_screen(&seen);
        if (strspn((char *)seen.data, "|\n") < seen.size_bytes - 1) break;
    }
    whit_buf_free(&seen);
}

static size_t wanted_lines(size_t line, whit_buf *wanted)
{
    wanted->size_bytes = 0;
    for (; line < n_lines && lines[line][0] == '|'; line++) {
        whit_buf_append_str(wanted, lines[line]);
        whit_buf_append(wanted, "\n", 1);
    }
    whit_buf_append(wanted, "", 1);
    return line;
}

static bool has_style(int x, int y, const char *words)
{
    VTermScreenCell cell;
    if (!scene.vt || !vterm_screen_get_cell(scene.screen, (VTermPos){y, x}, &cell)) return false;
    bool colored = !VTERM_COLOR_IS_DEFAULT_FG(&cell.fg);
    if (strstr(words, "bold") && !cell.attrs.bold) return false;
    if (strstr(words, "reverse") && !cell.attrs.reverse) return false;
    if (strstr(words, "underline") && !cell.attrs.underline) return false;
    if (strstr(words, "colored") && !colored) return false;
    VTermColor ink = cell.fg, paper = cell.bg;
    const char *wanted_ink = strstr(words, "ink="), *wanted_paper = strstr(words, "paper=");
    vterm_screen_convert_color_to_rgb(scene.screen, &ink);
    vterm_screen_convert_color_to_rgb(scene.screen, &paper);
    if (wanted_ink && strtol(wanted_ink + 4, NULL, 16) != (ink.rgb.red << 16 | ink.rgb.green << 8 | ink.rgb.blue))
        return false;
    if (wanted_paper &&
        strtol(wanted_paper + 6, NULL, 16) != (paper.rgb.red << 16 | paper.rgb.green << 8 | paper.rgb.blue))
        return false;
    if (strstr(words, "plain") && (colored || cell.attrs.bold || cell.attrs.reverse)) return false;
    return true;
}

/* ---- typing -------------------------------------------------------------------------------- */

static whit_buf typed; /* the keys of a line, which are typed together: no pause of this program comes between them */

static void send(const char *text, size_t n)
{
    whit_buf_append(&typed, text, n);
}

static void send_typed(void)
{
    for (size_t at = 0; at < typed.size_bytes && scene.pty >= 0; pump(0)) {
        const ssize_t written = write(scene.pty, typed.data + at, typed.size_bytes - at);
        if (written < 0 && errno != EINTR) break;
        if (written > 0) at += (size_t)written;
    }
    typed.size_bytes = 0;
}

static void send_key(const char *name, size_t n)
{
    whit_key key;
    char text[40];
    size_t n_text = 0;
    if (!whit_key_parse(name, n, &key)) {
        complain("no such key", name, "");
        return;
    }
    static const char *const plain[] = {[WHIT_KEY_ENTER - WHIT_KEY_NONE] = "\r",
                                        [WHIT_KEY_TAB - WHIT_KEY_NONE] = "\t",
                                        [WHIT_KEY_BACKSPACE - WHIT_KEY_NONE] = "\177",
                                        [WHIT_KEY_ESCAPE - WHIT_KEY_NONE] = "\033"};
    static const char letters[] = {[WHIT_KEY_UP - WHIT_KEY_NONE] = 'A',    [WHIT_KEY_DOWN - WHIT_KEY_NONE] = 'B',
                                   [WHIT_KEY_RIGHT - WHIT_KEY_NONE] = 'C', [WHIT_KEY_LEFT - WHIT_KEY_NONE] = 'D',
                                   [WHIT_KEY_HOME - WHIT_KEY_NONE] = 'H',  [WHIT_KEY_END - WHIT_KEY_NONE] = 'F'};
    static const int numbers[] = {15, 17, 18, 19, 20, 21, 23, 24};
    uint32_t special = key.code >= WHIT_KEY_NONE ? key.code - WHIT_KEY_NONE : 0;
    int mods = key.mods + 1;
    if (key.code == WHIT_KEY_TAB && key.mods == WHIT_MOD_SHIFT) {
        strcpy(text, "\033[Z");
    } else if (special && special < sizeof plain / sizeof *plain && plain[special]) {
        sprintf(text, "%s%s", key.mods & WHIT_MOD_ALT ? "\033" : "", plain[special]);
    } else if (special && special < sizeof letters && letters[special]) {
        sprintf(text, mods > 1 ? "\033[1;%2$d%1$c" : "\033[%c", letters[special], mods);
    } else if (special) {
        int number = key.code == WHIT_KEY_PAGE_UP ? 5
            : key.code == WHIT_KEY_PAGE_DOWN      ? 6
            : key.code == WHIT_KEY_DELETE         ? 3
                                                  : 2;
        if (key.code >= WHIT_KEY_F1 + 4)
            number = numbers[key.code - WHIT_KEY_F1 - 4];
        else if (key.code >= WHIT_KEY_F1)
            number = 11 + (int)(key.code - WHIT_KEY_F1);
        sprintf(text, mods > 1 ? "\033[%d;%d~" : "\033[%d~", number, mods);
    } else {
        size_t at = 0;
        if (key.mods & WHIT_MOD_ALT) text[at++] = 27;
        if (key.mods & WHIT_MOD_CTRL)
            text[at++] = (char)(key.code & 31);
        else
            at += whit_utf8_encode(key.code, (uint8_t *)text + at);
        n_text = at; /* C-Space sends a zero byte */
        text[at] = 0;
    }
    send(text, n_text ? n_text : strlen(text));
}

static size_t unescape(const char *from, size_t n, char *to)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (from[i] != '\\' || i + 1 == n) {
            to[k++] = from[i];
            continue;
        }
        char kind = from[++i];
        if (kind == 'x' && i + 2 < n) {
            char digits[3] = {from[i + 1], from[i + 2], 0};
            to[k++] = (char)strtol(digits, NULL, 16);
            i += 2;
        } else
            to[k++] = kind == 't' ? '\t' : kind == 'r' ? '\r' : kind == 'n' ? '\n' : kind;
    }
    return k;
}

/* Plays a line of keys. seen: the screen is compared after this line. */
static void play(const char *at, bool seen)
{
    char text[4096], word[32];
    bool paste = false;
    while (*(at += strspn(at, " "))) {
        if (*at == '"') {
            const char *end = strchr(at + 1, '"');
            while (end && end[-1] == '\\') end = strchr(end + 1, '"');
            if (!end) {
                complain("a text does not end", NULL, NULL);
                return;
            }
            size_t n = unescape(at + 1, (size_t)(end - at - 1), text);
            if (paste) send("\033[200~", 6);
            send(text, n);
            if (paste) send("\033[201~", 6);
            paste = false;
            at = end + 1;
            continue;
        }
        size_t n = strcspn(at, " ");
        int x, y, used = 0, button = -1;
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (!strcmp(word, "paste"))
            paste = true;
        else if (!strcmp(word, "click"))
            button = 0;
        else if (!strcmp(word, "alt-click"))
            button = 8;
        else if (!strcmp(word, "drag"))
            button = 32;
        else if (!strcmp(word, "wheel-up"))
            button = 64;
        else if (!strcmp(word, "wheel-down"))
            button = 65;
        else if (!strcmp(word, "Esc") && !(seen && !at[n + strspn(at + n, " ")]))
            send("\033[27u", 5); /* a lone ESC byte could begin an escape sequence with the next key */
        else
            send_key(at, n);
        at += n;
        if (button >= 0 && sscanf(at, "%d %d%n", &x, &y, &used) == 2) {
            sprintf(text, "\033[<%d;%d;%dM", button, x + 1, y + 1);
            send(text, strlen(text));
            at += used;
        }
    }
}

/* ---- scenes -------------------------------------------------------------------------------- */

static void replace_lines(size_t from, size_t to, const char *text)
{
    size_t n = 0;
    for (const char *at = text; *at; at++) n += *at == '\n';
    memmove(lines + from + n, lines + to, (n_lines - to) * sizeof *lines);
    n_lines = n_lines - (to - from) + n;
    for (size_t i = 0; i < n; i++) {
        const char *feed = strchr(text, '\n');
        lines[from + i] = strndup(text, (size_t)(feed - text));
        text = feed + 1;
    }
}

static size_t expect(size_t line, const char *file, bool writing)
{
    whit_buf wanted = {0}, got = {0};
    size_t behind = wanted_lines(line + 1, &wanted);
    if (writing) {
        settle();
        if (file)
            take_file(file, &got);
        else
            take_screen(&got);
        replace_lines(line + 1, behind, (char *)got.data);
        behind = wanted_lines(line + 1, &wanted);
    } else {
        for (uint64_t begin = whit_now_ns();;) {
            pump(20);
            if (file)
                take_file(file, &got);
            else
                take_screen(&got);
            if (!strcmp((char *)got.data, (char *)wanted.data)) break;
            if (whit_now_ns() - begin < PATIENCE_NS && !(scene.ended && !file)) continue;
            complain(file ? file : "the screen", (char *)wanted.data, (char *)got.data);
            break;
        }
    }
    whit_buf_free(&wanted);
    whit_buf_free(&got);
    return behind;
}

static void write_file(const char *name, size_t from, size_t to)
{
    FILE *file = fopen(name, "w");
    char text[4096];
    if (!file) return;
    for (size_t i = from; i < to; i++) {
        size_t n = strlen(lines[i] + 1);
        bool open_end = n && lines[i][n] == '\\' && (n < 2 || lines[i][n - 1] != '\\') && i + 1 == to;
        n = unescape(lines[i] + 1, n - open_end, text);
        fwrite(text, 1, n, file);
        if (!open_end) putc('\n', file);
    }
    fclose(file);
}

static void run_shell(const char *command)
{
    if (system(command)) complain("the command failed", command, "");
}

static void wait_file(const char *name)
{
    for (uint64_t begin = whit_now_ns(); access(name, F_OK) != 0; pump(20))
        if (whit_now_ns() - begin > PATIENCE_NS) {
            complain("a file is not made", name, "");
            return;
        }
}

/* Returns whether the editor has read all that was typed and waits. It looks at the queue of the terminal's other end
 * and, where the system tells it, at the state of the editor's main thread. */
static bool is_waiting(void)
{
    char path[64], line[512] = "";
    int n_unread = 0, follower = open(ptsname(scene.pty), O_RDONLY | O_NOCTTY | O_NONBLOCK);
    const bool is_read = follower < 0 || ioctl(follower, FIONREAD, &n_unread) != 0 || !n_unread;
    if (follower >= 0) close(follower);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)scene.child);
    FILE *file = fopen(path, "r");
    const bool is_known = file && fgets(line, sizeof line, file);
    if (file) fclose(file);
    const char *state = is_known ? strrchr(line, ')') : NULL;
    return is_read && (!state || !strncmp(state, ") S", 3));
}

/* Waits until the editor has taken all that was typed and painted what it leads to, and then for the time. */
static void pause_keys(uint64_t ms)
{
    const uint64_t begin = whit_now_ns();
    while (scene.pty >= 0 && whit_now_ns() - begin < PATIENCE_NS && (pump(5) || (scene.pty >= 0 && !is_waiting()))) {
    }
    for (const uint64_t until = whit_now_ns() + ms * 1000000u; whit_now_ns() < until;) pump(20);
}

static void wait_end(int status)
{
    for (uint64_t begin = whit_now_ns(); !scene.ended && whit_now_ns() - begin < PATIENCE_NS;) pump(20);
    if (!scene.ended)
        complain("the editor has not ended", NULL, NULL);
    else if (!WIFEXITED(scene.status) || WEXITSTATUS(scene.status) != status)
        complain("the editor ended otherwise", NULL, NULL);
}

static void style(const char *line)
{
    int x, y, used = 0;
    if (sscanf(line, "%d %d%n", &x, &y, &used) != 2) return;
    for (uint64_t begin = whit_now_ns(); !has_style(x, y, line + used); pump(20))
        if (whit_now_ns() - begin > PATIENCE_NS) {
            complain("a cell looks otherwise", line, "");
            return;
        }
}

/* ---- pictures ------------------------------------------------------------------------------ */

static void write_svg(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) return;
    int width = scene.n_columns * 8 + 24, height = scene.n_rows * 18 + 24;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
            "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#1e1e24\"/>\n"
            "<g font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"13\">\n",
            width, height, width, height);
    for (int y = 0; y < scene.n_rows; y++)
        for (int x = 0; x < scene.n_columns;) {
            VTermScreenCell cell, next;
            vterm_screen_get_cell(scene.screen, (VTermPos){y, x}, &cell);
            VTermColor fg = cell.fg, bg = cell.bg;
            bool back = !VTERM_COLOR_IS_DEFAULT_BG(&bg), front = !VTERM_COLOR_IS_DEFAULT_FG(&fg);
            vterm_screen_convert_color_to_rgb(scene.screen, &fg);
            vterm_screen_convert_color_to_rgb(scene.screen, &bg);
            char ink[16] = "#dcdce0", paper[16] = "#1e1e24";
            if (front) sprintf(ink, "#%02x%02x%02x", fg.rgb.red, fg.rgb.green, fg.rgb.blue);
            if (back) sprintf(paper, "#%02x%02x%02x", bg.rgb.red, bg.rgb.green, bg.rgb.blue);
            if (cell.attrs.reverse) {
                char swap[16];
                memcpy(swap, ink, sizeof swap);
                memcpy(ink, paper, sizeof ink);
                memcpy(paper, swap, sizeof paper);
            }
            int to = x, n_before = 0, n_shown = 0;
            size_t n_bytes = 0; /* length of the text up to its last non-blank character */
            whit_buf text = {0};
            do { /* adjacent cells with the same look form one text element */
                char one[64];
                cell_text(to, y, one);
                bool blank = !*one || !strcmp(one, " ");
                /* blanks at the ends are dropped, since viewers treat them differently */
                if (blank && !text.size_bytes) {
                    n_before++;
                    to++;
                    if (to < scene.n_columns) vterm_screen_get_cell(scene.screen, (VTermPos){y, to}, &next);
                    continue;
                }
                const char *shown = blank ? "&#160;" : !strcmp(one, "<") ? "&lt;" : !strcmp(one, "&") ? "&amp;" : one;
                whit_buf_append_str(&text, shown);
                if (!blank) {
                    n_bytes = text.size_bytes;
                    n_shown = to + 1 - x - n_before;
                }
                to++;
                if (to < scene.n_columns) vterm_screen_get_cell(scene.screen, (VTermPos){y, to}, &next);
            } while (to < scene.n_columns && !memcmp(&next.fg, &cell.fg, sizeof cell.fg) &&
                     !memcmp(&next.bg, &cell.bg, sizeof cell.bg) && next.attrs.reverse == cell.attrs.reverse &&
                     next.attrs.bold == cell.attrs.bold);
            whit_buf_append(&text, "", 1);
            if (n_bytes) text.data[n_bytes] = 0;
            if (strcmp(paper, "#1e1e24"))
                fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"18\" fill=\"%s\"/>\n", 12 + x * 8,
                        12 + y * 18, (to - x) * 8, paper);
            if (n_bytes)
                fprintf(file, "<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"%s\"%s>%s</text>\n",
                        12 + (x + n_before) * 8, 25 + y * 18, n_shown * 8, ink,
                        cell.attrs.bold ? " font-weight=\"bold\"" : "", (char *)text.data);
            whit_buf_free(&text);
            x = to;
        }
    fprintf(file, "</g>\n</svg>\n");
    fclose(file);
}

/* Returns whether all programs named in `words` are installed. */
static bool has_needs(char *words)
{
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char command[200];
        bool here = !strcmp(word, "libgit2") && WHIT_HAVE_GIT2;
        snprintf(command, sizeof command, "command -v %.100s >/dev/null", word);
        if (here || (strcmp(word, "libgit2") && system(command) == 0)) continue;
        printf("left out: scene %s: no %s here\n", scene.name, word);
        return false;
    }
    return true;
}

static bool begins(const char *line, const char *word, char **rest)
{
    size_t n = strlen(word);
    if (strncmp(line, word, n) || (line[n] && line[n] != ' ')) return false;
    *rest = (char *)(uintptr_t)line + n + (line[n] == ' ');
    return true;
}

int main(int argc, char **argv)
{
    bool writing = argc == 4 && !strcmp(argv[3], "--write");
    const char *svg_scene = argc == 6 && !strcmp(argv[3], "--svg") ? argv[4] : NULL;
    char script[4096], text[8192], start_folder[4096], *rest;
    size_t n_scenes = 0;
    if (argc < 3 || !realpath(argv[2], script) || !mkdtemp(folder) || !getcwd(start_folder, sizeof start_folder))
        return 2;
    program = realpath(argv[1], NULL);
    FILE *file = fopen(script, "r");
    if (!file || !program) return 2;
    snprintf(text, sizeof text, "%.*s", (int)(strrchr(script, '/') - script), script);
    setenv("SCENES", text, 1);
    while (n_lines < LINES_MAX / 2 && fgets(text, sizeof text, file)) {
        text[strcspn(text, "\n")] = 0;
        lines[n_lines++] = strdup(text);
    }
    if (!feof(file) && fgets(text, sizeof text, file)) { /* scenes that are not read would count as played */
        fprintf(stderr, "%s: has more than %d lines, the limit\n", script, LINES_MAX / 2);
        return 2;
    }
    fclose(file);
    scene.pty = -1;
    bool chosen = !svg_scene;
    for (size_t i = 0; i < n_lines;) {
        scene.line = i;
        char *line = lines[i++];
        int a, b;
        if (begins(line, "scene", &rest)) {
            end_scene();
            if (svg_scene && chosen && n_scenes) break;
            chosen = !svg_scene || !strcmp(rest, svg_scene);
            snprintf(scene.name, sizeof scene.name, "%s", rest);
            scene.n_columns = 60;
            scene.n_rows = 12;
            scene.n_variables = 0;
            scene.finds_servers = false;
            char own[4400];
            snprintf(own, sizeof own, "%s/%zu", folder, i);
            if (mkdir(own, 0700) || chdir(own)) return 2;
            strcat(own, "-home");
            if (mkdir(own, 0700)) return 2;
            setenv("HOME", own, 1);
            if (chosen) n_scenes++;
        } else if (!chosen || !*line || *line == '#' || *line == '|') {
            continue;
        } else if (begins(line, "size", &rest) && sscanf(rest, "%d %d", &a, &b) == 2) {
            scene.n_columns = a;
            scene.n_rows = b;
        } else if (begins(line, "file", &rest)) {
            size_t from = i;
            while (i < n_lines && lines[i][0] == '|') i++;
            write_file(rest, from, i);
        } else if (begins(line, "needs", &rest)) {
            snprintf(text, sizeof text, "%s", rest);
            if (!has_needs(text)) chosen = false;
        } else if (begins(line, "env", &rest)) {
            set_variable(rest);
        } else if (begins(line, "finds-servers", &rest)) {
            scene.finds_servers = true;
        } else if (begins(line, "open", &rest)) {
            snprintf(text, sizeof text, "%s", rest);
            start(text);
            wait_paint();
        } else if (begins(line, "keys", &rest)) {
            play(rest, i < n_lines && !strcmp(lines[i], "screen"));
            send_typed();
        } else if (begins(line, "resize", &rest) && sscanf(rest, "%d %d", &a, &b) == 2) {
            scene.n_columns = a;
            scene.n_rows = b;
            struct winsize size = {(unsigned short)b, (unsigned short)a, 0, 0};
            vterm_set_size(scene.vt, b, a);
            ioctl(scene.pty, TIOCSWINSZ, &size);
        } else if (begins(line, "pause", &rest)) {
            pause_keys(strtoull(rest, NULL, 10));
        } else if (begins(line, "until", &rest)) {
            wait_file(rest);
        } else if (begins(line, "shell", &rest)) {
            run_shell(rest);
        } else if (begins(line, "kill", &rest)) {
            kill(scene.child, SIGKILL);
            end_scene();
        } else if (begins(line, "signal", &rest)) {
            kill(scene.child, (int)strtol(rest, NULL, 10));
        } else if (begins(line, "screen", &rest)) {
            i = expect(i - 1, NULL, writing);
        } else if (begins(line, "saved", &rest)) {
            i = expect(i - 1, rest, writing);
        } else if (begins(line, "style", &rest)) {
            style(rest);
        } else if (begins(line, "ended", &rest)) {
            wait_end(atoi(rest));
        } else {
            complain("what is this line?", line, "");
        }
    }
    if (svg_scene && scene.vt) {
        if (chdir(start_folder)) return 2;
        write_svg(argv[5]);
    }
    end_scene();
    if (writing && (file = fopen(script, "w"))) {
        for (size_t i = 0; i < n_lines; i++) fprintf(file, "%s\n", lines[i]);
        fclose(file);
    }
    if (chdir("/")) return 2;
    snprintf(text, sizeof text, "rm -rf %s", folder);
    run_shell(text);
    printf("%zu scenes\n", n_scenes);
    return failed ? 1 : 0;
}
