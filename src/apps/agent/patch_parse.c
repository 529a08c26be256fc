/* SPDX-License-Identifier: MIT
 * Parses three notations of patches into one form: lines to keep, to remove and to add. */
#include "agent/patch.h"
#include "base/items.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_LINES ((size_t)1 << 20)

typedef struct reader {
    const char *text;
    size_t n_bytes, at;
    uint32_t number; /* number of the line read last, from 1 */
    whit_patch *patch;
    whit_error *error;
} reader;

static bool next_line(reader *r, const char **line, size_t *n)
{
    if (r->at >= r->n_bytes) return false;
    const char *start = r->text + r->at, *end = memchr(start, '\n', r->n_bytes - r->at);
    *line = start;
    *n = end ? (size_t)(end - start) : r->n_bytes - r->at;
    r->at += *n + (end != NULL);
    if (*n && start[*n - 1] == '\r') --*n;
    r->number++;
    return true;
}

static void unread(reader *r, const char *line)
{
    r->at = (size_t)(line - r->text);
    r->number--;
}

static bool begins(const char *line, size_t n, const char *with)
{
    return n >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

static whit_status bad(const reader *r, const char *reason)
{
    return whit_fail(r->error, WHIT_ERROR_FORMAT, "line %u of the patch: %s", r->number, reason);
}

static whit_status add_line(reader *r, char kind, const char *text, size_t n)
{
    whit_patch_line line = {kind, text, n};
    if (r->patch->lines.size_bytes / sizeof line >= MAX_LINES)
        return whit_fail(r->error, WHIT_ERROR_LIMIT, "the patch has more than %zu lines, the limit: split it",
                         MAX_LINES);
    if (!whit_buf_append(&r->patch->lines, &line, sizeof line)) return whit_fail_memory(r->error, "a patch", n);
    return WHIT_OK;
}

static size_t n_lines(const reader *r)
{
    return r->patch->lines.size_bytes / sizeof(whit_patch_line);
}

static whit_patch_line *line_at(const reader *r, size_t i)
{
    return WHIT_ITEMS(whit_patch_line, &r->patch->lines) + i;
}

/* Decodes a name that git has quoted: C escapes, and bytes as three octal digits. Returns false if the name is
 * malformed. `out` must have space for n bytes. */
static bool unescape(const char *text, size_t n, char *out, size_t *n_out)
{
    static const char letters[] = "abfnrtv\\\"", meant[] = "\a\b\f\n\r\t\v\\\"";
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '"') return false;
        if (c == '\\') {
            if (++i == n || !text[i]) return false;
            const char *letter = strchr(letters, text[i]);
            if (letter) {
                c = meant[letter - letters];
            } else {
                unsigned value = 0;
                if (n - i < 3 || text[i] > '3') return false;
                for (size_t k = 0; k < 3; k++) {
                    if (text[i + k] < '0' || text[i + k] > '7') return false;
                    value = value * 8 + (unsigned)(text[i + k] - '0');
                }
                if (!value) return false; /* a file name cannot contain a zero byte */
                c = (char)value;
                i += 2;
            }
        }
        out[(*n_out)++] = c;
    }
    return true;
}

/* Returns a copy of a file name in a diff's header: `a/src/x.c<tab>2026-01-01` gives src/x.c. Returns NULL for
 * /dev/null or no name. `prefixed`: removes a/ or b/, in a quoted name after the quote. A quoted name that is malformed
 * is used as it is. */
static char *path_of(const char *text, size_t n, bool prefixed)
{
    const char *tab = memchr(text, '\t', n);
    if (tab) n = (size_t)(tab - text);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\r')) n--;
    while (n && *text == ' ') text++, n--;
    char *own = NULL;
    bool quoted = n >= 2 && *text == '"' && text[n - 1] == '"';
    if (quoted || (n >= 2 && *text == '`' && text[n - 1] == '`')) text++, n -= 2;
    if (quoted && (own = malloc(n + 1))) {
        size_t n_own;
        if (unescape(text, n, own, &n_own)) text = own, n = n_own;
    }
    while (n > 2 && memcmp(text, "./", 2) == 0) text += 2, n -= 2;
    if (prefixed && n > 2 && (*text == 'a' || *text == 'b') && text[1] == '/') text += 2, n -= 2;
    bool is_nothing = !n || (n == 9 && memcmp(text, "/dev/null", 9) == 0);
    char *path = is_nothing ? NULL : strndup(text, n);
    free(own);
    return path;
}

static whit_patch_file *last_file(const reader *r)
{
    return (whit_patch_file *)(void *)(r->patch->files.data + r->patch->files.size_bytes) - 1;
}

