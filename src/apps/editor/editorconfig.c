/* SPDX-License-Identifier: MIT */
#include "editor/editorconfig.h"

#include "base/file.h"
#include "base/items.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define FILE_BYTES (1u << 20)
/* maximum size of a glob, with its zero byte (EditorConfig requires 1024 characters); a longer glob matches nothing */
#define GLOB_BYTES 1025
#define GLOB_DEPTH 64
#define GLOB_STEPS 100000u
/* maximum number of matching steps for all globs of one file, so that a hostile file costs only a few milliseconds */
#define FILE_STEPS 1000000u
#define LEVELS_MAX 64

/* ---- globs --------------------------------------------------------------------------------- */

struct matcher {
    unsigned n_steps, most;
    int depth;
    bool has_groups; /* braces are balanced, so they form groups; otherwise they are literal characters */
};

static bool match(struct matcher *matcher, const char *glob, const char *path);

static bool braces_are_paired(const char *glob)
{
    int depth = 0;
    for (; *glob && depth >= 0; glob++) {
        if (*glob == '\\' && glob[1])
            glob++;
        else
            depth += (*glob == '{') - (*glob == '}');
    }
    return depth == 0;
}

/* Returns the brace that closes the group opened at `glob`, or NULL. *comma becomes true if the group is a list of
 * alternatives: it has a comma outside inner groups, or before the first closing brace. */
static const char *group_end(const char *glob, bool *comma)
{
    int depth = 0;
    bool closed = false;
    *comma = false;
    for (const char *at = glob; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '{')
            depth++;
        else if (*at == ',' && (depth == 1 || !closed))
            *comma = true;
        else if (*at == '}' && (closed = true, --depth == 0))
            return at;
    }
    return NULL;
}

static bool number_range(const char *group, const char *end, long *low, long *high)
{
    char *behind;
    *low = strtol(group + 1, &behind, 10);
    if (behind == group + 1 || strncmp(behind, "..", 2)) return false;
    const char *second = behind + 2;
    *high = strtol(second, &behind, 10);
    return behind != second && behind == end;
}

static bool match_range(struct matcher *matcher, long low, long high, const char *rest, const char *path)
{
    /* try every prefix that reads as a number, the longest first */
    size_t n = *path == '-' || *path == '+';
    while (path[n] >= '0' && path[n] <= '9' && n < 20) n++;
    for (; n; n--) {
        char digits[24], *behind;
        snprintf(digits, sizeof digits, "%.*s", (int)n, path);
        long number = strtol(digits, &behind, 10);
        bool leading_zero = digits[0] == '0' && digits[1];
        if (*behind || behind == digits || leading_zero) continue;
        bool inside = low <= high ? number >= low && number <= high : number >= high && number <= low;
        if (inside && match(matcher, rest, path + n)) return true;
    }
    return false;
}

static bool match_group(struct matcher *matcher, const char *group, const char *end, const char *path)
{
    int depth = 0;
    const char *one = group + 1;
    for (const char *at = one; at <= end; at++) {
        if (*at == '\\' && at < end) {
            at++;
            continue;
        }
        if (*at == '{') depth++;
        bool is_end = at == end || (*at == ',' && !depth);
        if (*at == '}' && depth) depth--;
        if (!is_end) continue;
        char whole[GLOB_BYTES];
        int n = snprintf(whole, sizeof whole, "%.*s%s", (int)(at - one), one, end + 1);
        if (n >= 0 && (size_t)n < sizeof whole && match(matcher, whole, path)) return true;
        one = at + 1;
    }
    return false;
}

/* Matches a byte against the set at `glob`: "[abc]", "[a-z]" or "[!abc]". Sets *found and returns the end of the set.
 * Returns NULL if there is no valid set, so that the bracket is a literal character. */
static const char *match_set(const char *glob, uint8_t byte, bool *found)
{
    const char *at = glob + 1;
    bool negated = *at == '!';
    at += negated;
    *found = false;
    for (const char *first = at; *at && *at != '/' && (*at != ']' || at == first); at++) {
        if (*at == '\\' && at[1]) at++;
        uint8_t low = (uint8_t)*at, high = low;
        if (at[1] == '-' && at[2] && at[2] != ']') {
            high = (uint8_t)at[2];
            at += 2;
        }
        if (byte >= low && byte <= high) *found = true;
    }
    if (*at != ']') return NULL;
    *found = *found != negated;
    return at + 1;
}

