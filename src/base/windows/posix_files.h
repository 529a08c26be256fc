/* SPDX-License-Identifier: MIT
 * Declares the part of posix.h for files, their names and folders. */
#ifndef WHIT_BASE_WINDOWS_POSIX_FILES_H
#define WHIT_BASE_WINDOWS_POSIX_FILES_H

#include "posix_head.h"

/* ---- files ---------------------------------------------------------------------------------- */

#undef PATH_MAX
#define PATH_MAX 4096
#undef NAME_MAX
#define NAME_MAX 255

#define O_CLOEXEC   _O_NOINHERIT
#define O_NONBLOCK  0 /* no effect: opening a file never blocks on Windows */
#define O_NOCTTY    0
#define O_NOFOLLOW  0x01000000
#define O_DIRECTORY 0x02000000
#define O_PATH      0 /* no effect: a folder can be opened with O_RDONLY */
#define AT_FDCWD    (-100)

#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_SYMLINK_FOLLOW   0x400
#define AT_REMOVEDIR        0x200

#ifndef S_IFLNK
#define S_IFLNK  0xA000
#define S_IFSOCK 0xC000
#endif
#define S_ISLNK(mode)  (((mode)&0xF000) == S_IFLNK)
#define S_ISSOCK(mode) (((mode)&0xF000) == S_IFSOCK)

typedef unsigned uid_t, gid_t;

struct whit_posix_stat {
    uint64_t st_dev, st_ino;
    mode_t st_mode;
    unsigned st_nlink;
    uid_t st_uid;
    gid_t st_gid;
    off_t st_size;
    int64_t st_blocks;
    struct timespec st_atim, st_mtim, st_ctim;
};
#define st_atime st_atim.tv_sec
#define st_mtime st_mtim.tv_sec
#define st_ctime st_ctim.tv_sec

struct statvfs {
    uint64_t f_bsize, f_frsize, f_blocks, f_bfree, f_bavail;
    unsigned long f_flag;
};

enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 };

int whit_posix_open(const char *path, int flags, ...);
FILE *whit_posix_fopen(const char *path, const char *mode);
ssize_t whit_posix_read(int fd, void *bytes, size_t n_bytes);
ssize_t whit_posix_write(int fd, const void *bytes, size_t n_bytes);
ssize_t whit_posix_pread(int fd, void *bytes, size_t n_bytes, off_t offset);
ssize_t whit_posix_pwrite(int fd, const void *bytes, size_t n_bytes, off_t offset);
int whit_posix_fsync(int fd);
int whit_posix_ftruncate(int fd, off_t size_bytes);
int whit_posix_fallocate(int fd, off_t offset, off_t size_bytes);
int whit_posix_flock(int fd, int operation);
int whit_posix_fstat(int fd, struct whit_posix_stat *info);
int whit_posix_stat(const char *path, struct whit_posix_stat *info);
int whit_posix_lstat(const char *path, struct whit_posix_stat *info);
int whit_posix_statvfs(const char *path, struct statvfs *info);
int whit_posix_access(const char *path, int mode);
int whit_posix_unlink(const char *path);
int whit_posix_rmdir(const char *path);
int whit_posix_rename(const char *from, const char *to);
int whit_posix_mkdir(const char *path, mode_t mode);
int whit_posix_chdir(const char *path);
char *whit_posix_getcwd(char *path, size_t path_bytes);
char *whit_posix_realpath(const char *path, char *resolved);
char *whit_posix_mkdtemp(char *pattern);
int whit_posix_memfd(const char *name, unsigned flags);
int link(const char *from, const char *to);
int symlink(const char *target, const char *path);
ssize_t readlink(const char *path, char *target, size_t target_bytes);
int fchmod(int fd, mode_t mode);
/* Sets the times of the last access and the last change of the content. */
int futimens(int fd, const struct timespec times[2]);
/* syncfs and copy_file_range fail with ENOSYS; callers then flush or copy in another way. */
int syncfs(int fd);
ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t n_bytes, unsigned flags);
int whit_posix_chmod(const char *path, mode_t mode);

#undef stat
#undef fstat
#undef access
#undef ftruncate
#define open                                          whit_posix_open
#define fopen                                         whit_posix_fopen
#define read                                          whit_posix_read
#define write                                         whit_posix_write
#define pread                                         whit_posix_pread
#define pwrite                                        whit_posix_pwrite
#define fsync                                         whit_posix_fsync
#define fdatasync                                     whit_posix_fsync
#define ftruncate                                     whit_posix_ftruncate
#define posix_fallocate                               whit_posix_fallocate
#define flock                                         whit_posix_flock
#define stat                                          whit_posix_stat
#define fstat                                         whit_posix_fstat
#define lstat                                         whit_posix_lstat
#define statvfs_of                                    whit_posix_statvfs
#define access                                        whit_posix_access
#define unlink                                        whit_posix_unlink
#define rmdir                                         whit_posix_rmdir
#define rename                                        whit_posix_rename
#define mkdir                                         whit_posix_mkdir
#define chdir                                         whit_posix_chdir
#define getcwd                                        whit_posix_getcwd
#define realpath                                      whit_posix_realpath
#define mkdtemp                                       whit_posix_mkdtemp
#define memfd_create                                  whit_posix_memfd
#define chmod                                         whit_posix_chmod
#define fdopen                                        _fdopen
#define fileno                                        _fileno
#define MFD_CLOEXEC                                   1u
#define POSIX_FADV_DONTNEED                           4
#define posix_fadvise(fd, offset, size_bytes, advice) ((void)(fd), 0)

#endif