/* Begins a file of the patch and takes ownership of `path`. If the previous file has the same path, its list of hunks
 * is continued, because models repeat the path before each block. */
static whit_status begin_file(reader *r, whit_patch_action action, char *path)
{
    whit_patch_file file = {
        .action = action, .path = path, .first = r->patch->hunks.size_bytes / sizeof(whit_patch_hunk)};
    const whit_patch_file *last = r->patch->files.size_bytes ? last_file(r) : NULL;
    if (path && last && action == WHIT_PATCH_CHANGE && last->action == WHIT_PATCH_CHANGE && last->path &&
        strcmp(last->path, path) == 0) {
        free(path);
        return WHIT_OK;
    }
    if (whit_buf_append(&r->patch->files, &file, sizeof file)) return WHIT_OK;
    free(path);
    return whit_fail_memory(r->error, "a patch", sizeof file);
}

static whit_patch_hunk *last_hunk(const reader *r)
{
    return (whit_patch_hunk *)(void *)(r->patch->hunks.data + r->patch->hunks.size_bytes) - 1;
}

static whit_status begin_hunk(reader *r, const char *anchor, size_t anchor_bytes)
{
    whit_patch_hunk hunk = {
        .first = n_lines(r), .anchor = anchor, .anchor_bytes = anchor_bytes, .source_line = r->number};
    if (!whit_buf_append(&r->patch->hunks, &hunk, sizeof hunk)) return whit_fail_memory(r->error, "a patch", 1);
    last_file(r)->n_hunks++;
    return WHIT_OK;
}

static void end_hunk(reader *r)
{
    last_hunk(r)->n_lines = n_lines(r) - last_hunk(r)->first;
}

/* ---- SEARCH/REPLACE ------------------------------------------------------------------------- */

static bool is_search(const char *line, size_t n)
{
    return begins(line, n, "<<<<<<< SEARCH") || begins(line, n, "<<<<<<<SEARCH");
}

static bool is_middle(const char *line, size_t n)
{
    return n >= 7 && n <= 8 && begins(line, n, "=======");
}

/* Turns the lines that the search and replacement texts share at their beginnings and ends into context, so that the
 * file's own spelling of them stays. */
static void keep_common(reader *r, size_t first, size_t n_old, size_t n_new)
{
    size_t n = n_old < n_new ? n_old : n_new, head = 0, tail = 0;
    if (!n) return; /* one of the texts has no lines */
    whit_patch_line *all = line_at(r, first);
    while (head < n && all[head].n_bytes == all[n_old + head].n_bytes &&
           memcmp(all[head].text, all[n_old + head].text, all[head].n_bytes) == 0)
        head++;
    while (tail < n - head) {
        const whit_patch_line *a = &all[n_old - 1 - tail], *b = &all[n_old + n_new - 1 - tail];
        if (a->n_bytes != b->n_bytes || memcmp(a->text, b->text, a->n_bytes) != 0) break;
        tail++;
    }
    for (size_t i = 0; i < head; i++) all[i].kind = ' ';
    for (size_t i = 0; i < tail; i++) all[n_old - 1 - i].kind = ' ';
    /* The order becomes: old lines up to the shared end, new lines between the shared parts, shared end. */
    whit_patch_line *kept = malloc((tail + 1) * sizeof *kept);
    if (!kept) return; /* without memory the shared lines stay as removed and added lines, which gives the same text */
    memcpy(kept, all + n_old - tail, tail * sizeof *kept);
    memmove(all + n_old - tail, all + n_old + head, (n_new - head - tail) * sizeof *all);
    memcpy(all + n_old - tail + (n_new - head - tail), kept, tail * sizeof *kept);
    free(kept);
    r->patch->lines.size_bytes -= (head + tail) * sizeof *all;
}

static whit_status parse_search(reader *r, char *path)
{
    const char *line;
    size_t n, first;
    bool found = false;
    if (!r->patch->files.size_bytes || path) {
        WHIT_TRY(begin_file(r, WHIT_PATCH_CHANGE, path));
    }
    WHIT_TRY(begin_hunk(r, NULL, 0));
    last_hunk(r)->is_block = true;
    first = n_lines(r);
    while (next_line(r, &line, &n) && !(found = is_middle(line, n))) WHIT_TRY(add_line(r, '-', line, n));
    if (!found) return bad(r, "the SEARCH block has no =======");
    size_t n_old = n_lines(r) - first;
    found = false;
    while (next_line(r, &line, &n) &&
           !(found = begins(line, n, ">>>>>>> REPLACE") || begins(line, n, ">>>>>>>REPLACE"))) {
        if (is_middle(line, n))
            return bad(
                r, "a second ======= in the block: it is not clear where SEARCH ends; use *** Begin Patch or a diff");
        WHIT_TRY(add_line(r, '+', line, n));
    }
    if (!found) return bad(r, "no >>>>>>> REPLACE ends the block");
    keep_common(r, first, n_old, n_lines(r) - first - n_old);
    end_hunk(r);
    if (n_old == 0) last_file(r)->action = WHIT_PATCH_ADD;
    return WHIT_OK;
}

