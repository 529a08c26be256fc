/* SPDX-License-Identifier: MIT
 * Implements functions on names of files: finds the file of a name, renames and removes files, and makes folders. */
#include "wide.h"

#include <winioctl.h>

#include "base/path.h"

/* ---- attributes of a file ------------------------------------------------------------------- */

static struct timespec time_of(FILETIME when)
{
    /* FILETIME counts units of 100 ns since 1601. */
    uint64_t ticks = (uint64_t)when.dwHighDateTime << 32 | when.dwLowDateTime;
    const uint64_t unix_epoch = UINT64_C(116444736000000000);
    ticks = ticks > unix_epoch ? ticks - unix_epoch : 0;
    return (struct timespec){.tv_sec = (time_t)(ticks / 10000000), .tv_nsec = (long)(ticks % 10000000 * 100)};
}

static int examine_handle(HANDLE handle, struct whit_posix_stat *info)
{
    BY_HANDLE_FILE_INFORMATION found;
    FILE_ATTRIBUTE_TAG_INFO tag = {0};
    *info = (struct whit_posix_stat){.st_nlink = 1, .st_uid = getuid(), .st_gid = getuid()};
    DWORD type = GetFileType(handle);
    if (type != FILE_TYPE_DISK) {
        info->st_mode = (mode_t)(0600 | (type == FILE_TYPE_PIPE ? S_IFIFO : S_IFCHR));
        return 0;
    }
    if (!GetFileInformationByHandle(handle, &found)) return whit_wide_error();
    bool is_folder = found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    bool is_link = found.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT &&
        GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof tag) &&
        (tag.ReparseTag == IO_REPARSE_TAG_SYMLINK || tag.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
    /* Other users have no access to a user's folders, and files inherit this. */
    unsigned rights = 0600;
    if (is_folder)
        rights = 0700;
    else if (found.dwFileAttributes & FILE_ATTRIBUTE_READONLY)
        rights = 0400;
    unsigned kind = S_IFREG;
    if (is_link)
        kind = S_IFLNK;
    else if (is_folder)
        kind = S_IFDIR;
    info->st_mode = (mode_t)(rights | kind);
    info->st_dev = found.dwVolumeSerialNumber;
    info->st_ino = (uint64_t)found.nFileIndexHigh << 32 | found.nFileIndexLow;
    info->st_nlink = found.nNumberOfLinks;
    if (!is_folder) info->st_size = (off_t)((uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow);
    info->st_blocks = (info->st_size + 511) / 512;
    info->st_atim = time_of(found.ftLastAccessTime);
    info->st_mtim = time_of(found.ftLastWriteTime);
    info->st_ctim = info->st_mtim;
    return 0;
}

static int examine_name(const char *path, bool follow, struct whit_posix_stat *info)
{
    wchar_t wide[WHIT_WIDE_MAX];
    if (!whit_wide_path(path, wide)) return -1;
    HANDLE handle =
        CreateFileW(wide, FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT), NULL);
    if (handle == INVALID_HANDLE_VALUE) return whit_wide_error();
    int result = examine_handle(handle, info);
    CloseHandle(handle);
    size_t n = strlen(path);
    if (result == 0 && (path[n - 1] == '/' || path[n - 1] == '\\') && !S_ISDIR(info->st_mode)) {
        errno = ENOTDIR;
        return -1;
    }
    return result;
}

int whit_posix_stat(const char *path, struct whit_posix_stat *info)
{
    return examine_name(path, true, info);
}

int whit_posix_lstat(const char *path, struct whit_posix_stat *info)
{
    return examine_name(path, false, info);
}

int whit_posix_fstat(int fd, struct whit_posix_stat *info)
{
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    if (handle != INVALID_HANDLE_VALUE) return examine_handle(handle, info);
    errno = EBADF;
    return -1;
}

int whit_posix_access(const char *path, int mode)
{
    struct stat info;
    if (stat(path, &info) != 0) return -1;
    if (!(mode & W_OK) || info.st_mode & 0200) return 0;
    errno = EACCES;
    return -1;
}

int whit_posix_statvfs(const char *path, struct statvfs *info)
{
    wchar_t wide[WHIT_WIDE_MAX];
    struct stat about;
    ULARGE_INTEGER mine, all, unused;
    if (!whit_wide_path(path, wide)) return -1;
    if (stat(path, &about) == 0 && !S_ISDIR(about.st_mode)) {
        wchar_t *slash = wcsrchr(wide, L'\\');
        if (slash)
            slash[1] = 0;
        else
            wcscpy(wide, L".");
    }
    if (!GetDiskFreeSpaceExW(wide, &mine, &all, &unused)) return whit_wide_error();
    *info = (struct statvfs){.f_bsize = 4096, .f_frsize = 4096, .f_blocks = all.QuadPart / 4096};
    info->f_bfree = info->f_bavail = mine.QuadPart / 4096;
    return 0;
}

