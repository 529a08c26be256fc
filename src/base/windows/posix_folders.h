/* SPDX-License-Identifier: MIT
 * Declares the part of posix.h for the contents of folders, and for names below open folders. */
#ifndef WHIT_BASE_WINDOWS_POSIX_FOLDERS_H
#define WHIT_BASE_WINDOWS_POSIX_FOLDERS_H

#include "posix_files.h"

struct dirent {
    unsigned char d_type; /* one of the DT_ constants */
    char d_name[3 * NAME_MAX + 1];
};
typedef struct whit_posix_dir DIR;
enum { DT_UNKNOWN = 0, DT_DIR = 4, DT_REG = 8, DT_LNK = 10 };

DIR *whit_posix_opendir(const char *path);
DIR *fdopendir(int fd);
struct dirent *whit_posix_readdir(DIR *folder);
int whit_posix_closedir(DIR *folder);
int whit_posix_dirfd(DIR *folder);
int whit_posix_scandir(const char *path, struct dirent ***entries, int (*wanted)(const struct dirent *),
                       int (*order)(const struct dirent **, const struct dirent **));
int whit_posix_alphasort(const struct dirent **a, const struct dirent **b);

int faccessat(int folder, const char *path, int mode, int flags);
int renameat(int from_folder, const char *from, int to_folder, const char *to);
int mkdirat(int folder, const char *path, mode_t mode);
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int symlinkat(const char *target, int folder, const char *path);
ssize_t readlinkat(int folder, const char *path, char *target, size_t target_bytes);
int whit_posix_openat(int folder, const char *path, int flags, ...);
int whit_posix_fstatat(int folder, const char *path, struct whit_posix_stat *info, int flags);
int whit_posix_unlinkat(int folder, const char *path, int flags);

#define scandir   whit_posix_scandir
#define alphasort whit_posix_alphasort
#define opendir   whit_posix_opendir
#define readdir   whit_posix_readdir
#define closedir  whit_posix_closedir
#define dirfd     whit_posix_dirfd
#define openat    whit_posix_openat
#define fstatat   whit_posix_fstatat
#define unlinkat  whit_posix_unlinkat

#endif
