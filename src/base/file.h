/* SPDX-License-Identifier: MIT
 * Files: read-only maps, atomic writes, folders. Refusals of the operating system become messages here. */
#ifndef WHIT_BASE_FILE_H
#define WHIT_BASE_FILE_H

#include "base/mem.h"

/* Maps a whole file read-only. A zero-initialised map is closed. */
typedef struct whit_map {
    const uint8_t *data;
    size_t size_bytes;
    char *path;    /* a copy, for messages */
    bool borrowed; /* the bytes belong to the caller */
    const whit_allocator *allocator;
} whit_map;

/* Maps the whole file. Folders, other files that are not regular, and empty files are refused. */
whit_status whit_map_open(const char *path, const whit_allocator *allocator, whit_map *map, whit_error *error);
/* Maps an open descriptor (a memfd, say) under the name `path`; the descriptor stays the caller's. */
whit_status whit_map_open_fd(int fd, const char *path, const whit_allocator *allocator, whit_map *map,
                             whit_error *error);
/* Makes a map of bytes that are already in memory, not copied, under the name `path`; the bytes must outlive the
 * map. */
whit_status whit_map_open_memory(const void *data, size_t size_bytes, const char *path, const whit_allocator *allocator,
                                 whit_map *map, whit_error *error);
void whit_map_close(whit_map *map);
/* Releases the memory of a part of the map; its bytes stay readable (from the page cache, or again from disk), and the
 * process counts as smaller. Ranges outside the map are ignored. */
void whit_map_drop(const whit_map *map, const void *begin, size_t size_bytes);
/* Releases the memory of a part of a file's mapping like whit_map_drop, whatever map the part belongs to. */
void whit_map_release(const void *begin, size_t size_bytes);
/* Hints how a part of a map will be read. All of it repeatedly: the system is asked for huge pages, which stream from
 * memory a third faster and load faster from disk. A little here and there: the system is asked to keep the process
 * small. */
void whit_map_expect(const void *begin, size_t size_bytes, bool all_of_it);

/* Represents a file that takes the place of `path` when it is committed, whole or not at all: until then it has no
 * name, or a temporary one beside `path` where the file system cannot do without; a writer of the same path removes the
 * files that killed processes left. Links are followed; a device or a pipe gets the bytes at the commit; folders, block
 * devices, sockets and names that a commit could not give are refused. With path NULL it is anonymous memory (memfd),
 * never renamed. A zero-initialised writer is closed. */
typedef struct whit_writer {
    int fd; /* -1 when closed */
    bool open;
    uint64_t offset_bytes; /* offset of the next append */
    char *path, *temporary;
    bool unnamed;    /* the file has no name yet (O_TMPFILE): `temporary` does not exist */
    bool is_new;     /* never replaces another file */
    bool is_special; /* `path` is a device or a pipe, open as `special` */
    int special;
    uint8_t *pending; /* gathering: the n_pending bytes before offset_bytes, which are not yet written */
    size_t n_pending;
    const whit_allocator *allocator;
} whit_writer;

whit_status whit_writer_open(const char *path, const whit_allocator *allocator, whit_writer *writer, whit_error *error);
/* Opens a writer for a file that only its owner may read (mode 0600); the commit does not replace an existing file. */
whit_status whit_writer_open_private(const char *path, const whit_allocator *allocator, whit_writer *writer,
                                     whit_error *error);
/* From now on, appended pieces are gathered and written in large blocks that end at multiples of two megabytes, so that
 * the system keeps them in huge pages for a later map of the file. Write errors may then be reported later, at the
 * latest by whit_writer_commit. */
whit_status whit_writer_gather(whit_writer *writer, whit_error *error);
whit_status whit_writer_append(whit_writer *writer, const void *data, size_t size_bytes, whit_error *error);
whit_status whit_writer_at(whit_writer *writer, uint64_t offset_bytes, const void *data, size_t size_bytes,
                           whit_error *error);
/* Flushes the file to disk (fsync), renames it, flushes its folder, and closes it. Memory files stay open: take
 * writer->fd, then discard. */
whit_status whit_writer_commit(whit_writer *writer, whit_error *error);
void whit_writer_discard(whit_writer *writer);
/* Finds the names for a file that is made in several steps, each of which needs its name: `resolved` is `path` with
 * links resolved, `beside` is a temporary name in the same folder, as writers use. Both have PATH_MAX bytes. Refuses an
 * existing file that is not a regular one. */
whit_status whit_writer_beside(const char *path, char *resolved, char *beside, whit_error *error);
/* Renames the finished file to `resolved`, replacing an existing one; flushes the folder. */
whit_status whit_writer_put_in_place(const char *beside, const char *resolved, whit_error *error);
/* Removes from `folder` the temporary files of `name` (NULL: of any) that no writer holds any more. */
void whit_writer_clean(const char *folder, const char *name);

/* Reads a whole small file into `buf` (at most limit_bytes). A pipe is waited for, ten seconds in all. */
whit_status whit_read_file(const char *path, size_t limit_bytes, whit_buf *buf, whit_error *error);

/* Writes everything to an open file, pipe or terminal, which blocks; false with errno set. */
bool whit_write_all(int fd, const void *data, size_t size_bytes);

/* Copies the metadata of one open file to another: owner, group, extended attributes with access lists, and the mode.
 * The result is false if some of it cannot be kept: then the old file must be written in place. */
bool whit_copy_metadata(int from, int to);
/* Overwrites a regular file in place, which keeps its hard links and attributes. Free disk space is checked first; a
 * crash leaves a mixture of old and new content, so the caller keeps a copy. The file is flushed to disk. */
whit_status whit_write_over(const char *path, const void *data, size_t size_bytes, whit_error *error);

/* Writes `data` to `path` atomically. */
whit_status whit_write_file(const char *path, const void *data, size_t size_bytes, whit_error *error);

#endif
