/* SPDX-License-Identifier: MIT */
#include "cli/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cli/tales.h"
#include "hub/store.h"

_Static_assert(CLI_PATH_BYTES == WHIT_CACHE_PATH_BYTES, "paths of the store fit");

bool cli_looks_like_path(const char *words)
{
    static const char *const endings[] = {".gguf", ".ndf", ".safetensors", ".bin", ".json", ".jinja", ".txt", "/"};
    size_t n = strlen(words), n_first = strcspn(words, "/");
    char first[256];
    if (whit_hub_is_address(words)) return false;
    if (words[0] && strchr("/.~", words[0])) return true;
    if (strchr(words, ':') && !whit_path_exists(words)) return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && strcmp(words + n - m, endings[i]) == 0) return true;
    }
    if (!words[n_first] || n_first >= sizeof first) return false;
    memcpy(first, words, n_first);
    first[n_first] = 0;
    return whit_path_exists(first);
}

static whit_status find_home(const char *words, char path[CLI_PATH_BYTES])
{
    bool is_below_home = words[0] == '~' && words[1] == '/' && whit_path_expand(words, path, CLI_PATH_BYTES);
    return is_below_home && whit_path_exists(path) ? WHIT_OK : WHIT_ERROR_IO;
}

/* Returns whether a name is that of a piece of a file which was cut at arbitrary bytes, as for hubs that limit file
 * sizes: "-split-a" or ".part1of2" after the file's own name. *n_stem: length of that own name. GGUF's parts
 * ("-00001-of-00003.gguf") are no such pieces: they are complete files, of which the first opens the model. */
static bool is_piece(const char *words, size_t *n_stem)
{
    static const char split[] = "-split-", part[] = ".part";
    for (const char *at = words; (at = strstr(at, split)) != NULL; at++) {
        const char *end = at + sizeof split - 1;
        size_t n = strspn(end, "abcdefghijklmnopqrstuvwxyz");
        *n_stem = (size_t)(at - words);
        if (n && n <= 2 && !end[n] && *n_stem) return true;
    }
    for (const char *at = words; (at = strstr(at, part)) != NULL; at++) {
        const char *end = at + sizeof part - 1;
        size_t n = strspn(end, "0123456789"),
               n_count = n && !strncmp(end + n, "of", 2) ? strspn(end + n + 2, "0123456789") : 0;
        *n_stem = (size_t)(at - words);
        if (n_count && !end[n + 2 + n_count] && *n_stem) return true;
    }
    return false;
}

/* Returns whether `words` is a regular file whose name has a suffix that other programs give to unfinished
 * downloads. */
static bool is_unfinished(const char *words)
{
    static const char *const endings[] = {".part", ".partial", ".crdownload", ".download", ".incomplete", ".aria2"};
    const size_t n = strlen(words);
    struct stat info;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t m = strlen(endings[i]);
        if (n > m && !strcmp(words + n - m, endings[i])) return stat(words, &info) == 0 && S_ISREG(info.st_mode);
    }
    return false;
}

whit_status cli_find_model(const char *words, char path[CLI_PATH_BYTES], whit_error *error)
{
    whit_hub_name name;
    bool is_absent = whit_hub_lacks_file(words);
    if (is_absent && find_home(words, path) == WHIT_OK) return WHIT_OK;
    if (is_absent && cli_is_tales(words))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "tales is built into the program; this command needs a file ('whit convert tales -o "
                         "tales.ndf' writes one)");
    whit_status named = is_absent ? whit_hub_name_parse(words, &name, error) : WHIT_ERROR_IO;
    if (is_absent && named == WHIT_OK) {
        whit_status status = whit_hub_store_path(NULL, words, path, error);
        if (status == WHIT_OK || !cli_looks_like_path(words)) return status;
    }
    if (is_absent && cli_looks_like_path(words))
        return whit_fail(error, WHIT_ERROR_IO,
                         "%.300s: No such file or directory ('whit list' shows the models that are here)", words);
    if (is_absent && whit_hub_is_address(words)) return named;
    if (!is_absent && is_unfinished(words))
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%.300s: its name is that of an unfinished download; finish the download, then remove the suffix", words);
    size_t n_stem;
    if (!is_absent && is_piece(words, &n_stem)) {
        const char *others = words[n_stem] == '-' ? "-split-*" : ".part*";
        int n = n_stem < 200 ? (int)n_stem : 200;
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%.200s: is one piece of a split file; join the pieces in order: cat %.*s%s > %.*s", words, n,
                         words, others, n, words);
    }
    /* Text that cannot be a model's name is treated as a path, so that opening it reports the error. */
    if (snprintf(path, CLI_PATH_BYTES, "%s", words) >= CLI_PATH_BYTES)
        return whit_fail(error, WHIT_ERROR_IO, "%.200s...: the path is longer than 4,095 bytes, the limit", words);
    return WHIT_OK;
}

bool cli_is_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
        first.st_ino == second.st_ino;
}

bool cli_file_size(const char *path, uint64_t *n_bytes)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    *n_bytes = (uint64_t)info.st_size;
    return true;
}

const char *cli_bytes(uint64_t n_bytes, char text[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double n = (double)n_bytes;
    size_t unit = 0;
    while (n >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        n /= 1000;
        unit++;
    }
    snprintf(text, 32, "%.*f %s", unit && n < 99.95 ? 1 : 0, n, units[unit]);
    return text;
}
