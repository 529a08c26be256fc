/* SPDX-License-Identifier: MIT
 * Implements open files: descriptors of the C library for handles with all sharing modes, so that, as in POSIX, an open
 * file can be renamed, replaced and removed. */
#include "console.h"
#include "wide.h"

#include "base/system.h"

#include <sys/uio.h>

/* A lock covers one byte beyond the end of any file, because Windows lets no other program read bytes that are
 * locked. */
enum { LOCK_OFFSET_HIGH = 0x7FFFFFFF };

static HANDLE handle_of(int fd)
{
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    if (handle == INVALID_HANDLE_VALUE) errno = EBADF;
    return handle;
}

int whit_posix_open(const char *path, int flags, ...)
{
    wchar_t wide[WHIT_WIDE_MAX];
    if (!whit_wide_path(path, wide)) return -1;
    int way = flags & (_O_RDONLY | _O_WRONLY | _O_RDWR);
    DWORD access_rights;
    if (way == _O_RDONLY)
        access_rights = GENERIC_READ;
    else if (way == _O_WRONLY)
        access_rights = GENERIC_WRITE;
    else
        access_rights = GENERIC_READ | GENERIC_WRITE;
    DWORD attributes = FILE_ATTRIBUTE_NORMAL, creation = OPEN_EXISTING;
    if (flags & O_NOFOLLOW) attributes |= FILE_FLAG_OPEN_REPARSE_POINT;
    if (way == _O_RDONLY) attributes |= FILE_FLAG_BACKUP_SEMANTICS; /* opens folders too, as POSIX does */
    if (flags & _O_CREAT) {
        if (flags & _O_EXCL)
            creation = CREATE_NEW;
        else if (flags & _O_TRUNC)
            creation = CREATE_ALWAYS;
        else
            creation = OPEN_ALWAYS;
    } else if (flags & _O_TRUNC)
        creation = TRUNCATE_EXISTING;
    if (flags & _O_APPEND)
        access_rights = (access_rights & ~GENERIC_WRITE) | FILE_APPEND_DATA | FILE_WRITE_ATTRIBUTES | SYNCHRONIZE;
    HANDLE handle = CreateFileW(wide, access_rights, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                                creation, attributes, NULL);
    if (handle == INVALID_HANDLE_VALUE) {
        DWORD was = GetFileAttributesW(wide);
        whit_wide_error();
        if (was != INVALID_FILE_ATTRIBUTES && was & FILE_ATTRIBUTE_DIRECTORY) errno = EISDIR;
        return -1;
    }
    BY_HANDLE_FILE_INFORMATION info;
    bool is_known = GetFileInformationByHandle(handle, &info);
    bool is_folder = is_known && info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    if (flags & O_DIRECTORY && !is_folder) errno = ENOTDIR;
    bool is_link = flags & O_NOFOLLOW && is_known && info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT;
    if (is_link) errno = ELOOP;
    int fd = -1;
    if (!is_link && !(flags & O_DIRECTORY && !is_folder))
        fd = _open_osfhandle((intptr_t)handle, (flags & (_O_APPEND | _O_RDONLY | _O_NOINHERIT)) | _O_BINARY);
    if (fd < 0) CloseHandle(handle);
    return fd;
}

FILE *whit_posix_fopen(const char *path, const char *mode)
{
    bool updates = strchr(mode, '+');
    int flags;
    if (*mode == 'r')
        flags = 0;
    else if (*mode == 'w')
        flags = _O_CREAT | _O_TRUNC;
    else
        flags = _O_CREAT | _O_APPEND;
    if (strchr(mode, 'x')) flags |= _O_EXCL;
    flags |= updates ? _O_RDWR : *mode == 'r' ? _O_RDONLY : _O_WRONLY;
    int fd = whit_posix_open(path, flags | O_CLOEXEC, 0666);
    if (fd < 0) return NULL;
    char plain[4] = {*mode, 'b', updates ? '+' : 0};
    FILE *file = _fdopen(fd, plain);
    if (!file) _close(fd);
    return file;
}

