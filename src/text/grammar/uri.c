/* SPDX-License-Identifier: MIT
 * Resolves URI references. */
#include "grammar/uri.h"
#include "base/items.h"

typedef struct span {
    const char *text;
    size_t n;
} span;

/* The parts of a URI. `scheme` and `authority` include ":" and "//", `query` includes "?". */
typedef struct parts {
    span scheme, authority, path, query;
} parts;

static size_t until(const char *text, size_t n, const char *ends)
{
    size_t i = 0;
    while (i < n && !strchr(ends, text[i])) i++;
    return i;
}

static parts split_uri(const char *text, size_t n)
{
    parts p = {0};
    size_t i = 0;
    for (size_t k = 0; k < n; k++) /* cut off the fragment, and everything after a zero byte */
        if (text[k] == '#' || text[k] == 0) n = k;
    i = until(text, n, ":/?");
    if (i && i < n && text[i] == ':') {
        p.scheme = (span){text, i + 1};
        text += i + 1;
        n -= i + 1;
    }
    if (n >= 2 && text[0] == '/' && text[1] == '/') {
        i = 2 + until(text + 2, n - 2, "/?");
        p.authority = (span){text, i};
        text += i;
        n -= i;
    }
    i = until(text, n, "?");
    p.path = (span){text, i};
    p.query = (span){text + i, n - i};
    return p;
}

/* Appends a path without its "." and ".." segments. `from` is the position in `out` at which the path begins. */
static void append_path(whit_buf *out, size_t from, const char *path, size_t n)
{
    for (size_t at = 0; at < n && !out->failed;) {
        size_t slash = path[at] == '/', end = at + slash;
        while (end < n && path[end] != '/') end++;
        const char *segment = path + at + slash;
        size_t length = end - at - slash;
        bool dot = length == 1 && segment[0] == '.', dots = length == 2 && segment[0] == '.' && segment[1] == '.';
        if (dots) {
            while (out->size_bytes > from && out->data[out->size_bytes - 1] != '/') out->size_bytes--;
            if (out->size_bytes > from) out->size_bytes--;
        }
        if (!dot && !dots)
            whit_buf_append(out, path + at, end - at);
        else if (end == n)
            whit_buf_append_str(out, "/");
        at = end;
    }
}

void whit_uri_resolve(const char *base, size_t n_base, const char *reference, size_t n_reference, whit_buf *out)
{
    parts b = split_uri(base, n_base), r = split_uri(reference, n_reference);
    bool has_scheme = r.scheme.n, has_authority = has_scheme || r.authority.n;
    span scheme = has_scheme ? r.scheme : b.scheme;
    span authority = has_authority ? r.authority : b.authority;
    if (scheme.n) whit_buf_append(out, scheme.text, scheme.n);
    if (authority.n) whit_buf_append(out, authority.text, authority.n);
    size_t from = out->size_bytes;
    span query = r.query;
    if (has_authority || (r.path.n && r.path.text[0] == '/')) {
        append_path(out, from, r.path.text, r.path.n);
    } else if (r.path.n == 0) {
        if (b.path.n) whit_buf_append(out, b.path.text, b.path.n);
        if (!query.n) query = b.query;
    } else {
        size_t folder = b.path.n;
        while (folder && b.path.text[folder - 1] != '/') folder--;
        whit_buf merged = {.allocator = out->allocator};
        if (folder == 0 && b.authority.n) whit_buf_append_str(&merged, "/");
        if (folder) whit_buf_append(&merged, b.path.text, folder);
        whit_buf_append(&merged, r.path.text, r.path.n);
        if (merged.failed)
            out->failed = true;
        else
            append_path(out, from, whit_chars(&merged), merged.size_bytes);
        whit_buf_free(&merged);
    }
    if (query.n) whit_buf_append(out, query.text, query.n);
}
