/* SPDX-License-Identifier: MIT
 * Maps files for reading, and writes files atomically. These functions convert errors of the operating system to
 * messages. */
#ifndef WHIT_BASE_FILE_H
#define WHIT_BASE_FILE_H

#include "base/mem.h"

/* Maps a whole file read-only. A zero-initialised map is closed. */
typedef struct whit_map {
    const uint8_t *data;
    size_t size_bytes;
    char *path;    /* copy of the path, for messages */
    bool borrowed; /* `data` belongs to the caller and is not unmapped */
    const whit_allocator *allocator;
} whit_map;

/* Maps the whole file. Folders, other files that are not regular, and empty files are errors. */
whit_status whit_map_open(const char *path, const whit_allocator *allocator, whit_map *map, whit_error *error);
/* Maps the file of an open descriptor, for example a memfd. `path` names it in messages; the caller still closes the
 * descriptor. */
whit_status whit_map_open_fd(int fd, const char *path, const whit_allocator *allocator, whit_map *map,
                             whit_error *error);
/* Makes a map of bytes that are already in memory, without copying them; they must outlive the map. `path` names them
 * in messages. */
whit_status whit_map_open_memory(const void *data, size_t size_bytes, const char *path, const whit_allocator *allocator,
                                 whit_map *map, whit_error *error);
void whit_map_close(whit_map *map);
/* Releases the memory of a part of the map; its bytes stay readable (from the page cache, or again from disk), and the
 * process's resident size falls. Has no effect on a borrowed map, or if the range is not inside the map. */
void whit_map_drop(const whit_map *map, const void *begin, size_t size_bytes);
/* Releases the memory of a part of any read-only file map, as whit_map_drop does, without checking its bounds. */
void whit_map_release(const void *begin, size_t size_bytes);
/* Hints how a part of a map will be read. all_of_it: all of it, repeatedly; the system is asked for huge pages, which
 * stream from memory a third faster and load faster from disk. Otherwise only scattered places; the system is asked not
 * to use huge pages, so that the process stays small. */
void whit_map_expect(const void *begin, size_t size_bytes, bool all_of_it);

/* Represents a file that replaces `path` atomically at the commit. Until then the file has no name, or a temporary name
 * in the folder of `path` where the file system does not support files without names; a later writer of the same path
 * removes the temporary files of killed processes. Symbolic links are followed. A device or a pipe gets the bytes at
 * the commit. Folders, block devices, sockets, and paths that the commit could not create are refused. With path NULL
 * the writer writes to anonymous memory (memfd), which is never renamed. A zero-initialised writer is closed. */
typedef struct whit_writer {
    int fd; /* open descriptor, if `open` */
    bool open;
    uint64_t offset_bytes; /* offset of the next append */
    char *path, *temporary;
    bool unnamed; /* the file has no name yet (O_TMPFILE): no file `temporary` exists */
    bool is_new;  /* the commit fails rather than replace another file */
    /* The commit calls `replace`, if not NULL, in place of rename(): it gives the finished file `temporary` the name
     * `path`, or fails and leaves both. */
    whit_status (*replace)(const char *temporary, const char *path, const void *user, whit_error *error);
    const void *replace_user;
    bool is_special; /* `path` is a device or a pipe, whose open descriptor is `special` */
    int special;
    uint8_t *pending; /* after whit_writer_gather: the n_pending bytes before offset_bytes that are not yet written */
    size_t n_pending;
    const whit_allocator *allocator;
} whit_writer;

whit_status whit_writer_open(const char *path, const whit_allocator *allocator, whit_writer *writer, whit_error *error);
/* Opens a writer for a file that only its owner may read (mode 0600); the commit does not replace an existing file. */
whit_status whit_writer_open_private(const char *path, const whit_allocator *allocator, whit_writer *writer,
                                     whit_error *error);
/* After this call appended pieces are gathered and written in large blocks that end at multiples of two megabytes, so
 * that the system keeps them in huge pages for a later map of the file. Write errors may then be reported later, at the
 * latest by whit_writer_commit. */
whit_status whit_writer_gather(whit_writer *writer, whit_error *error);
whit_status whit_writer_append(whit_writer *writer, const void *data, size_t size_bytes, whit_error *error);
whit_status whit_writer_at(whit_writer *writer, uint64_t offset_bytes, const void *data, size_t size_bytes,
                           whit_error *error);
/* Flushes the file to disk (fsync), renames it, flushes its folder, and closes it; a device or a pipe gets the bytes
 * instead. On failure the writer is discarded. A memory file (path NULL) stays open in either case: use writer->fd,
 * then call whit_writer_discard. */
whit_status whit_writer_commit(whit_writer *writer, whit_error *error);
void whit_writer_discard(whit_writer *writer);
/* Finds the names for a file that is made in several steps, each of which opens it by name: `resolved` receives `path`
 * with symbolic links resolved, `beside` a temporary name in the same folder, of the form that writers use. Both have
 * PATH_MAX bytes. An existing file at `path` that is not a regular file is an error. */
whit_status whit_writer_beside(const char *path, char *resolved, char *beside, whit_error *error);
/* Renames the finished file `beside` to `resolved`, replacing an existing file, and flushes the folder. */
whit_status whit_writer_put_in_place(const char *beside, const char *resolved, whit_error *error);
/* Removes from `folder` the temporary files for the final name `name` (NULL: for any name) that no writer has
 * locked. */
void whit_writer_clean(const char *folder, const char *name);

/* Appends a whole small file to `buf`, whose size may become at most limit_bytes. Waits for a pipe's data at most ten
 * seconds in total. */
whit_status whit_read_file(const char *path, size_t limit_bytes, whit_buf *buf, whit_error *error);
/* Reads like whit_read_file() a file that no person has named, but that was found in a folder, perhaps a stranger's.
 * Any other than a regular file is an error: a link to a terminal would wait for its keys, and take them. */
whit_status whit_read_found_file(const char *path, size_t limit_bytes, whit_buf *buf, whit_error *error);
/* Reads at most n bytes of the beginning of such a file. Returns how many; 0 on failure. */
size_t whit_read_found_head(const char *path, void *head, size_t n);
/* Reads like whit_read_file() from an open descriptor, opened with O_NONBLOCK; `path` names it in messages. */
whit_status whit_read_open_file(int fd, const char *path, size_t limit_bytes, whit_buf *buf, whit_error *error);

/* Writes all bytes to an open blocking file, pipe or terminal; false, with errno, on failure. */
bool whit_write_all(int fd, const void *data, size_t size_bytes);

/* Copies the metadata of one open file to another: owner, group, mode and extended attributes, which include access
 * lists. The result is false if some of it cannot be copied: then the caller must overwrite the old file in place. On
 * Windows nothing is copied, and the result is true. */
bool whit_copy_metadata(int from, int to);
/* Overwrites a regular file in place, so that it keeps its hard links and attributes; a symbolic link is an error. Disk
 * space for a longer content is reserved first; a crash leaves a mixture of old and new content, so the caller must
 * have a copy. The file is flushed to disk. */
whit_status whit_write_over(const char *path, const void *data, size_t size_bytes, whit_error *error);

/* Writes `data` to `path` atomically. */
whit_status whit_write_file(const char *path, const void *data, size_t size_bytes, whit_error *error);

#endif