static unsigned at_most(size_t n_bytes)
{
    return n_bytes < 1u << 30 ? (unsigned)n_bytes : 1u << 30;
}

/* Writes to the console's output if the descriptor is the console's input. */
static ssize_t write_console(const void *bytes, size_t n_bytes)
{
    HANDLE output = CreateFileW(L"CONOUT$", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                                OPEN_EXISTING, 0, NULL);
    if (output == INVALID_HANDLE_VALUE) return whit_wide_error();
    ssize_t result = whit_console_write(output, bytes, n_bytes);
    CloseHandle(output);
    return result;
}

ssize_t whit_posix_write(int fd, const void *bytes, size_t n_bytes)
{
    HANDLE handle = handle_of(fd);
    DWORD n, mode;
    if (handle == INVALID_HANDLE_VALUE) return -1;
    if (GetFileType(handle) == FILE_TYPE_CHAR && GetNumberOfConsoleInputEvents(handle, &n))
        return write_console(bytes, n_bytes);
    if (GetFileType(handle) == FILE_TYPE_CHAR && GetConsoleMode(handle, &mode))
        return whit_console_write(handle, bytes, n_bytes);
    if (!WriteFile(handle, bytes, at_most(n_bytes), &n, NULL)) return whit_wide_error();
    /* A non-blocking pipe accepts a whole piece or nothing, so smaller pieces are tried when its buffer is nearly
     * full. */
    for (DWORD piece = 4096; !n && n_bytes && piece; piece /= 8)
        if (!WriteFile(handle, bytes, n_bytes < piece ? (DWORD)n_bytes : piece, &n, NULL)) return whit_wide_error();
    if (n || !n_bytes) return (ssize_t)n;
    errno = EAGAIN;
    return -1;
}

ssize_t writev(int fd, const struct iovec *parts, int n_parts)
{
    ssize_t n_bytes = 0;
    for (int i = 0; i < n_parts; i++) {
        const ssize_t n = whit_posix_write(fd, parts[i].iov_base, parts[i].iov_len);
        if (n < 0) return n_bytes ? n_bytes : -1;
        n_bytes += n;
        if ((size_t)n < parts[i].iov_len) break;
    }
    return n_bytes;
}

static OVERLAPPED place_of(off_t offset)
{
    OVERLAPPED place = {0};
    place.Offset = (DWORD)offset;
    place.OffsetHigh = (DWORD)((uint64_t)offset >> 32);
    return place;
}

ssize_t whit_posix_pread(int fd, void *bytes, size_t n_bytes, off_t offset)
{
    HANDLE handle = handle_of(fd);
    OVERLAPPED place = place_of(offset);
    DWORD n;
    if (handle == INVALID_HANDLE_VALUE) return -1;
    if (ReadFile(handle, bytes, at_most(n_bytes), &n, &place)) return (ssize_t)n;
    return GetLastError() == ERROR_HANDLE_EOF ? 0 : whit_wide_error();
}

ssize_t whit_posix_pwrite(int fd, const void *bytes, size_t n_bytes, off_t offset)
{
    HANDLE handle = handle_of(fd);
    OVERLAPPED place = place_of(offset);
    DWORD n;
    if (handle == INVALID_HANDLE_VALUE) return -1;
    return WriteFile(handle, bytes, at_most(n_bytes), &n, &place) ? (ssize_t)n : whit_wide_error();
}

int whit_posix_fsync(int fd)
{
    HANDLE handle = handle_of(fd);
    if (handle == INVALID_HANDLE_VALUE) return -1;
    return FlushFileBuffers(handle) ? 0 : whit_wide_error();
}

int whit_posix_ftruncate(int fd, off_t size_bytes)
{
    HANDLE handle = handle_of(fd);
    FILE_END_OF_FILE_INFO end = {.EndOfFile.QuadPart = size_bytes};
    if (handle == INVALID_HANDLE_VALUE) return -1;
    return SetFileInformationByHandle(handle, FileEndOfFileInfo, &end, sizeof end) ? 0 : whit_wide_error();
}

