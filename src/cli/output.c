/* SPDX-License-Identifier: MIT
 * Writes the program's output: text on stdout, whose errors are checked, and messages and a progress bar on stderr. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/items.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/utf8.h"
#include "cli/cli.h"

static bool bar_shown;

static bool is_screen(int fd)
{
    const char *terminal = getenv("TERM");
    return isatty(fd) && terminal && strcmp(terminal, "dumb") != 0;
}

unsigned cli_columns(int fd)
{
    struct winsize size;
    return is_screen(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool cli_has_colours(int fd)
{
    const char *plain = getenv("NO_COLOR");
    return is_screen(fd) && !(plain && *plain);
}

/* Returns the number of columns of the word at the beginning of a text. */
static unsigned columns_of_word(const char *text, size_t n)
{
    unsigned columns = 0;
    for (size_t i = 0, length; i < n && text[i] != ' '; i += length)
        columns += whit_plain_columns(whit_utf8_decode((const uint8_t *)text + i, n - i, &length));
    return columns;
}

/* Prints a line on stderr, of which `begun` columns are already printed. If the terminal is narrower, breaks the line
 * between words, and longer words within. Each further row is indented: a message may quote a model or a file, whose
 * words must not look like a message of their own. */
static void print_wrapped(const char *line, size_t n, unsigned begun)
{
    enum { NARROWEST = 20, INDENT = 2 };
    const unsigned width = cli_columns(STDERR_FILENO);
    unsigned column = begun;
    if (width < NARROWEST) {
        fprintf(stderr, "%.*s\n", (int)n, line);
        return;
    }
    int n_blanks = 0; /* before the next word */
    for (size_t i = 0, length; i < n; i += length) {
        const uint32_t code = whit_utf8_decode((const uint8_t *)line + i, n - i, &length);
        if (code == ' ') {
            n_blanks++;
            continue;
        }
        const bool begins_word = !i || line[i - 1] == ' ';
        const unsigned columns = (unsigned)n_blanks + whit_plain_columns(code);
        const unsigned word = begins_word ? (unsigned)n_blanks + columns_of_word(line + i, n - i) : columns;
        const unsigned wanted = word > width - INDENT ? columns : word; /* a longer word is broken */
        if (column + wanted > width && column > INDENT) {
            fprintf(stderr, "\n%*s", INDENT, "");
            column = INDENT;
            n_blanks = 0;
        }
        fprintf(stderr, "%*s%.*s", n_blanks, "", (int)length, line + i);
        column += (unsigned)n_blanks + whit_plain_columns(code);
        n_blanks = 0;
    }
    fputc('\n', stderr);
}

static void message(const char *verb, const char *format, va_list arguments)
{
    char line[4096];
    int n = vsnprintf(line, sizeof line, format, arguments);
    if (n < 0) n = 0;
    size_t length = whit_plain_line(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
    cli_progress_end();
    /* Output on stdout is flushed first, since both streams may be the same terminal. */
    fflush(stdout);
    int begun = fprintf(stderr, verb ? "whit %s: " : "whit: ", verb);
    print_wrapped(line, length, begun > 0 ? (unsigned)begun : 0);
}

int cli_fail(const cli_call *call, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message(call->verb ? call->verb->name : NULL, format, arguments);
    va_end(arguments);
    return status;
}

void cli_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message(NULL, format, arguments);
    va_end(arguments);
}

/* Returns the option to mention after an error message of the library, which does not know options; NULL if no option
 * fits. */
static const char *option_for(const char *message)
{
    static const struct {
        const char *phrase, *hint;
    } hints[] = {
        {"ask for a larger context", " (-c)"},
        {"choose a larger context", " (-c)"},
        {"choose a larger one", " (-c)"},
        {"choose a smaller context", " (-c)"},
        {"an override is ", " (--override-kv)"},
        {"override of ", " (--override-kv)"},
        {"overrides change ", " (--override-kv)"},
        {"needs an endpoint for the events", " (--kv-events)"},
        {"convert it for ", " ('whit convert FOLDER --for MODEL -o OUT.ndf')"},
        {"is an importance matrix", " (--imatrix)"},
        {"key that whit made", " ('whit sign --new-key KEY' makes one)"},
        {"no weights, only a vocabulary", " ('whit tokenize --tokenizer FILE')"},
        {"it was not made for chats; give one", " (--chat-template NAME)"},
    };
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strstr(message, hints[i].phrase)) return hints[i].hint;
    return "";
}

