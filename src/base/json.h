/* SPDX-License-Identifier: MIT
 * Reads JSON strictly into one flat array of nodes, and escapes strings for writers.
 *
 * Reading is iterative (depth is bounded, no recursion), takes time and memory in proportion to
 * the text, and accepts what real model files hold: U+0000 in strings, integers of any length,
 * and Python's NaN, Infinity and -Infinity. A document refers to its text, which must outlive it.
 *
 * A node is an index; the root is 0. Every function accepts WHIT_JSON_NONE and nodes of any type
 * and then says "missing", so that lookups can be chained without checks:
 *     whit_json_string(&json, whit_json_get(&json, whit_json_get(&json, 0, "model"), "type"), &n)
 * Iteration: for (at = whit_json_first(j, c); at != WHIT_JSON_NONE; at = whit_json_next(j, c, at));
 * in an object `at` is the key, and at + 1 its value. */
#ifndef WHIT_BASE_JSON_H
#define WHIT_BASE_JSON_H

#include "base/mem.h"

#define WHIT_JSON_ROOT      0u
#define WHIT_JSON_NONE      UINT32_MAX
#define WHIT_JSON_MAX_DEPTH 256

typedef enum whit_json_type {
    WHIT_JSON_MISSING = 0, /* the type of WHIT_JSON_NONE */
    WHIT_JSON_NULL,
    WHIT_JSON_BOOL,
    WHIT_JSON_NUMBER,
    WHIT_JSON_STRING,
    WHIT_JSON_ARRAY,
    WHIT_JSON_OBJECT,
} whit_json_type;

typedef struct whit_json_node {
    uint32_t start, end; /* bytes of the text; of a string with escapes, of `strings` */
    uint32_t next;       /* the node after this node's subtree */
    uint8_t type;
    bool escaped;
} whit_json_node;

typedef struct whit_json {
    const char *name; /* for messages; the caller's */
    const char *text;
    size_t text_bytes;
    whit_buf nodes;   /* whit_json_node[] */
    whit_buf strings; /* decoded strings that had escapes */
} whit_json;

/* Reads the whole text (at most 4 GiB). Errors say "name:line:column: what". On failure the
 * document is closed. */
whit_status whit_json_parse(const char *name, const char *text, size_t text_bytes, const whit_allocator *allocator,
                            whit_json *json, whit_error *error);
void whit_json_close(whit_json *json);

whit_json_type whit_json_type_of(const whit_json *json, uint32_t at);
/* Returns the value of a key; if the key occurs several times, the last one, as in Python and Rust. */
uint32_t whit_json_get(const whit_json *json, uint32_t object, const char *key);
uint32_t whit_json_first(const whit_json *json, uint32_t container);
uint32_t whit_json_next(const whit_json *json, uint32_t container, uint32_t at);
/* Returns the number of elements of an array, or of pairs of an object, in linear time. */
size_t whit_json_count(const whit_json *json, uint32_t container);

/* Returns the bytes of a string (UTF-8, may hold zeros, not terminated), in place until close; NULL and 0 where the
 * node is no string. */
const char *whit_json_string(const whit_json *json, uint32_t at, size_t *n_bytes);
/* Returns the source text of a node, without the quotes of a string; NULL and 0 if it is missing or a string with
 * escapes. */
const char *whit_json_raw(const whit_json *json, uint32_t at, size_t *n_bytes);
/* Returns whether the node is this string. */
bool whit_json_is(const whit_json *json, uint32_t at, const char *text);
bool whit_json_bool(const whit_json *json, uint32_t at, bool fallback);
/* Returns true if the node is a number written as an integer that fits. */
bool whit_json_i64(const whit_json *json, uint32_t at, int64_t *value);
/* Returns true if the node is a finite number, which is rounded correctly, whatever the locale. */
bool whit_json_f64(const whit_json *json, uint32_t at, double *value);
/* Parses a text that consists of one finite number only, correctly rounded, whatever the locale. */
bool whit_parse_f64(const char *number, double *value);

/* Reports a failure at a node: "name:line:column: ..." (format error). Returns WHIT_ERROR_FORMAT. */
whit_status whit_json_fail(const whit_json *json, uint32_t at, whit_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Appends `text` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
bool whit_json_write_string(whit_buf *out, const char *text, size_t text_bytes);

#endif