int whit_posix_fallocate(int fd, off_t offset, off_t size_bytes)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return errno;
    if (info.st_size >= offset + size_bytes) return 0;
    return ftruncate(fd, offset + size_bytes) == 0 ? 0 : errno;
}

int whit_posix_flock(int fd, int operation)
{
    HANDLE handle = handle_of(fd);
    OVERLAPPED place = {.OffsetHigh = LOCK_OFFSET_HIGH};
    if (handle == INVALID_HANDLE_VALUE) return -1;
    /* A lock is converted to the other kind by releasing it first, as flock does. */
    bool was_held = UnlockFileEx(handle, 0, 1, 0, &place);
    if (operation & LOCK_UN) return 0;
    (void)was_held;
    DWORD exclusive = operation & LOCK_EX ? LOCKFILE_EXCLUSIVE_LOCK : 0;
    DWORD flags = (exclusive) | (operation & LOCK_NB ? LOCKFILE_FAIL_IMMEDIATELY : 0);
    return LockFileEx(handle, flags, 0, 1, 0, &place) ? 0 : whit_wide_error();
}

int whit_posix_memfd(const char *name, unsigned flags)
{
    (void)name, (void)flags;
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
    if (!GetTempPathW(MAX_PATH, folder) || !GetTempFileNameW(folder, L"wht", 0, path)) return whit_wide_error();
    HANDLE handle =
        CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                    NULL, CREATE_ALWAYS, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (handle == INVALID_HANDLE_VALUE) return whit_wide_error();
    int fd = _open_osfhandle((intptr_t)handle, _O_BINARY | _O_NOINHERIT);
    if (fd < 0) CloseHandle(handle);
    return fd;
}

int whit_posix_pipe(int ends[2], int flags)
{
    return _pipe(ends, 65536, _O_BINARY | (flags & _O_NOINHERIT));
}

bool whit_system_pipe(int ends[2])
{
    DWORD at_once = PIPE_NOWAIT;
    if (_pipe(ends, 65536, _O_BINARY | _O_NOINHERIT)) return false;
    for (int i = 0; i < 2; i++) SetNamedPipeHandleState(handle_of(ends[i]), &at_once, NULL, NULL);
    return true;
}

int dprintf(int fd, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (n >= 0 && write(fd, text, (size_t)n) != n) n = -1;
    free(text);
    return n;
}

int fchmod(int fd, mode_t mode)
{
    /* Windows controls access by lists that a file inherits from its folder; other users have no access to a user's own
     * folders. */
    (void)mode;
    return handle_of(fd) == INVALID_HANDLE_VALUE ? -1 : 0;
}

int futimens(int fd, const struct timespec times[2])
{
    const uint64_t unix_epoch = UINT64_C(116444736000000000); /* 1 January 1970 in units of 100 ns since 1601 */
    FILETIME when[2];
    for (int i = 0; i < 2; i++) {
        uint64_t ticks = unix_epoch + (uint64_t)times[i].tv_sec * 10000000 + (uint64_t)times[i].tv_nsec / 100;
        when[i] = (FILETIME){.dwLowDateTime = (DWORD)ticks, .dwHighDateTime = (DWORD)(ticks >> 32)};
    }
    HANDLE handle = handle_of(fd);
    if (handle == INVALID_HANDLE_VALUE) return -1;
    return SetFileTime(handle, NULL, &when[0], &when[1]) ? 0 : whit_wide_error();
}

int syncfs(int fd)
{
    (void)fd;
    errno = ENOSYS; /* not supported: only administrators can flush a volume */
    return -1;
}

ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t n_bytes, unsigned flags)
{
    (void)from, (void)from_at, (void)to, (void)to_at, (void)n_bytes, (void)flags;
    errno = ENOSYS;
    return -1;
}
