/* SPDX-License-Identifier: MIT */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/items.h"
#include "base/typed.h"
#include "base/utf8.h"
#include "cli/flags.h"
#include "cli/lines.h"
#include "whit_config.h"

#if WHIT_HAVE_EDIT
#include <histedit.h>
#endif

enum { HISTORY_LINES = 1000, HISTORY_BYTES = 4 << 20 };
enum { LOCK_MS = 2000, LOCK_PAUSE_MS = 10, OPENINGS_MAX = 100 };

struct cli_input {
    cli_reader reader; /* reads lines if there is no line editor */
    bool terminal, is_typed, is_early;
    char *history_path; /* NULL: no history file is used */
    const char *prompt;
    const char *const *words; /* words that Tab completes; NULL: none */
#if WHIT_HAVE_EDIT
    EditLine *editor; /* if this or `history` is NULL, no line editor is used */
    struct termios before;
    bool has_before;
    History *history;
#endif
};

bool cli_input_is_typed(const cli_input *input)
{
    return input->is_typed;
}

bool cli_input_is_early(const cli_input *input)
{
    return input->is_early;
}

bool cli_input_is_terminal(const cli_input *input)
{
    return input->terminal;
}

#if WHIT_HAVE_EDIT

/* ---- the history file ----------------------------------------------------------------------- */

/* Returns the path $XDG_STATE_HOME/whit/chat_history and creates its folders; NULL if that is impossible. */
static char *find_history(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool given = state && state[0] == '/';
    char *path = NULL;
    if (!given && (!home || home[0] != '/')) return NULL;
    const char *below = given ? "" : "/.local/state";
    if (asprintf(&path, "%s%s/whit/chat_history", given ? state : home, below) < 0) return NULL;
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!ok) {
            free(path);
            return NULL;
        }
    }
    return path;
}

static void enter(cli_input *input, const char *line)
{
    HistEvent event;
    if (line[strspn(line, " \t\n")]) history(input->history, &event, H_ENTER, line);
}

/* Waits up to LOCK_MS for the lock of an open file. Returns false if another process keeps it that long, such as one
 * that was stopped; a file system without locks counts as locked. */