/* Removes Markdown and labels from a file name in the line before a block: models write "### n.py", "**n.py**",
 * "`n.py`:" or "File: n.py". */
static void strip_name(const char **text, size_t *n)
{
    static const char *const labels[] = {"File: ", "file: ", "File name: ", "Filename: ", "filename: ", "Path: "};
    const char *at = *text, *end = at + *n;
    for (bool stripped = true; stripped && at < end;) {
        const char *from = at, *to = end;
        while (at < end && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == ':')) end--;
        while (at < end && (*at == ' ' || *at == '\t')) at++;
        const char *mark = at;
        while (mark < end && *mark == '#') mark++;
        if (mark > at && mark < end && *mark == ' ') at = mark + 1;
        while (end - at > 2 && *at == end[-1] && (*at == '*' || *at == '`')) at++, end--;
        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
            if (begins(at, (size_t)(end - at), labels[i])) at += strlen(labels[i]);
        stripped = at != from || end != to;
    }
    if (at == end) return;
    *text = at;
    *n = (size_t)(end - at);
}

static whit_status parse_blocks(reader *r)
{
    const char *line, *before = NULL;
    size_t n, n_before = 0;
    while (next_line(r, &line, &n)) {
        if (is_search(line, n)) {
            if (before) strip_name(&before, &n_before);
            WHIT_TRY(parse_search(r, before ? path_of(before, n_before, false) : NULL));
            before = NULL;
        } else if (n && !begins(line, n, "```")) {
            before = line; /* the last line before a block usually names its file */
            n_before = n;
        }
    }
    return WHIT_OK;
}

/* ---- *** Begin Patch ------------------------------------------------------------------------ */

static whit_status parse_added(reader *r)
{
    const char *line;
    size_t n;
    WHIT_TRY(begin_hunk(r, NULL, 0));
    while (next_line(r, &line, &n)) {
        if (begins(line, n, "*** ")) {
            unread(r, line);
            break;
        }
        if (!n || *line != '+') return bad(r, "each line of a new file must begin with +");
        WHIT_TRY(add_line(r, '+', line + 1, n - 1));
    }
    end_hunk(r);
    return WHIT_OK;
}

static whit_status parse_changes(reader *r)
{
    const char *line;
    size_t n;
    bool in_hunk = false;
    while (next_line(r, &line, &n)) {
        if (begins(line, n, "*** End of File")) continue;
        if (begins(line, n, "*** Move to: ")) {
            free(last_file(r)->move_to);
            last_file(r)->move_to = path_of(line + 13, n - 13, false);
            continue;
        }
        if (begins(line, n, "*** ")) {
            unread(r, line);
            break;
        }
        if (begins(line, n, "@@")) {
            if (in_hunk) end_hunk(r);
            size_t skip = n > 2 && line[2] == ' ' ? 3 : 2;
            size_t rest = n > skip ? n - skip : 0;
            WHIT_TRY(begin_hunk(r, rest ? line + skip : NULL, rest));
            in_hunk = true;
            continue;
        }
        if (!in_hunk) WHIT_TRY(begin_hunk(r, NULL, 0));
        in_hunk = true;
        if (!n)
            WHIT_TRY(add_line(r, ' ', line, 0)); /* an empty line is a context line whose space was lost */
        else if (*line == ' ' || *line == '-' || *line == '+')
            WHIT_TRY(add_line(r, *line, line + 1, n - 1));
        else
            return bad(r, "each line of a hunk must begin with a space, - or +");
    }
    if (in_hunk) end_hunk(r);
    return WHIT_OK;
}