int cli_fail_error(const cli_call *call, const whit_error *error)
{
    int status = CLI_FAILED;
    switch (error->status) {
    case WHIT_OK: break;
    case WHIT_ERROR_ARGUMENT: status = CLI_USAGE; break;
    case WHIT_ERROR_FORMAT:
    case WHIT_ERROR_UNSUPPORTED: status = CLI_REFUSED; break;
    case WHIT_ERROR_MEMORY:
    case WHIT_ERROR_LIMIT: status = CLI_LIMIT; break;
    case WHIT_ERROR_IO: status = CLI_IO; break;
    case WHIT_ERROR_CANCELLED: status = CLI_INTERRUPTED; break;
    case WHIT_ERROR_NUMERIC: status = CLI_NUMERIC; break;
    }
    return cli_fail(call, status, "%s%s", error->message, option_for(error->message));
}

static bool output_failed(cli_call *call)
{
    if (!call->output_failed) {
        call->output_failed = true;
        if (errno != EPIPE) cli_fail(call, CLI_IO, "cannot write to stdout: %s", strerror(errno));
    }
    return false;
}

static bool on_terminal(void)
{
    static int known; /* 0: not determined yet, 1: no, 2: yes */
    if (!known) known = 1 + isatty(STDOUT_FILENO);
    return known == 2;
}

static whit_plain split; /* state with an incomplete character, which the next piece of output completes */

static bool put_text(cli_call *call, const char *text, size_t text_bytes)
{
    if (bar_shown && on_terminal()) cli_progress_end(); /* both streams may be the same terminal */
    /* If a terminal refuses bytes, fwrite may drop them without reporting it, so the stream's error flag is checked as
     * well. */
    return (fwrite(text, 1, text_bytes, stdout) == text_bytes && !ferror(stdout)) || output_failed(call);
}

bool cli_write(cli_call *call, const char *text, size_t text_bytes)
{
    enum { PIECE = 4096 };
    char plain[WHIT_PLAIN_ROOM(PIECE)];
    if (call->output_failed) return false;
    for (size_t i = 0; i < text_bytes; i += PIECE) {
        size_t n = whit_plain_text(&split, text + i, text_bytes - i < PIECE ? text_bytes - i : PIECE, plain);
        if (!put_text(call, plain, n)) return false;
    }
    return true;
}

bool cli_write_shown(cli_call *call, const char *text, size_t text_bytes)
{
    static const char order[] = WHIT_PLAIN_ORDER;
    const size_t n_order = sizeof order - 1;
    for (const char *mark; text_bytes && (mark = memmem(text, text_bytes, order, n_order));) {
        const size_t n_before = (size_t)(mark - text);
        cli_write(call, text, n_before);
        cli_control(call, order);
        text += n_before + n_order;
        text_bytes -= n_before + n_order;
    }
    return text_bytes ? cli_write(call, text, text_bytes) : !call->output_failed;
}

bool cli_write_data(cli_call *call, const char *text, size_t text_bytes)
{
    if (on_terminal()) return cli_write(call, text, text_bytes);
    return !call->output_failed && put_text(call, text, text_bytes);
}

/* Writes a piece of JSON text. Control characters from U+007F on and hidden characters become escapes, which is correct
 * because they can only occur in JSON strings. */
bool cli_write_json(cli_call *call, const char *text, size_t text_bytes)
{
    size_t done = 0, length;
    if (call->output_failed) return false;
    for (size_t i = 0; i < text_bytes; i += length) {
        length = 1;
        if ((uint8_t)text[i] < 0x7f) continue;
        uint32_t code = whit_utf8_decode((const uint8_t *)text + i, text_bytes - i, &length);
        if (code == WHIT_UTF8_INVALID || (code > 0x9f && !whit_plain_is_hidden(code))) continue;
        char escape[16];
        int n = code > 0xffff ? snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xd7c0 + (unsigned)(code >> 10),
                                         0xdc00 + (unsigned)(code & 0x3ff))
                              : snprintf(escape, sizeof escape, "\\u%04x", (unsigned)code);
        if (!put_text(call, text + done, i - done) || !put_text(call, escape, (size_t)n)) return false;
        done = i + length;
    }
    return put_text(call, text + done, text_bytes - done);
}

