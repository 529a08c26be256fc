/* SPDX-License-Identifier: MIT
 * Starts all child processes through cmd.exe, because only cmd.exe finds scripts (.cmd), and many language servers are
 * scripts. */
#include "job.h"

#include "base/piped.h"
#include "base/items.h"
#include "base/mem.h"

#include <fcntl.h>

enum { LINE_MAX_UNITS = 8000, VALUE_MAX_UNITS = 32768, PIPE_BYTES = 65536 };

/* Handles of a child's job and process, on the heap because whit_piped has one pointer for both. */
struct held {
    HANDLE job, process;
};

/* Creates a pipe to the child's stdin (is_input) or from its output. *theirs is the end that the child inherits; *ours
 * is a non-blocking descriptor of the other end. */
static bool make_pipe(bool is_input, HANDLE *theirs, int *ours)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    DWORD at_once = PIPE_NOWAIT;
    HANDLE reads, writes;
    if (!CreatePipe(&reads, &writes, &inherited, PIPE_BYTES)) return false;
    HANDLE own = is_input ? writes : reads;
    *theirs = is_input ? reads : writes;
    bool ok = SetHandleInformation(own, HANDLE_FLAG_INHERIT, 0) && SetNamedPipeHandleState(own, &at_once, NULL, NULL);
    *ours = ok ? _open_osfhandle((intptr_t)own, _O_BINARY | _O_NOINHERIT) : -1;
    if (*ours < 0) CloseHandle(own);
    return *ours >= 0;
}

static void close_handle(HANDLE handle)
{
    if (handle && handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
}

static bool is_named(const wchar_t *variable, const wchar_t *name, size_t n)
{
    return _wcsnicmp(variable, name, n) == 0 && variable[n] == L'=';
}

char *const *whit_own_variables(void)
{
    return environ;
}

/* Appends this process's environment variables, with the changes applied, to `block` as an environment block for
 * CreateProcess. */
static bool make_environment(const char *const *changes, whit_buf *block)
{
    wchar_t *own = GetEnvironmentStringsW(), *change = malloc(VALUE_MAX_UNITS * sizeof *change);
    bool ok = own && change;
    for (const wchar_t *v = own; ok && *v; v += wcslen(v) + 1) {
        bool is_changed = false;
        for (const char *const *c = changes; ok && *c && !is_changed; c++) {
            ok = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, *c, -1, change, VALUE_MAX_UNITS) > 0;
            is_changed = ok && is_named(v, change, wcscspn(change, L"="));
        }
        if (ok && !is_changed) ok = whit_buf_append(block, v, (wcslen(v) + 1) * sizeof *v);
    }
    for (const char *const *c = changes; ok && *c; c++) {
        if (!strchr(*c, '=')) continue;
        const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, *c, -1, change, VALUE_MAX_UNITS);
        ok = n > 0 && whit_buf_append(block, change, (size_t)n * sizeof *change);
    }
    if (own) FreeEnvironmentStringsW(own);
    free(change);
    return ok && whit_buf_append(block, L"\0", 2 * sizeof(wchar_t));
}

/* Returns a handle for the child's stderr: this process's stderr or the null device; INVALID_HANDLE_VALUE on
 * failure. */
static HANDLE open_errors(bool is_own)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    HANDLE own = INVALID_HANDLE_VALUE, self = GetCurrentProcess();
    if (is_own && DuplicateHandle(self, GetStdHandle(STD_ERROR_HANDLE), self, &own, 0, TRUE, DUPLICATE_SAME_ACCESS))
        return own;
    return CreateFileW(L"NUL", GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, NULL);
}

