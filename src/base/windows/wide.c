/* SPDX-License-Identifier: MIT */
#include "wide.h"

static const struct {
    DWORD code;
    int number;
} errors[] = {
    {ERROR_FILE_NOT_FOUND, ENOENT},      {ERROR_PATH_NOT_FOUND, ENOENT},
    {ERROR_INVALID_NAME, ENOENT},        {ERROR_BAD_PATHNAME, ENOENT},
    {ERROR_BAD_NETPATH, ENOENT},         {ERROR_INVALID_DRIVE, ENOENT},
    {ERROR_TOO_MANY_OPEN_FILES, EMFILE}, {ERROR_ACCESS_DENIED, EACCES},
    {ERROR_SHARING_VIOLATION, EACCES},   {ERROR_USER_MAPPED_FILE, EACCES},
    {ERROR_LOCK_VIOLATION, EWOULDBLOCK}, {ERROR_IO_PENDING, EWOULDBLOCK},
    {ERROR_INVALID_HANDLE, EBADF},       {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
    {ERROR_OUTOFMEMORY, ENOMEM},         {ERROR_COMMITMENT_LIMIT, ENOMEM},
    {ERROR_FILE_EXISTS, EEXIST},         {ERROR_ALREADY_EXISTS, EEXIST},
    {ERROR_DISK_FULL, ENOSPC},           {ERROR_HANDLE_DISK_FULL, ENOSPC},
    {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},    {ERROR_DIRECTORY, ENOTDIR},
    {ERROR_NOT_SAME_DEVICE, EXDEV},      {ERROR_WRITE_PROTECT, EROFS},
    {ERROR_BROKEN_PIPE, EPIPE},          {ERROR_NO_DATA, EPIPE},
    {ERROR_OPERATION_ABORTED, EINTR},    {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
    {ERROR_NOT_SUPPORTED, ENOSYS},       {ERROR_INVALID_FUNCTION, ENOSYS},
    {ERROR_INVALID_PARAMETER, EINVAL},   {ERROR_PRIVILEGE_NOT_HELD, EPERM},
};

int whit_wide_error(void)
{
    DWORD code = GetLastError();
    errno = EIO;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) errno = errors[i].number;
    return -1;
}

bool whit_wide_path(const char *path, wchar_t wide[WHIT_WIDE_MAX])
{
    /* Without the prefix "\\?\" some calls refuse longer paths (CreateDirectory from 248 on). */
    enum { PREFIX = 4, PLAIN_MAX = 240 };
    wchar_t given[WHIT_WIDE_MAX];
    if (!*path) {
        errno = ENOENT;
        return false;
    }
    if (!strcmp(path, "/dev/null")) path = "NUL";
    /* "CONIN$" is right for writing too, because write() on the console's input writes to its output. */
    if (!strcmp(path, "/dev/tty")) path = "CONIN$";
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, given, WHIT_WIDE_MAX - PREFIX);
    if (n <= 0) {
        errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : ENOENT;
        return false;
    }
    for (wchar_t *at = given; *at; at++)
        if (*at == L'/') *at = L'\\';
    if (n <= PLAIN_MAX || !wcsncmp(given, L"\\\\", 2)) {
        memcpy(wide, given, (size_t)n * sizeof *wide);
        return true;
    }
    DWORD full = GetFullPathNameW(given, WHIT_WIDE_MAX - PREFIX, wide + PREFIX, NULL);
    if (!full || full >= WHIT_WIDE_MAX - PREFIX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(wide, L"\\\\?\\", PREFIX * sizeof *wide);
    return true;
}

bool whit_wide_text(const wchar_t *wide, bool is_path, char *text, size_t text_bytes)
{
    if (is_path && !wcsncmp(wide, L"\\\\?\\", 4)) wide += 4;
    if (WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, (int)text_bytes, NULL, NULL) <= 0) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (char *at = text; is_path && *at; at++)
        if (*at == '\\') *at = '/';
    return true;
}

bool whit_wide_shell(wchar_t wide[WHIT_WIDE_MAX])
{
    static const wchar_t name[] = L"\\cmd.exe";
    const UINT n = GetSystemDirectoryW(wide, WHIT_WIDE_MAX - sizeof name / sizeof *name);
    if (!n || n >= WHIT_WIDE_MAX - sizeof name / sizeof *name) return false;
    memcpy(wide + n, name, sizeof name);
    return true;
}