bool cli_print(cli_call *call, const char *format, ...)
{
    char *text;
    va_list arguments;
    if (call->output_failed) return false;
    va_start(arguments, format);
    int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (n < 0) return output_failed(call);
    bool ok = cli_write(call, text, (size_t)n);
    free(text);
    return ok;
}

/* Writes a character that the last piece of output has left incomplete. */
static bool end_text(cli_call *call)
{
    char plain[4];
    size_t n = whit_plain_end(&split, plain);
    return !n || put_text(call, plain, n);
}

bool cli_control(cli_call *call, const char *sequence)
{
    if (call->output_failed) return false;
    return !on_terminal() || (end_text(call) && put_text(call, sequence, strlen(sequence)));
}

bool cli_flush(cli_call *call)
{
    if (call->output_failed) return false;
    return (fflush(stdout) == 0 && !ferror(stdout)) || output_failed(call);
}

static int dump_to_stdout(const char *text, size_t text_bytes, void *call)
{
    return cli_write_json(call, text, text_bytes) ? 0 : -1;
}

bool cli_print_json(cli_call *call, json_t *value)
{
    bool ok = value &&
        json_dump_callback(value, dump_to_stdout, call, JSON_INDENT(2) | JSON_REAL_PRECISION(12) | JSON_ENCODE_ANY) ==
            0 &&
        cli_write(call, "\n", 1);
    if (!ok && !call->output_failed) {
        call->output_failed = true; /* cli_finish turns this into the exit status, since few callers check results */
        cli_fail(call, CLI_IO,
                 "the JSON cannot be written: a text is not UTF-8, a number is not finite, or memory ran out");
    }
    json_decref(value);
    return ok;
}

json_t *cli_json_path(const char *path)
{
    whit_buf quoted = {0};
    json_t *value = NULL;
    if (whit_json_write_string(&quoted, path, strlen(path)))
        value = json_loadb(whit_chars(&quoted), quoted.size_bytes, JSON_DECODE_ANY, NULL);
    whit_buf_free(&quoted);
    return value;
}

int cli_finish(cli_call *call, int status)
{
    cli_progress_end();
    end_text(call);
    cli_flush(call);
    /* Some file systems report a lost write only when the file is closed. */
    if (!call->output_failed && fclose(stdout) != 0) output_failed(call);
    return call->output_failed && status == CLI_OK ? CLI_IO : status;
}

/* Writes an estimate of the remaining time, such as ", 3 min left", from the progress so far; "" if it cannot be
 * estimated. */
static void say_left(const char *what, double share, uint64_t now_ns, char *to, size_t to_bytes)
{
    enum { SOON_NS = 500000000 };
    static char of[64];
    static uint64_t from_ns;
    static double from, last;
    to[0] = 0;
    if (strncmp(of, what, sizeof of - 1) != 0 || share < last || !from_ns) {
        snprintf(of, sizeof of, "%s", what);
        from_ns = now_ns;
        from = share;
    }
    last = share;
    if (now_ns - from_ns < SOON_NS || !(share > from)) return;
    double left = (double)(now_ns - from_ns) / 1e9 * (1 - share) / (share - from);
    if (left < 90)
        snprintf(to, to_bytes, ", %.0f s left", left);
    else if (left < 5400)
        snprintf(to, to_bytes, ", %.0f min left", left / 60);
    else
        snprintf(to, to_bytes, ", %.1f h left", left / 3600);
}

bool cli_progress(void *user, const char *what, double share)
{
    (void)user;
    enum { CELLS = 30, REFRESH_NS = 100000000 };
    static uint64_t shown_ns;
    uint64_t now_ns = whit_now_ns();
    char left[32];
    say_left(what, share, now_ns, left, sizeof left);
    if (!*cli_cancelled() && isatty(STDERR_FILENO) && (!bar_shown || now_ns - shown_ns >= REFRESH_NS)) {
        shown_ns = now_ns;
        bar_shown = true;
        double done = share < 0 ? 0 : share;
        int full = (int)((done > 1 ? 1 : done) * CELLS);
        char line[256];
        snprintf(line, sizeof line, "%s", what);
        size_t n = whit_plain_line(line, strlen(line));
        fprintf(stderr, "\r%.*s [%.*s%*s] %3d %%%s\x1b[K", (int)n, line, full, "##############################",
                CELLS - full, "", (int)(share * 100), left);
    }
    return !*cli_cancelled();
}

void cli_progress_end(void)
{
    if (bar_shown) fputs("\r\x1b[K", stderr);
    bar_shown = false;
}
