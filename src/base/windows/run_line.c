/* SPDX-License-Identifier: MIT
 * A job object contains all processes of a command line, so that none outlives it. */
#include "run_line.h"

#include "job.h"
#include "wide.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/items.h"
#include "base/status.h"

enum { LINE_MAX_UNITS = 8000, VALUE_MAX_UNITS = 32768, LOOK_MS = 10, PIECE_BYTES = 65536 };

static whit_status fail_windows(whit_error *error, const char *what)
{
    whit_wide_error();
    return whit_fail_errno(error, what, "run");
}

/* ---- environment ---------------------------------------------------------------------------- */

/* Appends "NAME=VALUE" and a zero in UTF-16 to an environment block. */
static bool add_variable(whit_buf *block, const wchar_t *name, const wchar_t *value)
{
    return whit_buf_append(block, name, wcslen(name) * sizeof *name) && whit_buf_append(block, L"=", sizeof *name) &&
        whit_buf_append(block, value, (wcslen(value) + 1) * sizeof *value);
}

/* Builds an environment block for CreateProcess from the few variables that programs need to find the system's folders,
 * the home folder, and the command's own variables. */
static bool make_environment(const whit_run_line *command, whit_buf *block)
{
    static const wchar_t *const kept[] = {
        L"COMSPEC",     L"NUMBER_OF_PROCESSORS", L"PATH",        L"PATHEXT",    L"PROCESSOR_ARCHITECTURE",
        L"ProgramData", L"ProgramFiles",         L"SystemDrive", L"SystemRoot", L"windir"};
    static const wchar_t *const homes[] = {L"HOME", L"TEMP", L"TMP", L"USERPROFILE"};
    wchar_t *value = malloc(VALUE_MAX_UNITS * sizeof *value), home[WHIT_WIDE_MAX];
    bool ok = value && whit_wide_path(command->home, home);
    for (size_t i = 0; ok && i < sizeof kept / sizeof *kept; i++) {
        DWORD n = GetEnvironmentVariableW(kept[i], value, VALUE_MAX_UNITS);
        if (n && n < VALUE_MAX_UNITS) ok = add_variable(block, kept[i], value);
    }
    for (size_t i = 0; ok && i < sizeof homes / sizeof *homes; i++) ok = add_variable(block, homes[i], home);
    for (const char *const *one = command->environment; ok && one && *one; one++) {
        int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, *one, -1, value, VALUE_MAX_UNITS);
        ok = n > 0 && whit_buf_append(block, value, (size_t)n * sizeof *value);
    }
    free(value);
    return ok && whit_buf_append(block, L"\0", 2 * sizeof(wchar_t));
}

/* ---- the process ---------------------------------------------------------------------------- */

struct running {
    HANDLE job, process, output;
};

static void end_running(struct running *r)
{
    if (r->job) CloseHandle(r->job); /* closing the job ends its remaining processes */
    if (r->process) CloseHandle(r->process);
    if (r->output) CloseHandle(r->output);
    *r = (struct running){0};
}

static bool start_line(const whit_run_line *command, wchar_t *line, const wchar_t *folder, void *environment,
                       struct running *r)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    HANDLE ends[2] = {
        CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, NULL),
        NULL};
    bool ok = ends[0] != INVALID_HANDLE_VALUE && CreatePipe(&r->output, &ends[1], &inherited, PIECE_BYTES) &&
        SetHandleInformation(r->output, HANDLE_FLAG_INHERIT, 0) &&
        whit_job_make(command->n_processes, command->process_bytes, &r->job) &&
        whit_job_start(r->job, line, folder, environment, ends[0], ends[1], ends[1], &r->process);
    DWORD code = GetLastError();
    if (ends[0] != INVALID_HANDLE_VALUE) CloseHandle(ends[0]);
    if (ends[1]) CloseHandle(ends[1]);
    SetLastError(code);
    return ok;
}

/* Reads all bytes that are now in the pipe and appends them to result->output, whose size stays at most `most`; bytes
 * beyond that are dropped. The result is false if memory runs out. */
static bool take_output(const struct running *r, uint64_t most, whit_run_line_result *result)
{
    static const size_t piece = PIECE_BYTES;
    for (DWORD n = 0; PeekNamedPipe(r->output, NULL, 0, NULL, &n, NULL) && n;) {
        if (!whit_buf_reserve(&result->output, piece)) return false;
        if (!ReadFile(r->output, result->output.data + result->output.size_bytes, n < piece ? n : (DWORD)piece, &n,
                      NULL))
            break;
        result->output.size_bytes += n;
        if (result->output.size_bytes <= most) continue;
        result->output.size_bytes = (size_t)most;
        result->output_is_cut = true;
    }
    return true;
}

whit_status whit_run_line_wait(const whit_run_line *command, whit_run_line_result *result, whit_error *error)
{
    wchar_t folder[WHIT_WIDE_MAX], *wide = malloc(LINE_MAX_UNITS * sizeof *wide);
    whit_buf block = {0}, line = {0};
    struct running r = {0};
    const uint64_t begin_ns = whit_now_ns(), wall_ns = command->wall_s * UINT64_C(1000000000);
    DWORD code = 1;
    /* With /s, cmd.exe removes only the outer quotes and keeps quotes inside the line. */
    bool ok = wide && whit_buf_append_str(&line, "cmd.exe /d /s /c \"") && whit_buf_append_str(&line, command->line) &&
        whit_buf_append(&line, "\"", 2) && make_environment(command, &block);
    whit_status status = ok ? WHIT_OK : whit_fail_memory(error, "a command", line.size_bytes);
    if (ok &&
        (strpbrk(command->line, "\r\n") || !whit_wide_path(command->folder, folder) ||
         MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, whit_chars(&line), -1, wide, LINE_MAX_UNITS) <= 0))
        status = whit_fail(error, WHIT_ERROR_ARGUMENT, "a command must be one line of UTF-8 of at most %d characters",
                           LINE_MAX_UNITS - 20);
    if (status == WHIT_OK && !start_line(command, wide, folder, block.data, &r))
        status = fail_windows(error, "cmd.exe");
    for (bool is_over = false; status == WHIT_OK && !is_over;) {
        is_over = WaitForSingleObject(r.process, LOOK_MS) == WAIT_OBJECT_0;
        result->was_cancelled = !is_over && command->cancel && whit_flag_is_set(command->cancel);
        result->timed_out = !is_over && !result->was_cancelled && whit_now_ns() - begin_ns > wall_ns;
        if (result->was_cancelled || result->timed_out) is_over = TerminateJobObject(r.job, 1);
        if (!take_output(&r, command->output_bytes, result)) status = whit_fail_memory(error, "output", PIECE_BYTES);
    }
    if (r.process) GetExitCodeProcess(r.process, &code);
    result->status = (int)code;
    end_running(&r);
    whit_buf_free(&block);
    whit_buf_free(&line);
    free(wide);
    return status;
}
