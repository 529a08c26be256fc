/* SPDX-License-Identifier: MIT */
#include "agent/programs.h"

#include "agent/guard.h"
#include "agent/light.h"
#include "base/path.h"
#include "base/phrase.h"
#include "base/piped.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Returns whether a word of a command names a script by its ending. */
static bool is_script(const char *word)
{
    static const char *const ends[] = {".py",  ".pyw", ".pyz", ".js",  ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx",
                                       ".tsx", ".rb",  ".pl",  ".php", ".lua", ".sh",  ".jl", ".jar", ".exs", ".tcl"};
    const char *end = strrchr(word, '.');
    for (size_t i = 0; end && i < COUNT(ends); i++)
        if (strcmp(end, ends[i]) == 0) return true;
    return false;
}

/* Returns whether a folder is a package, which programs run as a whole. */
static bool is_package(const char *folder)
{
    static const char *const files[] = {"package.json", "index.js",   "__main__.py", "pyproject.toml",
                                        "deno.json",    "Cargo.toml", "go.mod"};
    char path[PATH_MAX];
    for (size_t i = 0; i < COUNT(files); i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, files[i]) < (int)sizeof path && whit_path_exists(path))
            return true;
    return false;
}

/* Returns whether a program looks for code in the folder in which it is started. */
static bool looks_around(const char *program)
{
    static const char *const names[] = {"python", "node", "npx",  "npm",  "pnpm", "yarn",  "bun", "deno", "uv",
                                        "ruby",   "perl", "make", "rake", "just", "cargo", "go",  "sh",   "bash"};
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    for (size_t i = 0; i < COUNT(names); i++) {
        const size_t n = strlen(names[i]);
        /* python3.12, bunx */
        if (strncmp(name, names[i], n) == 0 && strspn(name + n, "0123456789.x") == strlen(name + n)) return true;
    }
    return false;
}

static bool know_folder(const char *project, const char *folder)
{
    return !whit_path_is_below(folder, project) || whit_guard_know_program(folder);
}

/* Tells the folder of a program, by its name and by the file to which links lead from it. */
static bool know_program(const char *project, const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX];
    bool ok = true;
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder) return true;
    *slash = 0;
    (void)whit_light_real("/", folder + 1, real);
    if (*real) ok = know_folder(project, real);
    (void)whit_light_real("/", path + 1, real);
    slash = strrchr(real, '/');
    if (slash) *slash = 0;
    return ok && (!*real || know_folder(project, real));
}

/* Tells what a word of a command that is started in the folder `start` names. */
static bool know_word(const char *project, const char *start, const char *word, bool is_first)
{
    char path[PATH_MAX], real[PATH_MAX], found[WHIT_PROGRAM_BYTES];
    if (is_first && !strchr(word, '/')) {
        if (!whit_find_program(word, found)) return true;
        word = found;
    }
    int n = snprintf(path, sizeof path, "%s", word);
    if (!whit_path_is_absolute(word)) n = snprintf(path, sizeof path, "%s/%s", start, word);
    if (*path != '/' || n >= (int)sizeof path) return true;
    if (is_first || is_script(word)) return know_program(project, path);
    /* the project itself is what many servers are told to work on, so only folders in it count */
    const bool is_part = realpath(path, real) && strcmp(real, project) != 0 && is_package(real);
    return !is_part || know_folder(project, real);
}

whit_status whit_programs_know(const json_t *servers, const char *project, whit_error *error)
{
    const char *name;
    json_t *server, *word;
    char real[PATH_MAX];
    size_t i;
    bool ok = true;
    if (!realpath(project, real)) return WHIT_OK;
    json_object_foreach((json_t *)(uintptr_t)servers, name, server)
    {
        const char *folder = whit_or_empty(json_string_value(json_object_get(server, "folder")));
        const bool is_inside = strcmp(folder, "project") == 0;
        const json_t *command = json_object_get(server, "command");
        const char *first = whit_or_empty(json_string_value(json_array_get(command, 0)));
        if (is_inside && looks_around(first)) ok = know_folder(real, real) && ok;
        json_array_foreach(command, i, word) ok =
            know_word(real, is_inside ? real : whit_or_empty(getenv("HOME")), json_string_value(word), !i) && ok;
    }
    return ok
        ? WHIT_OK
        : whit_fail(error, WHIT_ERROR_LIMIT,
                    "the programs of MCP servers are in too many folders of the project: configure fewer servers");
}
