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
#include <strings.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Returns whether a file of the project that a command names is a program, a script or a library by its ending: servers
 * are told of files with data, too, and all other endings count. */
static bool is_program(const char *word)
{
    static const char *const data[] = {".db",   ".sqlite",  ".sqlite3", ".duckdb", ".json", ".jsonl", ".csv",
                                       ".tsv",  ".parquet", ".txt",     ".md",     ".log",  ".pdf",   ".xml",
                                       ".html", ".png",     ".jpg",     ".svg",    ".yaml", ".yml"};
    const char *slash = strrchr(word, '/'), *end = strrchr(slash ? slash : word, '.');
    for (size_t i = 0; end && i < COUNT(data); i++)
        if (strcasecmp(end, data[i]) == 0) return false;
    return true;
}

/* Returns whether a folder is a package, which programs run as a whole. */
static bool is_package(const char *folder)
{
    static const char *const files[] = {"package.json", "index.js", "index.mjs",  "index.ts", "__main__.py",
                                        "main.py",      "main.go",  "main.ts",    "mod.ts",   "pyproject.toml",
                                        "deno.json",    "go.mod",   "Cargo.toml", "Makefile"};
    char path[PATH_MAX];
    for (size_t i = 0; i < COUNT(files); i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, files[i]) < (int)sizeof path && whit_path_exists(path))
            return true;
    return false;
}

/* Returns whether a program runs the code of a folder that is its argument. */
static bool runs_folder(const char *program)
{
    static const char *const names[] = {"python", "node", "npx", "npm", "pnpm", "bun", "deno", "uv"};
    const char *name = program;
    for (const char *at = program; *at; at++)
        if (*at == '/' || *at == '\\') name = at + 1;
    for (size_t i = 0; i < COUNT(names); i++) {
        const size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) != 0) continue;
        /* python3.12, bunx; on Windows python.exe, npx.cmd */
        const char *rest = name + n + strspn(name + n, "0123456789.x");
        if (!*rest || strcasecmp(rest, "exe") == 0 || strcasecmp(rest, "cmd") == 0) return true;
    }
    return false;
}

static bool know_folder(const char *project, const char *folder)
{
    return !whit_path_is_below(folder, project) || whit_guard_know_program(folder);
}

/* Follows the links of an absolute path, which on Windows begins with a drive. `real` becomes "" if that fails. */
static void follow_links(const char *path, char real[PATH_MAX])
{
    char root[PATH_MAX];
    const size_t n = strcspn(path, "/");
    *real = 0;
    if (!path[n] || snprintf(root, sizeof root, "%.*s", n ? (int)n : 1, path) >= (int)sizeof root) return;
    (void)whit_light_real(root, path + n + 1, real);
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
    follow_links(folder, real);
    if (*real) ok = know_folder(project, real);
    follow_links(path, real);
    slash = strrchr(real, '/');
    if (slash) *slash = 0;
    return ok && (!*real || know_folder(project, real));
}

/* Tells what a word of a command that is started in the folder `start` names. */
static bool know_word(const char *project, const char *start, const char *word, bool is_first)
{
    char path[PATH_MAX], real[PATH_MAX], found[WHIT_PROGRAM_BYTES], own[PATH_MAX];
    if (snprintf(own, sizeof own, "%s", word) >= (int)sizeof own) return true;
    whit_path_adopt(own);
    word = own;
    if (is_first && !strchr(word, '/')) {
        if (!whit_find_program(word, found)) return true;
        whit_path_adopt(found);
        word = found;
    }
    int n = snprintf(path, sizeof path, "%s", word);
    if (!whit_path_is_absolute(word)) n = snprintf(path, sizeof path, "%s/%s", start, word);
    if (!whit_path_is_absolute(path) || n >= (int)sizeof path) return true;
    const bool is_folder = whit_path_is_folder(path);
    if (is_first || (!is_folder && is_program(word))) return know_program(project, path);
    /* the project itself is what many servers are told to work on, so only folders in it count */
    const bool is_part = is_folder && realpath(path, real) && strcmp(real, project) != 0 && is_package(real);
    return !is_part || know_folder(project, real);
}