static whit_status parse_envelope(reader *r)
{
    static const char add[] = "*** Add File: ", change[] = "*** Update File: ", delete[] = "*** Delete File: ";
    const char *line;
    size_t n;
    while (next_line(r, &line, &n)) {
        if (begins(line, n, "*** End Patch")) return WHIT_OK;
        bool adds = begins(line, n, add), changes = begins(line, n, change), deletes = begins(line, n, delete);
        if (!adds && !changes && !deletes) {
            if (n) return bad(r, "expected a file (*** Add, Update or Delete File: PATH) or *** End Patch");
            continue;
        }
        size_t skip;
        if (adds)
            skip = sizeof add - 1;
        else if (changes)
            skip = sizeof change - 1;
        else
            skip = sizeof delete - 1;
        char *path = path_of(line + skip, n - skip, false);
        if (!path) return bad(r, "this line names no file");
        whit_patch_action action = WHIT_PATCH_CHANGE;
        if (adds)
            action = WHIT_PATCH_ADD;
        else if (deletes)
            action = WHIT_PATCH_DELETE;
        WHIT_TRY(begin_file(r, action, path));
        if (adds) WHIT_TRY(parse_added(r));
        if (changes) WHIT_TRY(parse_changes(r));
    }
    return bad(r, "*** End Patch is missing: the patch is truncated");
}

/* ---- unified diffs -------------------------------------------------------------------------- */

/* Reads the line counts of both sides from a line such as "@@ -1,4 +1,5 @@". A missing count is 1. */
static bool read_counts(const char *line, size_t n, long *n_old, long *n_new)
{
    char text[128];
    long a, b;
    snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), line);
    *n_old = *n_new = 1;
    if (sscanf(text, "@@ -%ld,%ld +%ld,%ld @@", &a, n_old, &b, n_new) == 4) return true;
    *n_old = *n_new = 1;
    if (sscanf(text, "@@ -%ld +%ld,%ld @@", &a, &b, n_new) == 3) return true;
    *n_new = 1;
    if (sscanf(text, "@@ -%ld,%ld +%ld @@", &a, n_old, &b) == 3) return true;
    *n_old = 1;
    return sscanf(text, "@@ -%ld +%ld @@", &a, &b) == 2;
}

/* Returns whether this line and the next are the "---" and "+++" lines of another file's diff. */
static bool is_file_head(const reader *r, const char *line, size_t n)
{
    const char *next = r->text + r->at;
    return begins(line, n, "--- ") && begins(next, r->n_bytes - r->at, "+++ ");
}

/* Returns whether a header line of a git diff describes a change that is not a change of lines. Such a diff is refused,
 * since the change would be lost unnoticed. */
