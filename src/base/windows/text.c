/* SPDX-License-Identifier: MIT
 * Implements functions of glibc on strings and arrays that mingw-w64 lacks. */
#include "posix.h"

#include <ctype.h>

void *memmem(const void *text, size_t n_text, const void *part, size_t n_part)
{
    const char *at = text, *wanted = part;
    if (!n_part) return (void *)(uintptr_t)text;
    for (size_t left = n_text; left >= n_part;) {
        const char *first = memchr(at, *wanted, left - n_part + 1);
        if (!first) return NULL;
        if (!memcmp(first, wanted, n_part)) return (void *)(uintptr_t)first;
        left -= (size_t)(first + 1 - at);
        at = first + 1;
    }
    return NULL;
}

void *memrchr(const void *text, int byte, size_t n)
{
    const unsigned char *bytes = text;
    while (n--)
        if (bytes[n] == (unsigned char)byte) return (void *)(uintptr_t)(bytes + n);
    return NULL;
}

char *stpcpy(char *to, const char *from)
{
    size_t n = strlen(from);
    memcpy(to, from, n + 1);
    return to + n;
}

char *strndup(const char *text, size_t n)
{
    size_t length = strnlen(text, n);
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

char *strchrnul(const char *text, int byte)
{
    const char *at = strchr(text, byte);
    return (char *)(uintptr_t)(at ? at : text + strlen(text));
}

char *strcasestr(const char *text, const char *part)
{
    size_t n = strlen(part);
    for (;; text++) {
        if (!_strnicmp(text, part, n)) return (char *)(uintptr_t)text;
        if (!*text) return NULL;
    }
}

/* ---- sorting -------------------------------------------------------------------------------- */

typedef struct sorting {
    size_t item_bytes;
    whit_posix_order *order;
    void *context;
} sorting;

/* Merge sort of n items; `spare` has room for n / 2 items. */
static void merge_sort(const sorting *by, char *items, size_t n, char *spare)
{
    size_t size = by->item_bytes, n_left = n / 2;
    if (n < 2) return;
    merge_sort(by, items, n_left, spare);
    merge_sort(by, items + n_left * size, n - n_left, spare);
    memcpy(spare, items, n_left * size);
    char *left = spare, *left_end = spare + n_left * size;
    char *right = items + n_left * size, *right_end = items + n * size, *to = items;
    while (left < left_end && right < right_end) {
        char **from = by->order(left, right, by->context) <= 0 ? &left : &right;
        memcpy(to, *from, size);
        to += size;
        *from += size;
    }
    memcpy(to, left, (size_t)(left_end - left));
}

void qsort_r(void *items, size_t n, size_t item_bytes, whit_posix_order *order, void *context)
{
    enum { LOCAL_BYTES = 1024 };
    char local[LOCAL_BYTES], *spare = local;
    sorting by = {item_bytes, order, context};
    if (n < 2 || !item_bytes) return;
    if (n / 2 > LOCAL_BYTES / item_bytes) spare = malloc((n / 2) * item_bytes);
    if (spare) {
        merge_sort(&by, items, n, spare);
        if (spare != local) free(spare);
        return;
    }
    /* Without memory for merging, insertion sort gives the same order, slowly. */
    for (size_t i = 1; i < n; i++)
        for (char *at = (char *)items + i * item_bytes; at > (char *)items && order(at - item_bytes, at, context) > 0;
             at -= item_bytes)
            for (size_t k = 0; k < item_bytes; k++) {
                char kept = at[k];
                at[k] = at[(ptrdiff_t)k - (ptrdiff_t)item_bytes];
                at[(ptrdiff_t)k - (ptrdiff_t)item_bytes] = kept;
            }
}

typedef struct plain_order {
    int (*order)(const void *, const void *);
} plain_order;

static int without_context(const void *a, const void *b, void *context)
{
    return ((const plain_order *)context)->order(a, b);
}

void whit_posix_qsort(void *items, size_t n, size_t item_bytes, int (*order)(const void *, const void *))
{
    plain_order plain = {order};
    qsort_r(items, n, item_bytes, without_context, &plain);
}

/* ---- patterns of names ---------------------------------------------------------------------- */

static bool same_letter(char a, char b, int flags)
{
    if (flags & FNM_CASEFOLD) return tolower((unsigned char)a) == tolower((unsigned char)b);
    return a == b;
}

/* Returns whether a set "[...]" contains `letter`. *pattern points after the set's "[" on entry, and after its "]" on
 * return. */
static bool in_set(const char **pattern, char letter)
{
    const char *at = *pattern;
    bool negated = *at == '!' || *at == '^', found = false;
    if (negated) at++;
    for (bool first = true; *at && (first || *at != ']'); first = false) {
        unsigned char low = (unsigned char)*at++, high = low;
        if (at[0] == '-' && at[1] && at[1] != ']') {
            high = (unsigned char)at[1];
            at += 2;
        }
        found |= low <= (unsigned char)letter && (unsigned char)letter <= high;
    }
    *pattern = *at ? at + 1 : at;
    return found != negated;
}

int fnmatch(const char *pattern, const char *name, int flags)
{
    /* On a mismatch only the last "*" is extended, because it can match anything that an earlier "*" could. */
    const char *star = NULL, *star_name = NULL;
    while (*name || *pattern) {
        const char *next = pattern;
        bool is_folder_end = *name == '/' && flags & FNM_PATHNAME, matches = false;
        if (*pattern == '*') {
            star = ++pattern;
            star_name = name;
            continue;
        }
        if (*name && *pattern == '?') {
            matches = !is_folder_end;
            next++;
        } else if (*name && *pattern == '[') {
            next++;
            matches = in_set(&next, *name) && !is_folder_end;
        } else if (*name && *pattern) {
            if (*pattern == '\\' && pattern[1]) next++;
            matches = same_letter(*next, *name, flags);
            next++;
        }
        if (matches) {
            pattern = next;
            name++;
            continue;
        }
        if (!star || !*star_name || (*star_name == '/' && flags & FNM_PATHNAME)) return FNM_NOMATCH;
        pattern = star;
        name = ++star_name;
    }
    return 0;
}
