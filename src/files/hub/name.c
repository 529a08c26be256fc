/* SPDX-License-Identifier: MIT */
#include "hub/name.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "hub/settings.h"

/* Limit of one part of a path: file systems allow 255 bytes, and the endings of unfinished files need some of them. */
#define PART_BYTES_MAX 200

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
        c == '.';
}

/* Returns whether the text consists of at most n_parts_max parts of name bytes, separated by '/'. A part must have 1 to
 * 96 bytes, not begin or end with '-' or '.', and not contain "--" or "..". */
static bool is_plain(const char *text, size_t n, size_t n_parts_max)
{
    size_t n_parts = 1, part_bytes = 0;
    for (size_t i = 0; i <= n; i++) {
        char c = i < n ? text[i] : '/';
        char before = i ? text[i - 1] : '/';
        bool at_edge = before == '/' || c == '/';
        char edge = before == '/' ? c : before;
        if (at_edge && (edge == '-' || edge == '.' || edge == '/')) return false;
        if ((c == '-' && before == '-') || (c == '.' && before == '.')) return false;
        if (c != '/' && !is_name_byte(c)) return false;
        part_bytes = c == '/' ? 0 : part_bytes + 1;
        if (part_bytes > 96 || (c == '/' && i < n && ++n_parts > n_parts_max)) return false;
    }
    return true;
}

static whit_status take_revision(whit_hub_name *name, const char *text, size_t n, whit_error *error)
{
    if (n >= sizeof name->revision || !is_plain(text, n, 8))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "'%.*s' is not a revision: the name of a branch, a tag or a commit", (int)(n < 100 ? n : 100),
                         text);
    memcpy(name->revision, text, n);
    name->revision[n] = 0;
    return WHIT_OK;
}

static whit_status take_file(whit_hub_name *name, const char *file, const char *text, whit_error *error)
{
    size_t n = strlen(file);
    if (n == 0 || !whit_hub_path_is_safe(file, n))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%.200s': a file, pattern or tag was expected after ':'", text);
    memcpy(name->file, file, n + 1);
    return WHIT_OK;
}

/* ---- addresses ------------------------------------------------------------------------------ */

/* Returns the text that follows the host's name and a '/'. NULL if `text` does not begin with this host. */
static const char *after_host(const char *text, const char *host)
{
    size_t n = strlen(host);
    return strncmp(text, host, n) == 0 && (text[n] == '/' || !text[n]) ? text + n + (text[n] == '/') : NULL;
}

static const char *after_scheme(const char *text)
{
    if (strncmp(text, "https://", 8) == 0) return text + 8;
    return strncmp(text, "http://", 7) == 0 ? text + 7 : text;
}

/* Returns the path that follows the name of one of the hub's hosts; NULL if `text` does not begin with one. */
static const char *path_on_hub(const char *text)
{
    static const char *const hosts[] = {"huggingface.co", "www.huggingface.co", "hf.co"};
    char endpoint[WHIT_HUB_ENDPOINT_BYTES];
    const char *rest = after_scheme(text), *path = NULL;
    for (size_t i = 0; !path && i < sizeof hosts / sizeof *hosts; i++) path = after_host(rest, hosts[i]);
    if (!path && whit_hub_endpoint(endpoint, NULL) == WHIT_OK) path = after_host(rest, after_scheme(endpoint));
    return path;
}

bool whit_hub_is_address(const char *text)
{
    return after_scheme(text) != text || path_on_hub(text);
}

/* Decodes `n_text` bytes of a percent-encoded path: "%41" becomes "A". Returns false if the decoded text does not fit
 * or contains a zero byte. */
static bool decode(const char *text, size_t n_text, char *out, size_t out_bytes)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (size_t i = 0; i < n_text; i++) {
        char c = text[i];
        const char *high = c == '%' && i + 2 < n_text ? strchr(digits, text[i + 1] | 32) : NULL;
        const char *low = high ? strchr(digits, text[i + 2] | 32) : NULL;
        if (low) {
            c = (char)((high - digits) << 4 | (low - digits));
            i += 2;
        }
        if (!c || n + 1 >= out_bytes) return false;
        out[n++] = c;
    }
    out[n] = 0;
    return true;
}

/* Returns the text that follows the next '/'; NULL if there is no further '/'. */
static const char *behind_slash(const char *at, const char *end)
{
    const char *slash = at ? memchr(at, '/', (size_t)(end - at)) : NULL;
    return slash ? slash + 1 : NULL;
}

static whit_status no_model(const char *text, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_ARGUMENT,
                     "'%.200s' is not the address of a model on the hub (https://huggingface.co/OWNER/NAME)", text);
}

/* Parses the address of OWNER/NAME, optionally followed by @REVISION and :FILE, or by one of /tree, /commit, /blob,
 * /resolve and /raw with /REVISION and, except after /tree, /FILE. The path is split at its slashes before it is
 * decoded, since slashes of a revision are written %2F: refs%2Fpr%2F1. */