char *whit_posix_realpath(const char *path, char *resolved)
{
    wchar_t wide[WHIT_WIDE_MAX], full[WHIT_WIDE_MAX];
    char text[PATH_MAX];
    if (!whit_wide_path(path, wide)) return NULL;
    HANDLE handle = CreateFileW(wide, FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (handle == INVALID_HANDLE_VALUE) {
        whit_wide_error();
        return NULL;
    }
    DWORD n = GetFinalPathNameByHandleW(handle, full, WHIT_WIDE_MAX, FILE_NAME_NORMALIZED);
    CloseHandle(handle);
    if (!n || n >= WHIT_WIDE_MAX) n = GetFullPathNameW(wide, WHIT_WIDE_MAX, full, NULL);
    if (!n || n >= WHIT_WIDE_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (!whit_wide_text(full, true, text, sizeof text)) return NULL;
    if (!resolved) return strdup(text);
    strcpy(resolved, text);
    return resolved;
}

/* ---- changing names ------------------------------------------------------------------------- */

int whit_posix_unlink(const char *path)
{
    wchar_t wide[WHIT_WIDE_MAX];
    if (!whit_wide_path(path, wide)) return -1;
    if (DeleteFileW(wide)) return 0;
    whit_wide_error();
    DWORD was = GetFileAttributesW(wide);
    if (was == INVALID_FILE_ATTRIBUTES || !(was & FILE_ATTRIBUTE_READONLY)) return -1;
    SetFileAttributesW(wide, FILE_ATTRIBUTE_NORMAL); /* makes a read-only file deletable, because in POSIX the
                                                      * folder's rights decide */
    return DeleteFileW(wide) ? 0 : whit_wide_error();
}

int whit_posix_rmdir(const char *path)
{
    wchar_t wide[WHIT_WIDE_MAX];
    if (!whit_wide_path(path, wide)) return -1;
    return RemoveDirectoryW(wide) ? 0 : whit_wide_error();
}

/* Replaces the open file `to` by `from` on older systems, which cannot replace an open file in one step but can rename
 * it: the old file gets a temporary name and is deleted when it is closed. A crash between the steps leaves both
 * files. */
static bool replace_open_file(const wchar_t *from, const wchar_t *to)
{
    wchar_t aside[WHIT_WIDE_MAX + 16];
    uint32_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) return false;
    swprintf(aside, sizeof aside / sizeof *aside, L"%ls.old-%08x", to, random);
    if (!MoveFileExW(to, aside, 0)) return false;
    if (!MoveFileExW(from, to, 0)) {
        DWORD code = GetLastError();
        MoveFileExW(aside, to, 0);
        SetLastError(code);
        return false;
    }
    DeleteFileW(aside);
    return true;
}

int whit_posix_rename(const char *from, const char *to)
{
    wchar_t wide_from[WHIT_WIDE_MAX], wide_to[WHIT_WIDE_MAX];
    if (!whit_wide_path(from, wide_from) || !whit_wide_path(to, wide_to)) return -1;
    if (MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING)) return 0;
    DWORD code = GetLastError(), was = GetFileAttributesW(wide_to);
    bool is_busy = code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION;
    if (is_busy && was != INVALID_FILE_ATTRIBUTES && !(was & FILE_ATTRIBUTE_DIRECTORY) &&
        replace_open_file(wide_from, wide_to))
        return 0;
    if (!is_busy) SetLastError(code);
    return whit_wide_error();
}

int link(const char *from, const char *to)
{
    wchar_t wide_from[WHIT_WIDE_MAX], wide_to[WHIT_WIDE_MAX];
    if (!whit_wide_path(from, wide_from) || !whit_wide_path(to, wide_to)) return -1;
    return CreateHardLinkW(wide_to, wide_from, NULL) ? 0 : whit_wide_error();
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    (void)from_folder, (void)to_folder, (void)flags;
    return link(from, to);
}

int symlink(const char *target, const char *path)
{
    (void)target, (void)path;
    errno = EPERM; /* creating a symbolic link needs a privilege that users normally lack */
    return -1;
}

ssize_t readlink(const char *path, char *target, size_t target_bytes)
{
    (void)path, (void)target, (void)target_bytes;
    errno = EINVAL; /* reports that the file is not a link: CreateFile follows links itself */
    return -1;
}

