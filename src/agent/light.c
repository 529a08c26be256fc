/* SPDX-License-Identifier: MIT */
#include "agent/light.h"

#include "base/plain.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_part(const char *path, const char *part)
{
    size_t n = strlen(part);
    for (const char *at = path; (at = strstr(at, part)); at++)
        if ((at == path || at[-1] == '/') && (!at[n] || at[n] == '/')) return true;
    return false;
}

static bool has_any(const char *path, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (has_part(path, parts[i])) return true;
    return false;
}

/* Where the path's nearest folder that is there really is, below the project; "" where nothing more is
 * to be known. */
static const char *real_below(const char *project, const char *path, char real[PATH_MAX])
{
    char folder[PATH_MAX];
    size_t n = strlen(project);
    if (snprintf(folder, sizeof folder, "%s/%s", project, path) >= (int)sizeof folder) return "";
    while (!realpath(folder, real)) {
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) <= n) return "";
        *slash = 0;
    }
    return strncmp(real, project, n) == 0 && real[n] == '/' ? real + n + 1 : "";
}

static size_t count_checks(const char *text, size_t n)
{
    static const char *const words[] = {"assert", "ASSERT", "expect(", "EXPECT", "REQUIRE", "CHECK("};
    size_t count = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *at = text; n && (at = memmem(at, n - (size_t)(at - text), words[i], strlen(words[i]))); at++)
            count++;
    return count;
}

const char *whit_light_red(const char *project, const whit_change *change)
{
    static const char *const guarded[] = {".git", ".hg", ".svn", ".github", ".ci", ".vscode", ".ssh", ".env"};
    size_t n = sizeof guarded / sizeof *guarded;
    char real[PATH_MAX];
    if (has_any(change->path, guarded, n) || has_any(real_below(project, change->path, real), guarded, n))
        return "it belongs to the project's configuration";
    if (change->was && !change->is) return "it deletes a file";
    bool test = strstr(change->path, "test") || strstr(change->path, "spec");
    if (test && change->was &&
        count_checks(change->after, change->after_bytes) < count_checks(change->before, change->before_bytes))
        return "it leaves fewer checks in a test";
    return NULL;
}

static bool is_secret(const char *path)
{
    static const char *const guarded[] = {".git", ".hg", ".svn", ".ssh", ".netrc", ".gnupg", "id_rsa", "id_ed25519"};
    const char *slash = strrchr(path, '/');
    return has_any(path, guarded, sizeof guarded / sizeof *guarded) ||
        strncmp(slash ? slash + 1 : path, ".env", 4) == 0;
}

bool whit_light_secret(const char *project, const char *path)
{
    char real[PATH_MAX];
    return is_secret(path) || is_secret(real_below(project, path, real));
}

bool whit_light_agreed(const char *reason, size_t n_files)
{
    char answer[16] = "", line[PATH_MAX + 120];
    int n = snprintf(line, sizeof line, "%s%sWrite %zu file%s? [y/N] ", reason ? reason : "", reason ? ". " : "",
                     n_files, n_files == 1 ? "" : "s");
    if (n < 0 || (size_t)n >= sizeof line) return false;
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0) return false;
    /* The reason has a path that a model chose: nothing in it may command the terminal. */
    dprintf(terminal, "%.*s", (int)whit_plain_line(line, (size_t)n), line);
    ssize_t got = read(terminal, answer, sizeof answer - 1);
    close(terminal);
    return got > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}