/* Writes the absolute path of a path in a text. It may begin with "~/", "$HOME/" or "${HOME}/", and follow the letter
 * of an option ("-I/FOLDER"). Sets *is_whole to whether it is absolute by itself. Returns false if it is no path. */
static bool make_full(const char *start, const char *path, size_t n_bytes, char full[PATH_MAX], bool *is_whole)
{
    static const char *const homes[] = {"~", "$HOME", "${HOME}"};
    const char *folder = start;
    if (n_bytes > 2 && path[0] == '-' && path[1] != '-' && strchr("/~$", path[2])) {
        path += 2;
        n_bytes -= 2;
    }
    *is_whole = whit_path_is_absolute(path);
    if (!n_bytes || n_bytes >= PATH_MAX) return false;
    for (size_t i = 0; i < COUNT(homes); i++) {
        const size_t n = strlen(homes[i]);
        if (n_bytes < n || memcmp(path, homes[i], n) != 0 || (n_bytes > n && path[n] != '/')) continue;
        folder = whit_or_empty(getenv("HOME"));
        *is_whole = false;
        path += n;
        n_bytes -= n;
        break;
    }
    const int n = *is_whole ? snprintf(full, PATH_MAX, "%.*s", (int)n_bytes, path)
                            : snprintf(full, PATH_MAX, "%s/%.*s", folder, (int)n_bytes, path);
    whit_path_adopt(full);
    return whit_path_is_absolute(full) && n < PATH_MAX;
}

/* Tells the folder of code that a path names: the folder itself, which may be the project, or the folder of a file. */
static bool know_code(const char *project, const char *start, const char *path, size_t n_bytes)
{
    char full[PATH_MAX], real[PATH_MAX];
    bool is_whole;
    if (!make_full(start, path, n_bytes, full, &is_whole)) return true;
    follow_links(full, real);
    const bool is_there = whit_path_exists(real);
    if (is_there && !whit_path_is_folder(real)) return know_program(project, full);
    /* another word, such as a module's name, is not a path */
    return !*real || (!is_whole && !is_there) || know_folder(project, real);
}

/* Tells the folder of a program that a path in a word names: only a file that is there, since words may be anything. */
static bool know_part(const char *project, const char *start, const char *path, size_t n_bytes)
{
    char full[PATH_MAX], real[PATH_MAX];
    bool is_whole;
    if (!make_full(start, path, n_bytes, full, &is_whole)) return true;
    follow_links(full, real);
    const bool is_file = whit_path_exists(real) && !whit_path_is_folder(real);
    return !is_file || !is_program(full) || know_program(project, full);
}

/* Tells what the paths in a line of code or in a list of paths name, each by `know`. */
static bool know_line(const char *project, const char *start, const char *line,
                      bool (*know)(const char *project, const char *start, const char *path, size_t n_bytes))
{
    static const char separators[] = " \t\r\n\"'`=:;,&|()<>[]";
    bool ok = true;
    for (size_t n; *line; line += n + (line[n] != 0)) {
        n = strcspn(line, separators);
        /* the colon after a drive of Windows separates nothing */
        if (n == 1 && *line != '/' && whit_path_is_absolute(line)) n = 2 + strcspn(line + 2, separators);
        ok = know(project, start, line, n) && ok;
    }
    return ok;
}

/* Returns whether a word is a line of shell or of another language, such as the argument of `sh -c`. */
static bool is_line(const char *word)
{
    return strpbrk(word, " \t\n;&|()") != NULL;
}

/* Returns whether a word is an option by which programs are told where code is. *value gets the text in the same word,
 * as in "--directory=FOLDER", or NULL. */