ssize_t readlinkat(int folder, const char *path, char *target, size_t target_bytes)
{
    (void)folder;
    return readlink(path, target, target_bytes);
}

int whit_posix_chmod(const char *path, mode_t mode)
{
    wchar_t wide[WHIT_WIDE_MAX];
    if (!whit_wide_path(path, wide)) return -1;
    DWORD was = GetFileAttributesW(wide);
    if (was == INVALID_FILE_ATTRIBUTES) return whit_wide_error();
    was = mode & 0200 ? was & ~(DWORD)FILE_ATTRIBUTE_READONLY : was | FILE_ATTRIBUTE_READONLY;
    return SetFileAttributesW(wide, was) ? 0 : whit_wide_error();
}

/* ---- folders -------------------------------------------------------------------------------- */

int whit_posix_mkdir(const char *path, mode_t mode)
{
    wchar_t wide[WHIT_WIDE_MAX];
    (void)mode;
    if (!whit_wide_path(path, wide)) return -1;
    if (CreateDirectoryW(wide, NULL)) return 0;
    /* For the root of a drive Windows reports another error than "exists". Code that creates all folders of a path
     * begins with the root and needs EEXIST. */
    DWORD code = GetLastError(), was = GetFileAttributesW(wide);
    SetLastError(was == INVALID_FILE_ATTRIBUTES ? code : ERROR_ALREADY_EXISTS);
    return whit_wide_error();
}

int whit_posix_chdir(const char *path)
{
    wchar_t wide[WHIT_WIDE_MAX];
    if (!whit_wide_path(path, wide)) return -1;
    return SetCurrentDirectoryW(wide) ? 0 : whit_wide_error();
}

char *whit_posix_getcwd(char *path, size_t path_bytes)
{
    wchar_t wide[WHIT_WIDE_MAX];
    char text[PATH_MAX];
    DWORD n = GetCurrentDirectoryW(WHIT_WIDE_MAX, wide);
    if (!n || n >= WHIT_WIDE_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (!whit_wide_text(wide, true, path ? path : text, path ? path_bytes : sizeof text)) return NULL;
    return path ? path : strdup(text);
}

char *whit_posix_mkdtemp(char *pattern)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t n = strlen(pattern);
    uint8_t random[6];
    for (int attempt = 0; attempt < 100; attempt++) {
        if (n < 6 || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) break;
        for (size_t i = 0; i < sizeof random; i++) pattern[n - 6 + i] = letters[random[i] % (sizeof letters - 1)];
        if (mkdir(pattern, 0700) == 0) return pattern;
        if (errno != EEXIST) break;
    }
    return NULL;
}

/* Finds the current path of an open folder; false, with errno, on failure. */
static bool folder_name(int fd, char *path, size_t path_bytes)
{
    wchar_t wide[WHIT_WIDE_MAX];
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    DWORD n = handle == INVALID_HANDLE_VALUE ? 0 : GetFinalPathNameByHandleW(handle, wide, WHIT_WIDE_MAX, 0);
    if (n && n < WHIT_WIDE_MAX) return whit_wide_text(wide, true, path, path_bytes);
    errno = EBADF;
    return false;
}

struct whit_posix_dir {
    HANDLE search;
    bool has_next;
    WIN32_FIND_DATAW found;
    struct dirent entry;
    int fd; /* descriptor that fdopendir got or dirfd opened; else -1 */
    char path[];
};

DIR *whit_posix_opendir(const char *path)
{
    wchar_t wide[WHIT_WIDE_MAX];
    struct stat info;
    if (stat(path, &info) != 0) return NULL;
    if (!S_ISDIR(info.st_mode)) {
        errno = ENOTDIR;
        return NULL;
    }
    size_t n = strlen(path);
    DIR *folder = calloc(1, sizeof *folder + n + 3);
    if (!folder) return NULL;
    memcpy(folder->path, path, n);
    strcpy(folder->path + n, "/*");
    bool ok = whit_wide_path(folder->path, wide);
    folder->path[n] = 0;
    folder->fd = -1;
    folder->search = ok ? FindFirstFileW(wide, &folder->found) : INVALID_HANDLE_VALUE;
    folder->has_next = folder->search != INVALID_HANDLE_VALUE;
    if (ok && (folder->has_next || GetLastError() == ERROR_FILE_NOT_FOUND)) return folder;
    if (ok) whit_wide_error();
    free(folder);
    return NULL;
}