static whit_status start_line(whit_piped *child, const char *line, const whit_piped_how *how, bool has_errors,
                              whit_error *error)
{
    const char *folder = how->folder && *how->folder ? how->folder : ".";
    wchar_t below[WHIT_WIDE_MAX], *wide = malloc(LINE_MAX_UNITS * sizeof *wide);
    struct held *held = calloc(1, sizeof *held);
    HANDLE in = NULL, out = NULL, nothing = NULL;
    whit_buf whole = {0}, block = {0};
    *child = (whit_piped){.in = -1, .out = -1};
    whit_status status = WHIT_OK;
    /* With /s, cmd.exe removes only the outer quotes and keeps quotes inside the line. */
    if (!wide || !held || !whit_buf_printf(&whole, "cmd.exe /d /s /c \"%s\"", line) ||
        !whit_buf_append(&whole, "", 1) || (how->changes && !make_environment(how->changes, &block)))
        status = whit_fail_memory(error, "a command", whole.size_bytes);
    else if (!whit_wide_path(folder, below) ||
             MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, whit_chars(&whole), -1, wide, LINE_MAX_UNITS) <= 0)
        status = whit_fail(error, WHIT_ERROR_ARGUMENT, "%.200s: a command must be UTF-8 of at most %d characters", line,
                           LINE_MAX_UNITS - 30);
    bool ok = status == WHIT_OK && make_pipe(true, &in, &child->in) && make_pipe(false, &out, &child->out);
    if (ok && !has_errors) ok = (nothing = open_errors(how->at_terminal)) != INVALID_HANDLE_VALUE;
    ok = ok && whit_job_make(0, 0, &held->job) &&
        whit_job_start(held->job, wide, below, block.data, in, out, has_errors ? out : nothing, &held->process);
    if (status == WHIT_OK && !ok) {
        whit_wide_error();
        status = whit_fail_errno(error, line, "start");
    }
    close_handle(in);
    close_handle(out);
    close_handle(nothing);
    free(wide);
    whit_buf_free(&whole);
    whit_buf_free(&block);
    if (status == WHIT_OK) {
        child->process = (int64_t)GetProcessId(held->process);
        child->job = held;
        return WHIT_OK;
    }
    if (held) close_handle(held->process);
    if (held) close_handle(held->job);
    free(held);
    if (child->in >= 0) close(child->in);
    if (child->out >= 0) close(child->out);
    *child = (whit_piped){.in = -1, .out = -1};
    return status;
}

whit_status whit_piped_start_line(whit_piped *child, const char *line, const char *folder, whit_error *error)
{
    if (!strpbrk(line, "\r\n")) return start_line(child, line, &(whit_piped_how){.folder = folder}, true, error);
    *child = (whit_piped){.in = -1, .out = -1};
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "%.200s: a command must be one line", line);
}

bool whit_find_program(const char *name, char path[WHIT_PROGRAM_BYTES])
{
    (void)name;
    path[0] = 0;
    return false;
}

whit_status whit_piped_start(whit_piped *child, char *const *words, const whit_piped_how *how, whit_error *error)
{
    whit_buf line = {0};
    for (size_t i = 0; words[i]; i++) {
        const bool is_plain = !words[i][strcspn(words[i], " \t\"&|<>^%()")];
        if (i) whit_buf_append_str(&line, " ");
        whit_buf_printf(&line, is_plain ? "%s" : "\"%s\"", words[i]);
    }
    whit_status status = whit_buf_append(&line, "", 1) ? start_line(child, whit_chars(&line), how, false, error)
                                                       : whit_fail_memory(error, "a command", line.size_bytes);
    whit_buf_free(&line);
    return status;
}

size_t whit_piped_plain(char *text, size_t size_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < size_bytes; i++)
        if (text[i] != '\r' || i + 1 == size_bytes || text[i + 1] != '\n') text[n++] = text[i];
    return n;
}

void whit_piped_close_input(whit_piped *child)
{
    if (child->in >= 0) close(child->in);
    child->in = -1;
}

void whit_piped_kill(const whit_piped *child)
{
    if (child->process) TerminateJobObject(((const struct held *)child->job)->job, 255);
}

int whit_piped_end(whit_piped *child, uint32_t patience_ms)
{
    DWORD code = 255;
    if (!child->process) return -1;
    struct held *held = child->job;
    whit_piped_close_input(child);
    /* A child often closes its output just before it ends, so patience_ms 0 waits for 100 ms. */
    bool has_ended = WaitForSingleObject(held->process, patience_ms ? patience_ms : 100) == WAIT_OBJECT_0;
    if (has_ended) GetExitCodeProcess(held->process, &code);
    CloseHandle(held->process);
    CloseHandle(held->job); /* closing the job ends its remaining processes */
    close(child->out);
    free(held);
    *child = (whit_piped){.in = -1, .out = -1};
    return has_ended && code != 255 ? (int)code : -1;
}
