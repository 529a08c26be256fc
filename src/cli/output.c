/* SPDX-License-Identifier: MIT
 * What the program says: checked output on stdout, messages and a progress bar on stderr. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"

static bool bar_shown;

static void message(const char *verb, const char *format, va_list arguments)
{
    cli_progress_end();
    /* What was printed before comes before, also where both streams are one terminal. */
    fflush(stdout);
    fprintf(stderr, verb ? "whit %s: " : "whit: ", verb);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
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
    return cli_fail(call, status, "%s", error->message);
}

static bool output_failed(cli_call *call)
{
    if (!call->output_failed) {
        call->output_failed = true;
        if (errno != EPIPE) cli_fail(call, CLI_IO, "cannot write to stdout: %s", strerror(errno));
    }
    return false;
}

bool cli_write(cli_call *call, const char *text, size_t text_bytes)
{
    if (call->output_failed) return false;
    return fwrite(text, 1, text_bytes, stdout) == text_bytes || output_failed(call);
}

bool cli_print(cli_call *call, const char *format, ...)
{
    if (call->output_failed) return false;
    va_list arguments;
    va_start(arguments, format);
    int n = vprintf(format, arguments);
    va_end(arguments);
    return n >= 0 || output_failed(call);
}

bool cli_flush(cli_call *call)
{
    if (call->output_failed) return false;
    return fflush(stdout) == 0 || output_failed(call);
}

static int dump_to_stdout(const char *text, size_t text_bytes, void *call)
{
    return cli_write(call, text, text_bytes) ? 0 : -1;
}

bool cli_print_json(cli_call *call, json_t *value)
{
    if (!value) {
        cli_fail(call, CLI_LIMIT, "out of memory for the JSON output");
        return false;
    }
    bool ok = json_dump_callback(value, dump_to_stdout, call,
                                 JSON_INDENT(2) | JSON_REAL_PRECISION(12) | JSON_ENCODE_ANY) == 0 &&
        cli_write(call, "\n", 1);
    json_decref(value);
    return ok;
}

int cli_finish(cli_call *call, int status)
{
    cli_progress_end();
    cli_flush(call);
    /* Some file systems tell of a lost write only when closing. */
    if (!call->output_failed && fclose(stdout) != 0) output_failed(call);
    return call->output_failed && status == CLI_OK ? CLI_IO : status;
}

bool cli_progress(void *user, const char *what, double share)
{
    (void)user;
    enum { CELLS = 30, REFRESH_NS = 100000000 };
    static uint64_t shown_ns;
    uint64_t now_ns = whit_now_ns();
    if (!*cli_cancelled() && isatty(STDERR_FILENO) && (!bar_shown || now_ns - shown_ns >= REFRESH_NS)) {
        shown_ns = now_ns;
        bar_shown = true;
        int full = (int)((share < 0 ? 0 : share > 1 ? 1 : share) * CELLS);
        fprintf(stderr, "\r%s [%.*s%*s] %3d %%\x1b[K", what, full, "##############################", CELLS - full, "",
                (int)(share * 100));
    }
    return !*cli_cancelled();
}

void cli_progress_end(void)
{
    if (bar_shown) fputs("\r\x1b[K", stderr);
    bar_shown = false;
}