static bool lock_file(int fd)
{
    static const struct timespec pause = {0, LOCK_PAUSE_MS * 1000000l};
    for (int waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; waited_ms += LOCK_PAUSE_MS) {
        if (errno != EWOULDBLOCK && errno != EINTR) return true;
        if (waited_ms >= LOCK_MS) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Opens the history file for appending, and locks it until it is closed. Returns -1 if that fails. A chat that shortens
 * the file replaces it, so the lock only counts if the path still names the locked file. */
static int open_history(const char *path)
{
    for (int i = 0; i < OPENINGS_MAX; i++) {
        struct stat opened, named;
        const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) return -1;
        const bool is_locked = lock_file(fd);
        if (is_locked && fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
            opened.st_ino == named.st_ino)
            return fd;
        close(fd);
        if (!is_locked) return -1;
    }
    return -1;
}

/* Loads the last HISTORY_LINES lines of the file. If the file has become long, shortens it to these lines; the lock
 * keeps other chats from appending meanwhile. */
static void load_history(cli_input *input)
{
    whit_buf text = {0};
    const int locked = open_history(input->history_path);
    if (whit_read_file(input->history_path, HISTORY_BYTES, &text, NULL) != WHIT_OK || !whit_buf_append(&text, "", 1)) {
        whit_buf_free(&text);
        if (locked >= 0) close(locked);
        return;
    }
    char *begin = WHIT_ITEMS(char, &text), *at = begin + text.size_bytes - 1;
    size_t n_lines = 0;
    while (at > begin && n_lines < HISTORY_LINES) {
        do at--;
        while (at > begin && at[-1] != '\n');
        n_lines++;
    }
    if (at - begin > HISTORY_BYTES / 8 && locked >= 0) whit_write_file(input->history_path, at, strlen(at), NULL);
    if (locked >= 0) close(locked);
    for (char *line = at; *line;) {
        char *feed = strchr(line, '\n');
        if (feed) *feed = 0;
        enter(input, line);
        if (!feed) break;
        line = feed + 1;
    }
    whit_buf_free(&text);
}

/* Appends a line to the history file. Failures are ignored. */
static void append_history(const cli_input *input, const char *line, size_t n_bytes)
{
    if (!input->history_path) return;
    const int fd = open_history(input->history_path);
    if (fd < 0) return;
    whit_buf text = {0};
    if (whit_buf_append(&text, line, n_bytes) && whit_buf_append_str(&text, "\n")) {
        /* One call writes the whole line, so that lines of two chats are not mixed. */
        ssize_t ignored = write(fd, text.data, text.size_bytes);
        (void)ignored;
    }
    whit_buf_free(&text);
    close(fd);
}

/* ---- the line editor ------------------------------------------------------------------------ */

static char *get_prompt(EditLine *editor)
{
    cli_input *input;
    el_get(editor, EL_CLIENTDATA, &input);
    return (char *)(uintptr_t)input->prompt;
}

/* Control sequences of bracketed paste, as in xterm, which mark pasted text. So a pasted text with line feeds is one
 * message, and not one message per line. */
#define PASTE_ON    "\x1b[?2004h"
#define PASTE_OFF   "\x1b[?2004l"
#define PASTE_BEGIN "\x1b[200~"
#define PASTE_END   "\x1b[201~"
enum { PASTE_BYTES_MAX = 16 << 20 };

static void say_to_terminal(const char *sequence)
{
    fputs(sequence, stdout);
    fflush(stdout);
}

/* Reads a byte of stdin. Returns 1; 0 at the end; -1 after Ctrl-C or a failure. */
static int get_byte(EditLine *editor, uint8_t *byte)
{
    for (;;) {
        ssize_t n = cli_read_some(STDIN_FILENO, (char *)byte, 1);
        if (n >= 0) return (int)n;
        if (errno != EINTR || *cli_cancelled()) return -1;
        if (cli_was_continued()) {
            say_to_terminal(PASTE_ON);
            el_set(editor, EL_PREP_TERM, 0); /* restores the terminal's modes; libedit would assume them unchanged */
            el_set(editor, EL_PREP_TERM, 1);
            el_set(editor, EL_REFRESH);
        }
    }
}

/* Reads a character for libedit. Its own function would retry after a signal, this one returns after Ctrl-C. */
static int get_character(EditLine *editor, wchar_t *character)
{
    uint8_t bytes[4];
    size_t n = 0, length = 0;
    uint32_t code;
    do {
        int got = get_byte(editor, &bytes[n]);
        if (got <= 0) return n ? 0 : got;
        code = whit_utf8_decode(bytes, ++n, &length);
    } while (code == WHIT_UTF8_INVALID && length == n && n < 4 && bytes[0] >= 0xC2);
    *character = (wchar_t)(code == WHIT_UTF8_INVALID ? 0xFFFD : code);
    return 1;
}

/* Reads a pasted text up to the closing sequence; text beyond PASTE_BYTES_MAX is dropped. Returns false if the input
 * ends before, or memory runs out. */
static bool read_paste(EditLine *editor, whit_buf *text)
{
    const size_t n_end = sizeof PASTE_END - 1;
    size_t n_matched = 0;
    uint8_t byte;
    while (n_matched < n_end && get_byte(editor, &byte) > 0) {
        n_matched = byte == (uint8_t)PASTE_END[n_matched] ? n_matched + 1 : byte == 0x1B;
        if (byte == '\r') byte = '\n'; /* terminals send a line feed as \r */
        if (byte == '\t') byte = ' ';  /* libedit would show a tab as ^I */
        if (text->size_bytes < PASTE_BYTES_MAX && !whit_buf_append(text, &byte, 1)) return false;
    }
    if (n_matched == n_end && text->size_bytes < PASTE_BYTES_MAX) text->size_bytes -= n_end;
    return n_matched == n_end;
}

/* Called at the opening sequence of a paste: inserts the pasted text. Line feeds at its end are dropped, so that the
 * user sends the message with Enter. */
static unsigned char take_paste(EditLine *editor, int key)
{
    (void)key;
    whit_buf text = {0};
    bool ok = read_paste(editor, &text);
    size_t n = 0;
    for (size_t i = 0; ok && i < text.size_bytes; i++) /* removes all other control characters */
        if (text.data[i] >= ' ' || text.data[i] == '\n') text.data[n++] = text.data[i];
    while (n && text.data[n - 1] == '\n') n--;
    text.size_bytes = n;
    ok = ok && whit_buf_append(&text, "", 1) && (!n || el_insertstr(editor, whit_chars(&text)) == 0);
    whit_buf_free(&text);
    return ok ? CC_REFRESH : CC_ERROR;
}

/* Called for Tab at the end of a line: completes the line's first word as far as all matching words agree, and puts a
 * blank after a word that is complete. If several words match and agree in no further letter, lists them. */
static unsigned char complete_word(EditLine *editor, int key)
{
    (void)key;
    cli_input *input;
    char typed[64], common[64] = "";
    const LineInfo *line = el_line(editor);
    size_t n = (size_t)(line->cursor - line->buffer), n_found = 0;
    el_get(editor, EL_CLIENTDATA, &input);
    if (!input->words || !n || n >= sizeof typed || line->lastchar != line->cursor) return CC_ERROR;
    memcpy(typed, line->buffer, n);
    typed[n] = 0;
    for (const char *const *word = input->words; *word; word++) {
        if (strncmp(*word, typed, n) != 0 || strlen(*word) >= sizeof common) continue;
        size_t same = 0;
        while (n_found && common[same] && common[same] == (*word)[same]) same++;
        if (n_found++)
            common[same] = 0;
        else
            snprintf(common, sizeof common, "%s", *word);
    }
    if (!n_found) return CC_ERROR;
    if (strlen(common) > n) return el_insertstr(editor, common + n) == 0 ? CC_REFRESH : CC_ERROR;
    if (n_found == 1) return el_insertstr(editor, " ") == 0 ? CC_REFRESH : CC_ERROR;
    say_to_terminal("\n");
    for (const char *const *word = input->words; *word; word++)
        if (strncmp(*word, typed, n) == 0) printf("%s  ", *word);
    say_to_terminal("\n");
    return CC_REDISPLAY;
}

/* Sets a UTF-8 locale, because the line editor can only represent characters of the locale. Returns false if the system
 * has no such locale. */
static bool use_utf8(void)
{
    if (setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8")) return true;
    return setlocale(LC_CTYPE, "C.UTF-8") != NULL;
}

static void open_editor(cli_input *input, bool keep_history)
{
    HistEvent event;
    const char *terminal = getenv("TERM");
    if (!terminal || !strcmp(terminal, "dumb") || !use_utf8()) return;
    input->has_before = tcgetattr(STDIN_FILENO, &input->before) == 0;
    input->editor = el_init("whit", stdin, stdout, stderr);
    input->history = input->editor ? history_init() : NULL;
    if (!input->history) return;
    history(input->history, &event, H_SETSIZE, HISTORY_LINES);
    history(input->history, &event, H_SETUNIQUE, 1);
    el_set(input->editor, EL_CLIENTDATA, input);
    el_set(input->editor, EL_PROMPT, get_prompt);
    el_set(input->editor, EL_EDITOR, "emacs");
    el_set(input->editor, EL_HIST, history, input->history);
    el_set(input->editor, EL_GETCFN, get_character);
    el_set(input->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
    /* el_wset is used because el_set would leak its copies of both strings. */
    el_wset(input->editor, EL_ADDFN, L"whit-paste", L"Insert what is pasted", take_paste);
    el_set(input->editor, EL_BIND, PASTE_BEGIN, "whit-paste", NULL);
    el_wset(input->editor, EL_ADDFN, L"whit-complete", L"Complete a command", complete_word);
    el_set(input->editor, EL_BIND, "^I", "whit-complete", NULL);
    el_source(input->editor, NULL);
    cli_was_continued();
    if (keep_history) input->history_path = find_history();
    if (input->history_path) load_history(input);
}

static cli_line edit_line(cli_input *input, const char **line, size_t *n_bytes)
{
    int n = 0;
    el_resize(input->editor);
    cli_signals_restore(input->has_before ? &input->before : NULL);
    input->is_typed = !input->is_early;
    say_to_terminal(PASTE_ON);
    *line = el_gets(input->editor, &n);
    say_to_terminal(PASTE_OFF);
    cli_signals_restore(NULL);
    if (*cli_cancelled()) return CLI_LINE_INTERRUPTED;
    if (!*line || n <= 0) return n < 0 ? CLI_LINE_FAILED : CLI_LINE_END;
    *n_bytes = (size_t)n;
    enter(input, *line);
    if ((*line)[*n_bytes - 1] == '\n') --*n_bytes;
    /* The history file has one line per message, so a pasted text with line feeds is only kept in memory. */
    if (*n_bytes && !memchr(*line, '\n', *n_bytes)) append_history(input, *line, *n_bytes);
    return CLI_LINE_READ;
}

static void close_editor(cli_input *input)
{
    if (input->editor) el_end(input->editor);
    if (input->history) history_end(input->history);
}

#endif

/* ---- lines ---------------------------------------------------------------------------------- */

cli_input *cli_input_open(bool keep_history)
{
    cli_input *input = calloc(1, sizeof *input);
    if (!input) return NULL;
    input->terminal = isatty(STDIN_FILENO);
#if WHIT_HAVE_EDIT
    if (input->terminal && isatty(STDOUT_FILENO)) open_editor(input, keep_history);
#else
    (void)keep_history;
#endif
    return input;
}

void cli_input_words(cli_input *input, const char *const *words)
{
    input->words = words;
}

void cli_input_close(cli_input *input)
{
    if (!input) return;
#if WHIT_HAVE_EDIT
    close_editor(input);
#endif
    cli_reader_free(&input->reader);
    free(input->history_path);
    free(input);
}

cli_line cli_input_next(cli_input *input, const char *prompt, const char **line, size_t *n_bytes)
{
    input->prompt = prompt;
    input->is_early = input->terminal && whit_typed_waits(STDIN_FILENO);
#if WHIT_HAVE_EDIT
    if (input->history) return edit_line(input, line, n_bytes);
#endif
    if (input->terminal) { /* the prompt is shown even if stdout, for the answers, is a file */
        FILE *screen = isatty(STDOUT_FILENO) ? stdout : stderr;
        fputs(prompt, screen);
        fflush(screen);
    }
    int more = cli_reader_next(&input->reader, line, n_bytes);
    if (more > 0) return CLI_LINE_READ;
    if (more == 0) return CLI_LINE_END;
    return *cli_cancelled() ? CLI_LINE_INTERRUPTED : CLI_LINE_FAILED;
}