static whit_status parse_address(const char *text, whit_hub_name *name, whit_error *error)
{
    static const char *const views[] = {"tree", "blob", "resolve", "raw", "commit"};
    char part[WHIT_HUB_REPO_BYTES + WHIT_HUB_REVISION_BYTES + WHIT_HUB_PATH_BYTES];
    const char *path = path_on_hub(text);
    if (!path) return no_model(text, error);
    const char *end = path + strcspn(path, "?#");
    while (end > path && end[-1] == '/') end--;
    const char *view = behind_slash(behind_slash(path, end), end), *revision = behind_slash(view, end);
    const char *file = behind_slash(revision, end);
    if (!decode(path, (size_t)((view ? view - 1 : end) - path), part, sizeof part)) return no_model(text, error);
    if (!view) return whit_hub_name_parse(part, name, error);
    bool is_tree = strncmp(view, "tree/", 5) == 0, known = false;
    for (size_t i = 0; revision && i < sizeof views / sizeof *views; i++)
        known |= strlen(views[i]) == (size_t)(revision - 1 - view) && strncmp(view, views[i], strlen(views[i])) == 0;
    if (!known)
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "'%.200s' is not the page of a model; open the model's page or its files, and take that address", text);
    WHIT_TRY(whit_hub_name_parse(part, name, error));
    if (!decode(revision, (size_t)((file ? file - 1 : end) - revision), part, sizeof part))
        return no_model(text, error);
    WHIT_TRY(whit_hub_name_revise(name, part, error));
    if (!file || is_tree) return WHIT_OK; /* the page of a folder means the whole repository */
    if (!decode(file, (size_t)(end - file), part, sizeof part)) return no_model(text, error);
    return take_file(name, part, text, error);
}

/* ---- names ---------------------------------------------------------------------------------- */

whit_status whit_hub_name_parse(const char *text, whit_hub_name *name, whit_error *error)
{
    if (whit_hub_is_address(text)) return parse_address(text, name, error);
    *name = (whit_hub_name){.revision = WHIT_HUB_MAIN};
    size_t n_repo = strcspn(text, "@:");
    if (n_repo >= sizeof name->repo || !is_plain(text, n_repo, 2))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%.200s' names no repository (OWNER/NAME, OWNER/NAME:FILE)",
                         text);
    memcpy(name->repo, text, n_repo);
    const char *rest = text + n_repo;
    if (*rest == '@') {
        size_t n = strcspn(rest + 1, ":");
        WHIT_TRY(take_revision(name, rest + 1, n, error));
        rest += 1 + n;
    }
    return *rest == ':' ? take_file(name, rest + 1, text, error) : WHIT_OK;
}

whit_status whit_hub_name_revise(whit_hub_name *name, const char *revision, whit_error *error)
{
    return take_revision(name, revision, strlen(revision), error);
}

void whit_hub_name_print(const whit_hub_name *name, char text[WHIT_HUB_FOLDER_BYTES])
{
    if (strcmp(name->revision, WHIT_HUB_MAIN) == 0)
        snprintf(text, WHIT_HUB_FOLDER_BYTES, "%s", name->repo);
    else
        snprintf(text, WHIT_HUB_FOLDER_BYTES, "%s@%s", name->repo, name->revision);
}

void whit_hub_name_folder(const whit_hub_name *name, char folder[WHIT_HUB_FOLDER_BYTES])
{
    char text[WHIT_HUB_FOLDER_BYTES];
    whit_hub_name_print(name, text);
    /* A name has at most nine slashes, so the text fits although each '/' becomes two bytes. */
    size_t at = 0;
    for (const char *c = text; *c && at + 3 < WHIT_HUB_FOLDER_BYTES; c++) {
        folder[at++] = *c == '/' ? '-' : *c;
        if (*c == '/') folder[at++] = '-';
    }
    folder[at] = 0;
}

bool whit_hub_name_from_folder(const char *folder, whit_hub_name *name)
{
    char text[WHIT_HUB_FOLDER_BYTES], again[WHIT_HUB_FOLDER_BYTES];
    size_t at = 0;
    for (const char *c = folder; *c; c++) {
        if (at + 1 >= sizeof text) return false;
        bool is_slash = c[0] == '-' && c[1] == '-';
        text[at++] = is_slash ? '/' : *c;
        c += is_slash;
    }
    text[at] = 0;
    if (whit_hub_name_parse(text, name, NULL) != WHIT_OK || name->file[0]) return false;
    whit_hub_name_folder(name, again);
    return strcmp(again, folder) == 0;
}

bool whit_hub_path_is_safe(const char *path, size_t n_bytes)
{
    if (n_bytes == 0 || n_bytes >= WHIT_HUB_PATH_BYTES) return false;
    if (whit_utf8_valid_bytes((const uint8_t *)path, n_bytes) != n_bytes) return false;
    for (size_t begin = 0, i = 0; i <= n_bytes; i++) {
        if (i < n_bytes && ((unsigned char)path[i] < 32 || path[i] == 127 || path[i] == '\\')) return false;
        if (i < n_bytes && path[i] != '/') continue;
        const char *part = path + begin;
        size_t n = i - begin;
        if (n == 0 || n > PART_BYTES_MAX || (n == 1 && part[0] == '.') || (n == 2 && memcmp(part, "..", 2) == 0))
            return false;
        begin = i + 1;
    }
    return true;
}