static bool names_code(const char *word, const char **value)
{
    static const char *const options[] = {
        "directory", "dir",       "cwd",       "chdir",       "prefix",        "project",     "package",
        "from",      "with",      "workspace", "app-dir",     "manifest-path", "require",     "import",
        "loader",    "file",      "makefile",  "script",      "with-editable", "editable",    "env-file",
        "config",    "classpath", "cp",        "module-path", "jar",           "working-dir", "working-directory"};
    static const char letters[] = "CrIfpLe";
    *value = NULL;
    if (word[0] != '-' || !word[1]) return false;
    const char *name = word + 1 + (word[1] == '-');
    const size_t n = strcspn(name, "=");
    for (size_t i = 0; i < COUNT(options); i++) {
        if (strlen(options[i]) != n || strncmp(name, options[i], n) != 0) continue;
        *value = name[n] ? name + n + 1 : NULL;
        return true;
    }
    if (word[1] == '-' || !strchr(letters, word[1])) return false;
    *value = word[2] ? word + 2 : NULL;
    return true;
}

/* Tells the code that the words of a command name by options and in lines of code. */
static bool know_options(const char *project, const char *start, const json_t *command)
{
    bool ok = true, is_value = false;
    char real[PATH_MAX];
    size_t i;
    json_t *item;
    json_array_foreach(command, i, item)
    {
        const char *word = whit_or_empty(json_string_value(item)), *value;
        const bool is_option = i && names_code(word, &value);
        if (i) ok = know_line(project, start, word, is_value || is_line(word) ? know_code : know_part) && ok;
        if (is_option && value) ok = know_line(project, start, value, know_code) && ok;
        is_value = is_option && !value;
    }
    /* python3 FOLDER, npx FOLDER */
    const char *first = whit_or_empty(json_string_value(json_array_get(command, 0)));
    const char *second = whit_or_empty(json_string_value(json_array_get(command, 1)));
    if (runs_folder(first) && whit_path_is_absolute(second) && realpath(second, real) && is_package(real))
        ok = know_folder(project, real) && ok;
    return ok;
}

/* Returns whether programs take code from the paths in this variable. */
static bool is_code_variable(const char *name)
{
    static const char *const parts[] = {"PATH", "LIB", "OPT", "PRELOAD", "STARTUP", "FLAGS"};
    for (size_t i = 0; i < COUNT(parts); i++)
        if (strstr(name, parts[i])) return true;
    return strcmp(name, "ENV") == 0 || strcmp(name, "BASH_ENV") == 0;
}

/* Tells the code that a server's variables name: variables of its settings, and inherited ones. */
static bool know_variables(const char *project, const char *start, const json_t *own)
{
    bool ok = true;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)own, name, value) ok =
        know_line(project, start, json_string_value(value), is_code_variable(name) ? know_code : know_part) && ok;
    for (char *const *variable = whit_own_variables(); *variable; variable++) {
        char inherited[64];
        snprintf(inherited, sizeof inherited, "%.*s", (int)strcspn(*variable, "="), *variable);
        const char *text = strchr(*variable, '=');
        if (text && is_code_variable(inherited)) ok = know_line(project, start, text + 1, know_code) && ok;
    }
    return ok;
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
        const char *start = is_inside ? real : whit_or_empty(getenv("HOME"));
        const json_t *command = json_object_get(server, "command");
        /* programs look for code and for settings in the folder in which they are started */
        if (is_inside) ok = know_folder(real, real) && ok;
        json_array_foreach(command, i, word) ok = know_word(real, start, json_string_value(word), !i) && ok;
        ok = know_options(real, start, command) && ok;
        ok = know_variables(real, start, json_object_get(server, "env")) && ok;
    }
    return ok
        ? WHIT_OK
        : whit_fail(error, WHIT_ERROR_LIMIT,
                    "the programs of MCP servers are in too many folders of the project: configure fewer servers");
}