static size_t char_bytes(const char *path)
{
    size_t n = 1;
    while (((uint8_t)path[n] & 0xC0) == 0x80) n++;
    return n;
}

static bool match_here(struct matcher *matcher, const char *glob, const char *path)
{
    for (; *glob; glob++) {
        if (++matcher->n_steps > matcher->most) return false;
        if (*glob == '*') {
            bool folders = glob[1] == '*';
            while (*glob == '*') glob++;
            for (;; path++) {
                if (match(matcher, glob, path)) return true;
                if (!*path || (*path == '/' && !folders) || matcher->n_steps > matcher->most) return false;
            }
        }
        if (*glob == '{' && matcher->has_groups) {
            bool comma;
            long low, high;
            const char *end = group_end(glob, &comma);
            if (end && comma) return match_group(matcher, glob, end, path);
            if (end && number_range(glob, end, &low, &high)) return match_range(matcher, low, high, end + 1, path);
        }
        /* "/", "**" and "/" in a row also match a single "/" */
        if (*glob == '/' && !strncmp(glob, "/**/", 4) && match(matcher, glob + 3, path)) return true;
        if (!*path) return false;
        bool found;
        const char *behind = *glob == '[' ? match_set(glob, (uint8_t)*path, &found) : NULL;
        if (behind) {
            if (!found || *path == '/') return false;
            glob = behind - 1;
            path++;
        } else if (*glob == '?') {
            if (*path == '/') return false;
            path += char_bytes(path);
        } else {
            if (*glob == '\\' && glob[1]) glob++;
            if (*glob != *path) return false;
            path++;
        }
    }
    return !*path;
}

static bool match(struct matcher *matcher, const char *glob, const char *path)
{
    if (++matcher->n_steps > matcher->most || matcher->depth >= GLOB_DEPTH) return false;
    matcher->depth++;
    bool is_match = match_here(matcher, glob, path);
    matcher->depth--;
    return is_match;
}

/* Returns whether a glob matches a path. Decrements *n_left by the steps used; when the steps are used up, the glob
 * does not match. */
static bool match_within(const char *glob, const char *path, unsigned *n_left)
{
    struct matcher matcher = {.most = *n_left < GLOB_STEPS ? *n_left : GLOB_STEPS,
                              .has_groups = braces_are_paired(glob)};
    bool is_match;
    if (strlen(glob) >= GLOB_BYTES) return false;
    if (!strchr(glob, '/')) { /* a glob without '/' matches in every folder */
        is_match = match(&matcher, glob, path);
        while (!is_match && (path = strchr(path, '/'))) is_match = match(&matcher, glob, ++path);
    } else {
        if (*glob == '/') glob++;
        is_match = match(&matcher, glob, path) || (!strncmp(glob, "**/", 3) && match(&matcher, glob + 3, path));
    }
    *n_left -= matcher.n_steps < *n_left ? matcher.n_steps : *n_left;
    return is_match;
}

/* ---- files --------------------------------------------------------------------------------- */

static char *trimmed(char *text)
{
    text += strspn(text, " \t\r\f\v");
    size_t n = strlen(text);
    while (n && strchr(" \t\r\f\v", text[n - 1])) text[--n] = 0;
    return text;
}

static void take_said(const char *value, whit_said *said)
{
    if (!strcasecmp(value, "unset")) *said = WHIT_UNSAID;
    if (!strcasecmp(value, "true")) *said = WHIT_YES;
    if (!strcasecmp(value, "false")) *said = WHIT_NO;
}

/* Parses a number of columns from 1 to 16. Returns 0 for "unset" and -1 for an invalid value. */
static int columns_of(const char *value)
{
    char *behind;
    if (!strcasecmp(value, "unset")) return 0;
    long number = strtol(value, &behind, 10);
    return *value && !*behind && number >= 1 && number <= 16 ? (int)number : -1;
}

