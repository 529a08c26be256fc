/* SPDX-License-Identifier: MIT
 * Reads JSON strictly into one flat array of nodes, and escapes strings for writers.
 *
 * Reading is iterative (depth is bounded, no recursion), takes time and memory in proportion to the text, and accepts
 * what model files contain in practice: U+0000 in strings, integers of up to 1,024 characters, and Python's NaN,
 * Infinity and -Infinity. A document refers to its text, which must outlive it.
 *
 * A node is an index; the root is 0. Every function accepts WHIT_JSON_NONE and nodes of any type; for a node of the
 * wrong type it returns its value for "missing", so that lookups can be chained without checks:
 *     whit_json_string(&json, whit_json_get(&json, whit_json_get(&json, 0, "model"), "type"), &n)
 * Iteration: for (at = whit_json_first(j, c); at != WHIT_JSON_NONE; at = whit_json_next(j, c, at)); in an object `at`
 * is the key, and at + 1 its value. */
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
    uint32_t start, end; /* byte range [start, end) in the text; for a string with escapes, in `strings` */
    uint32_t next;       /* index of the first node after this node's subtree */
    uint8_t type;
    bool escaped;
} whit_json_node;

typedef struct whit_json {
    const char *name; /* name for messages; the string belongs to the caller */
    const char *text;
    size_t text_bytes;
    whit_buf nodes;   /* array of whit_json_node */
    whit_buf strings; /* decoded strings that had escapes */
} whit_json;

/* Parses the whole text, which has less than 4 GiB. Error messages have the form "name:line:column: problem". On
 * failure `json` is closed. */
whit_status whit_json_parse(const char *name, const char *text, size_t text_bytes, const whit_allocator *allocator,
                            whit_json *json, whit_error *error);
void whit_json_close(whit_json *json);

whit_json_type whit_json_type_of(const whit_json *json, uint32_t at);
/* Returns the node of a key's value, WHIT_JSON_NONE if there is no such key; if the key occurs several times, the last
 * value, as in Python and Rust. */
uint32_t whit_json_get(const whit_json *json, uint32_t object, const char *key);
uint32_t whit_json_first(const whit_json *json, uint32_t container);
uint32_t whit_json_next(const whit_json *json, uint32_t container, uint32_t at);
/* Returns the number of elements of an array, or of pairs of an object, in linear time. */
size_t whit_json_count(const whit_json *json, uint32_t container);

/* Returns the bytes of a string: UTF-8, possibly with zero bytes, not terminated, valid until the document is closed.
 * NULL and 0 bytes if the node is not a string. */
const char *whit_json_string(const whit_json *json, uint32_t at, size_t *n_bytes);
/* Returns the source text of a node, without the quotes of a string; NULL and 0 bytes if the node is missing or a
 * string with escapes. */
const char *whit_json_raw(const whit_json *json, uint32_t at, size_t *n_bytes);
/* Returns whether the node is the string `text`. */
bool whit_json_is(const whit_json *json, uint32_t at, const char *text);
bool whit_json_bool(const whit_json *json, uint32_t at, bool fallback);
/* Sets *value if the node is a number written as an integer that fits int64_t; false otherwise. */
bool whit_json_i64(const whit_json *json, uint32_t at, int64_t *value);
/* Sets *value to the node's number, correctly rounded in every locale; false if the node is not a finite number. */
bool whit_json_f64(const whit_json *json, uint32_t at, double *value);
/* Sets *value to the decimal number that is the whole text `number` ("-2.5e3", also "+1", "1." and ".5"), correctly
 * rounded in every locale; false if the text is anything else, such as " 1", "0x1p3", "inf" and "nan", or if the number
 * is too large for a double. */
bool whit_parse_f64(const char *number, double *value);

/* Writes the error "name:line:column: ..." with the position of a node (of a node before it, if it is a string with
 * escapes; "name: ..." if the node is missing), and returns WHIT_ERROR_FORMAT. */
whit_status whit_json_fail(const whit_json *json, uint32_t at, whit_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Appends `text` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. The result is false if memory runs
 * out. */
bool whit_json_write_string(whit_buf *out, const char *text, size_t text_bytes);

#endif