static bool is_beyond_lines(const char *line, size_t n)
{
    static const char *const heads[] = {"rename from ", "rename to ", "copy from ", "copy to ", "old mode ",
                                        "new mode ", "GIT binary patch", "Binary files ",
                                        /* modes of links and submodules; the mode of an ordinary new file is ignored */
                                        "new file mode 12", "new file mode 16"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (begins(line, n, heads[i])) return true;
    return false;
}

/* Returns whether the line is the "-- " that git format-patch writes before the version at the end of a patch. */
static bool is_signature(const char *line, size_t n)
{
    return n == 3 && memcmp(line, "-- ", 3) == 0;
}

/* Parses a hunk of a diff. Models miscount lines, so the hunk ends where another part of the patch begins, not where
 * its counts end. */
static whit_status parse_diff_hunk(reader *r, long n_old, long n_new)
{
    const char *line;
    size_t n;
    char last = 0;
    WHIT_TRY(begin_hunk(r, NULL, 0));
    while (next_line(r, &line, &n)) {
        if (n && *line == '\\') {
            if (last == '-')
                last_hunk(r)->final_newline = true;
            else
                last_hunk(r)->no_final_newline = true;
            continue;
        }
        bool counted = n_old > 0 || n_new > 0;
        bool other = begins(line, n, "@@ ") || begins(line, n, "diff ") || begins(line, n, "index ") ||
            is_file_head(r, line, n) || (!counted && is_signature(line, n));
        char kind = n ? *line : ' ';
        if (other || !kind || !strchr(" -+", kind) || (!n && !counted)) {
            unread(r, line);
            break;
        }
        size_t n_mark = n > 0;
        WHIT_TRY(add_line(r, kind, line + n_mark, n - n_mark));
        if (kind != '+') n_old--;
        if (kind != '-') n_new--;
        last = kind;
    }
    end_hunk(r);
    return WHIT_OK;
}

/* Returns whether a line is an added or removed line outside all hunks. Such a patch is refused, since skipping the
 * line would apply only a part of it. */
static bool is_of_no_hunk(const char *line, size_t n)
{
    return n && strchr("+-", *line) && *line && !is_signature(line, n);
}

static whit_status parse_diff(reader *r)
{
    const char *line;
    size_t n;
    char *from = NULL;
    /* is_bare: the header of a new or deleted file was read, but none of its lines yet */
    bool from_nothing = false, in_file = false, is_bare = false;
    whit_status status = WHIT_OK;
    while (status == WHIT_OK && next_line(r, &line, &n)) {
        long n_old, n_new;
        if (begins(line, n, "--- ")) {
            free(from);
            from = path_of(line + 4, n - 4, true);
            from_nothing = !from;
            in_file = is_bare = false;
        } else if (is_bare && begins(line, n, "diff ")) {
            break;
        } else if (is_beyond_lines(line, n)) {
            status = bad(r, "renames, modes, links and binary files of a diff are not applied");
        } else if (begins(line, n, "new file mode ") || begins(line, n, "deleted file mode ")) {
            is_bare = true;
        } else if (begins(line, n, "+++ ")) {
            char *to = path_of(line + 4, n - 4, true);
            if (!to && !from) {
                status = bad(r, "neither side of the diff names a file");
                break;
            }
            whit_patch_action action = WHIT_PATCH_CHANGE;
            if (!to)
                action = WHIT_PATCH_DELETE;
            else if (from_nothing)
                action = WHIT_PATCH_ADD;
            status = begin_file(r, action, action == WHIT_PATCH_DELETE ? from : to);
            if (action == WHIT_PATCH_DELETE) from = NULL;
            in_file = status == WHIT_OK;
        } else if (begins(line, n, "@@ ") || (n == 2 && begins(line, n, "@@"))) {
            if (!in_file) status = begin_file(r, WHIT_PATCH_CHANGE, NULL);
            in_file = true;
            if (!read_counts(line, n, &n_old, &n_new)) n_old = n_new = 0;
            if (status == WHIT_OK) status = parse_diff_hunk(r, n_old, n_new);
        } else if (is_signature(line, n) || begins(line, n, "diff ")) {
            in_file = false; /* the next patch of a series of mails, or the next file, begins */
        } else if (in_file && is_of_no_hunk(line, n)) {
            status = bad(
                r, "a changed line follows a line that ends the hunk: each line of context must begin with a space");
        }
    }
    free(from);
    if (status == WHIT_OK && is_bare)
        status = bad(r, "a diff cannot create or delete an empty file: use *** Add File or *** Delete File");
    return status;
}

/* ---- a patch in any of the forms ------------------------------------------------------------ */

whit_status whit_patch_parse(const char *text, size_t n_bytes, whit_patch *patch, whit_error *error)
{
    reader r = {.text = text, .n_bytes = n_bytes, .patch = patch, .error = error};
    const char *line;
    size_t n;
    whit_status status = WHIT_OK;
    bool known = false;
    /* skip the patch's own byte order mark, which would hide its first header */
    if (begins(text, n_bytes, WHIT_PATCH_MARK)) {
        r.text += strlen(WHIT_PATCH_MARK);
        r.n_bytes -= strlen(WHIT_PATCH_MARK);
    }
    while (!known && next_line(&r, &line, &n)) {
        if (begins(line, n, "*** Begin Patch")) {
            known = true;
            status = parse_envelope(&r);
        } else if (is_search(line, n)) {
            known = true;
            r.at = r.number = 0;
            status = parse_blocks(&r);
        } else if (begins(line, n, "--- ") || begins(line, n, "@@ ") || begins(line, n, "diff ")) {
            known = true;
            unread(&r, line);
            status = parse_diff(&r);
        }
    }
    if (status == WHIT_OK && known && !whit_patch_n_files(patch))
        status = whit_fail(error, WHIT_ERROR_FORMAT, "the patch changes no file");
    if (status == WHIT_OK && !known)
        status =
            whit_fail(error, WHIT_ERROR_FORMAT,
                      "this is not a patch: neither SEARCH/REPLACE blocks, nor *** Begin Patch, nor a unified diff");
    if (status != WHIT_OK) whit_patch_free(patch);
    return status;
}

void whit_patch_free(whit_patch *patch)
{
    for (size_t i = 0; i < whit_patch_n_files(patch); i++) {
        whit_patch_file *file = WHIT_ITEMS(whit_patch_file, &patch->files) + i;
        free(file->path);
        free(file->move_to);
    }
    whit_buf_free(&patch->lines);
    whit_buf_free(&patch->hunks);
    whit_buf_free(&patch->files);
}

size_t whit_patch_n_files(const whit_patch *patch)
{
    return patch->files.size_bytes / sizeof(whit_patch_file);
}

const whit_patch_file *whit_patch_file_at(const whit_patch *patch, size_t i)
{
    return WHIT_ITEMS(const whit_patch_file, &patch->files) + i;
}
