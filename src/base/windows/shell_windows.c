/* SPDX-License-Identifier: MIT */
#include "wide.h"

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
        /* The child begins in the current folder of this process. */
        if (SetCurrentDirectoryW(below)) shell = _wpopen(wide, L"rb");
        SetCurrentDirectoryW(before);
    }
    free(wide);
    free(command);
    return shell;
}
