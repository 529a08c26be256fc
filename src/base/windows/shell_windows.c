/* SPDX-License-Identifier: MIT */
#include "wide.h"

#include "base/items.h"
#include "base/shell.h"

FILE *whit_shell_open(const char *folder, const char *line)
{
    wchar_t before[WHIT_WIDE_MAX], below[WHIT_WIDE_MAX], *wide = NULL;
    char *command = NULL;
    FILE *shell = NULL;
    DWORD n = GetCurrentDirectoryW(WHIT_WIDE_MAX, before);
    if (!n || n >= WHIT_WIDE_MAX || !whit_wide_path(folder, below)) return NULL;
    if (asprintf(&command, "%s 2>&1", line) < 0) return NULL;
    int n_wide = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, command, -1, NULL, 0);
    errno = EINVAL;
    if (n_wide > 0 && (wide = malloc((size_t)n_wide * sizeof *wide))) {
        MultiByteToWideChar(CP_UTF8, 0, command, -1, wide, n_wide);
        /* _wpopen starts the child in the current folder of this process, so it is changed for a moment. */
        if (SetCurrentDirectoryW(below)) shell = _wpopen(wide, L"rb");
        SetCurrentDirectoryW(before);
    }
    free(wide);
    free(command);
    return shell;
}

/* Appends a path in quotes, with "\" as separator, which programs started by cmd.exe expect. The result is false if the
 * path has characters that cmd.exe would interpret, or memory runs out. */
static bool append_path(whit_buf *line, const char *path)
{
    if (strpbrk(path, "%\"\r\n")) return false;
    const size_t begin = line->size_bytes;
    if (!whit_buf_printf(line, " \"%s\"", path)) return false;
    for (size_t i = begin; i < line->size_bytes; i++)
        if (line->data[i] == '/') line->data[i] = '\\';
    return true;
}

/* Starts cmd.exe with the console as stdin, stdout and stderr, even if this process's standard handles are files. */
static bool start_at_console(wchar_t *line, HANDLE in, HANDLE out, PROCESS_INFORMATION *made)
{
    const bool has_console = in != INVALID_HANDLE_VALUE && out != INVALID_HANDLE_VALUE;
    STARTUPINFOW start = {.cb = sizeof start,
                          .dwFlags = has_console ? STARTF_USESTDHANDLES : 0,
                          .hStdInput = in,
                          .hStdOutput = out,
                          .hStdError = out};
    wchar_t shell[WHIT_WIDE_MAX];
    /* The variable makes cmd.exe search for programs only in PATH and not in the working folder, which may be an
     * untrusted project. Wine 8 ignores the variable. */
    return SetEnvironmentVariableW(L"NoDefaultCurrentDirectoryInExePath", L"1") && whit_wide_shell(shell) &&
        CreateProcessW(shell, line, NULL, NULL, has_console, 0, NULL, NULL, &start, made);
}

bool whit_shell_at_terminal(const char *line, char *const *paths, size_t n_paths)
{
    enum { LINE_UNITS_MAX = 8000 };
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE, both = GENERIC_READ | GENERIC_WRITE;
    PROCESS_INFORMATION made = {0};
    wchar_t *wide = malloc(LINE_UNITS_MAX * sizeof *wide);
    whit_buf whole = {0};
    DWORD code = 1;
    size_t n = 0;
    bool ok = wide && !strpbrk(line, "\r\n") && whit_buf_printf(&whole, "cmd.exe /d /s /c \"%s", line);
    for (size_t i = 0; ok && i < n_paths; i++)
        if (paths[i]) ok = append_path(&whole, paths[i]), n++;
    ok = ok && n && whit_buf_append(&whole, "\"", 2) &&
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, whit_chars(&whole), -1, wide, LINE_UNITS_MAX) > 0;
    if (ok) {
        HANDLE in = CreateFileW(L"CONIN$", both, share, &inherited, OPEN_EXISTING, 0, NULL);
        HANDLE out = CreateFileW(L"CONOUT$", both, share, &inherited, OPEN_EXISTING, 0, NULL);
        ok = start_at_console(wide, in, out, &made);
        if (in != INVALID_HANDLE_VALUE) CloseHandle(in);
        if (out != INVALID_HANDLE_VALUE) CloseHandle(out);
    }
    if (ok) {
        ok = WaitForSingleObject(made.hProcess, INFINITE) == WAIT_OBJECT_0 &&
            GetExitCodeProcess(made.hProcess, &code) && code == 0;
        CloseHandle(made.hThread);
        CloseHandle(made.hProcess);
    }
    whit_buf_free(&whole);
    free(wide);
    return ok;
}

char *whit_shell_program(void)
{
    wchar_t wide[WHIT_WIDE_MAX];
    char path[PATH_MAX], *word = NULL;
    const DWORD n = GetModuleFileNameW(NULL, wide, WHIT_WIDE_MAX);
    if (!n || n >= WHIT_WIDE_MAX || !whit_wide_text(wide, false, path, sizeof path)) return NULL;
    return strpbrk(path, "%\"") || asprintf(&word, "\"%s\"", path) < 0 ? NULL : word;
}
