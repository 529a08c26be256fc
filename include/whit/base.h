/* SPDX-License-Identifier: MIT
 * Declares versions, status and errors, allocators and progress functions, which every other header of whit needs.
 *
 * Structs grow. A struct whose first member is `struct_bytes` is filled by its _default() function, which is inline in
 * the header and writes the size that the program was compiled with. Newer libraries append members; their defaults
 * change nothing for programs that do not know them. The library refuses (WHIT_ERROR_ARGUMENT) a struct in which a
 * member is set that the library does not know, and a struct that no _default() function has filled. Arrays of structs
 * are passed with the size of one element (the functions _strided; inline functions pass it). All other structs never
 * change. */
#ifndef WHIT_BASE_H
#define WHIT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WHIT_VERSION_MAJOR  0
#define WHIT_VERSION_MINOR  1
#define WHIT_VERSION_PATCH  0
#define WHIT_VERSION_NUMBER (WHIT_VERSION_MAJOR * 10000 + WHIT_VERSION_MINOR * 100 + WHIT_VERSION_PATCH)

#if defined(__GNUC__)
#define WHIT_API __attribute__((visibility("default")))
/* Callers must use the result: it is a status, or memory that the caller must release. */
#define WHIT_CHECKED __attribute__((warn_unused_result))
#else
#define WHIT_API
#define WHIT_CHECKED
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum whit_status {
    WHIT_OK = 0,
    WHIT_ERROR_ARGUMENT,    /* an argument is invalid, or the call is not allowed now */
    WHIT_ERROR_MEMORY,      /* an allocation failed, or a limit of memory that was set is exceeded */
    WHIT_ERROR_IO,          /* the operating system refused a file or a read */
    WHIT_ERROR_FORMAT,      /* a file is damaged, cut short, or not of the format that it claims */
    WHIT_ERROR_UNSUPPORTED, /* the request or the file is valid, but this build does not support it */
    WHIT_ERROR_LIMIT,       /* the context is full, or a length or another bound is exceeded */
    WHIT_ERROR_CANCELLED,   /* a cancel flag or a callback asked to stop */
    WHIT_ERROR_NUMERIC,     /* logits or vectors are not finite */
} whit_status;

typedef struct whit_error {
    whit_status status;
    char message[504]; /* one line: the file, the place in it, the reason and what to do; always terminated */
} whit_error;

/* Returns the version of the library at run time, "0.1.0"; the macros above are the version of the header at compile
 * time. */
WHIT_API const char *whit_version(void);
WHIT_API const char *whit_status_name(whit_status status);

/* The library takes memory from an allocator if one is given, else from malloc; NULL members stand for malloc and free.
 * `alloc` returns memory aligned to `align_bytes` (a power of two) or NULL; any thread may call it. */
typedef struct whit_allocator {
    void *(*alloc)(void *user, size_t size_bytes, size_t align_bytes);
    void (*free)(void *user, void *memory, size_t size_bytes);
    void *user;
} whit_allocator;

/* Long operations call a function of this type repeatedly with the completed share of the work, in [0, 1]; `what` names
 * the work. The function returns false to cancel. */
typedef bool whit_progress_fn(void *user, const char *what, double share);

#ifdef __cplusplus
}
#endif
#endif