DIR *fdopendir(int fd)
{
    char path[PATH_MAX];
    if (!folder_name(fd, path, sizeof path)) return NULL;
    DIR *folder = opendir(path);
    if (folder) folder->fd = fd;
    return folder;
}

struct dirent *whit_posix_readdir(DIR *folder)
{
    while (folder->has_next) {
        bool fits = whit_wide_text(folder->found.cFileName, false, folder->entry.d_name, sizeof folder->entry.d_name);
        DWORD kind = folder->found.dwFileAttributes;
        folder->has_next = FindNextFileW(folder->search, &folder->found);
        folder->entry.d_type = DT_REG;
        if (kind & FILE_ATTRIBUTE_REPARSE_POINT)
            folder->entry.d_type = DT_UNKNOWN;
        else if (kind & FILE_ATTRIBUTE_DIRECTORY)
            folder->entry.d_type = DT_DIR;
        if (fits) return &folder->entry;
    }
    return NULL;
}

int whit_posix_closedir(DIR *folder)
{
    if (folder->search != INVALID_HANDLE_VALUE) FindClose(folder->search);
    if (folder->fd >= 0) _close(folder->fd);
    free(folder);
    return 0;
}

int whit_posix_dirfd(DIR *folder)
{
    if (folder->fd < 0) folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder->fd;
}

int whit_posix_alphasort(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

typedef int entry_order(const struct dirent **, const struct dirent **);

static int order_entries(const void *a, const void *b, void *context)
{
    return (*(entry_order **)context)((const struct dirent **)(uintptr_t)a, (const struct dirent **)(uintptr_t)b);
}

int whit_posix_scandir(const char *path, struct dirent ***entries, int (*wanted)(const struct dirent *),
                       entry_order *order)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    struct dirent **items = NULL;
    size_t n = 0, capacity = 0;
    bool ok = folder;
    while (ok && (entry = readdir(folder))) {
        if (wanted && !wanted(entry)) continue;
        if (n == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            struct dirent **larger = realloc(items, capacity * sizeof *items);
            ok = larger;
            if (ok) items = larger;
        }
        struct dirent *copy = ok ? malloc(sizeof *copy) : NULL;
        if (copy) *copy = *entry;
        if (copy) items[n++] = copy;
        ok = copy;
    }
    if (folder) closedir(folder);
    if (ok && order) qsort_r(items, n, sizeof *items, order_entries, &order);
    if (ok) {
        *entries = items;
        return (int)n;
    }
    while (n) free(items[--n]);
    free(items);
    return -1;
}

/* ---- names below an open folder -------------------------------------------------------------- */

/* Joins the path of an open folder and `path`; false, with errno, on failure. */
static bool path_at(int folder, const char *path, char joined[PATH_MAX])
{
    size_t n = 0;
    if (folder != AT_FDCWD && !whit_path_is_absolute(path)) {
        if (!folder_name(folder, joined, PATH_MAX - 1)) return false;
        n = strlen(joined);
        joined[n++] = '/';
    }
    if (n + strlen(path) < PATH_MAX) {
        strcpy(joined + n, path);
        return true;
    }
    errno = ENAMETOOLONG;
    return false;
}

int whit_posix_openat(int folder, const char *path, int flags, ...)
{
    char joined[PATH_MAX];
    return path_at(folder, path, joined) ? open(joined, flags, 0666) : -1;
}

int whit_posix_fstatat(int folder, const char *path, struct whit_posix_stat *info, int flags)
{
    char joined[PATH_MAX];
    return path_at(folder, path, joined) ? examine_name(joined, !(flags & AT_SYMLINK_NOFOLLOW), info) : -1;
}

int whit_posix_unlinkat(int folder, const char *path, int flags)
{
    char joined[PATH_MAX];
    if (!path_at(folder, path, joined)) return -1;
    return flags & AT_REMOVEDIR ? rmdir(joined) : unlink(joined);
}

int faccessat(int folder, const char *path, int mode, int flags)
{
    char joined[PATH_MAX];
    struct stat info;
    if (!path_at(folder, path, joined)) return -1;
    if (flags & AT_SYMLINK_NOFOLLOW && mode == F_OK) return lstat(joined, &info);
    return access(joined, mode);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    char joined[PATH_MAX], target[PATH_MAX];
    return path_at(from_folder, from, joined) && path_at(to_folder, to, target) ? rename(joined, target) : -1;
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    char joined[PATH_MAX];
    return path_at(folder, path, joined) ? mkdir(joined, mode) : -1;
}

int symlinkat(const char *target, int folder, const char *path)
{
    (void)folder;
    return symlink(target, path);
}