static void take_setting(const char *name, const char *value, whit_editorconfig *config)
{
    int columns = columns_of(value);
    if (!strcasecmp(name, "indent_style")) {
        if (!strcasecmp(value, "tab")) config->tabs = WHIT_YES;
        if (!strcasecmp(value, "space")) config->tabs = WHIT_NO;
        if (!strcasecmp(value, "unset")) config->tabs = WHIT_UNSAID;
    } else if (!strcasecmp(name, "indent_size")) {
        if (!strcasecmp(value, "tab"))
            config->indent_columns = -1;
        else if (columns >= 0)
            config->indent_columns = columns;
    } else if (!strcasecmp(name, "tab_width")) {
        if (columns >= 0) config->tab_columns = columns;
    } else if (!strcasecmp(name, "max_line_length")) {
        long number = strtol(value, NULL, 10); /* strtol() gives 0 for "off" and "unset" */
        config->line_columns = number > 0 && number <= 10000 ? (int)number : 0;
    } else if (!strcasecmp(name, "end_of_line")) {
        if (!strcasecmp(value, "crlf")) config->carriage_return = WHIT_YES;
        if (!strcasecmp(value, "lf")) config->carriage_return = WHIT_NO;
        if (!strcasecmp(value, "unset")) config->carriage_return = WHIT_UNSAID;
    } else if (!strcasecmp(name, "trim_trailing_whitespace")) {
        take_said(value, &config->trim);
    } else if (!strcasecmp(name, "insert_final_newline")) {
        take_said(value, &config->final_newline);
    }
}

bool whit_editorconfig_apply(const char *text, size_t n_bytes, const char *path, whit_editorconfig *config)
{
    bool root = false, in_section = false, applies = false;
    unsigned n_left = FILE_STEPS;
    if (n_bytes >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) {
        text += 3;
        n_bytes -= 3;
    }
    for (size_t at = 0, n; at < n_bytes; at += n + 1) {
        const char *feed = memchr(text + at, '\n', n_bytes - at);
        char buffer[2 * GLOB_BYTES];
        n = feed ? (size_t)(feed - text) - at : n_bytes - at;
        if (n >= sizeof buffer) continue;
        memcpy(buffer, text + at, n);
        buffer[n] = 0;
        char *line = trimmed(buffer);
        size_t length = strlen(line);
        if (!*line || *line == '#' || *line == ';') continue;
        if (*line == '[' && line[length - 1] == ']') {
            line[length - 1] = 0;
            in_section = true;
            applies = match_within(line + 1, path, &n_left);
            continue;
        }
        char *equals = strchr(line, '=');
        if (!equals) continue;
        *equals = 0;
        const char *name = trimmed(line), *value = trimmed(equals + 1);
        if (!in_section && !strcasecmp(name, "root")) root = !strcasecmp(value, "true");
        if (in_section && applies) take_setting(name, value, config);
    }
    return root;
}

void whit_editorconfig_read(const char *path, whit_editorconfig *config)
{
    whit_buf files[LEVELS_MAX] = {0};
    size_t ends[LEVELS_MAX]; /* length of each file's folder path, including its final slash */
    size_t n = 0, length = strlen(path);
    memset(config, 0, sizeof *config);
    if (*path != '/' || length >= PATH_MAX - 16) return;
    while (length && n < LEVELS_MAX) {
        while (length && path[length - 1] != '/') length--; /* cut the path after the last slash */
        if (!length) break;
        char name[PATH_MAX];
        whit_error error;
        whit_editorconfig ignored = {0};
        snprintf(name, sizeof name, "%.*s.editorconfig", (int)length, path);
        bool is_root = false;
        if (whit_read_found_file(name, FILE_BYTES, &files[n], &error) == WHIT_OK) {
            ends[n] = length;
            is_root = whit_editorconfig_apply(whit_chars(&files[n]), files[n].size_bytes, "", &ignored);
            n++;
        } else {
            whit_buf_free(&files[n]);
        }
        if (is_root) break;
        length--;
    }
    while (n--) {
        whit_editorconfig_apply(whit_chars(&files[n]), files[n].size_bytes, path + ends[n], config);
        whit_buf_free(&files[n]);
    }
    /* "indent_size = tab" means the tab width; a tab without a width is as wide as one indentation level */
    if (config->indent_columns < 0) config->indent_columns = config->tab_columns;
    if (!config->tab_columns && config->tabs == WHIT_YES) config->tab_columns = config->indent_columns;
}
