/* SPDX-License-Identifier: MIT
 * The lists name what is harmless, so that a module that nobody thought of needs a review. */
#include "agent/review_imports.h"

#include "base/items.h"
#include "base/path.h"
#include "base/plain.h"
#include "code/walk.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- modules and headers that need no review ------------------------------------------------------- */

/* Modules of Python's library that do not run a program or a text as code that a caller gives them, and pytest, since
 * new tests need no question. Some have such functions beside many harmless ones (asyncio, gc, inspect, os, pytest,
 * shutil, sqlite3, sys, types, typing, unittest, uuid): review.c and review_text.c name these functions. */
static const char *const python_modules[] = {
    "__future__", "abc",          "argparse",    "array",       "ast",       "asyncio",    "atexit",      "base64",
    "binascii",   "bisect",       "bz2",         "calendar",    "cmath",     "codecs",     "collections", "colorsys",
    "concurrent", "configparser", "contextlib",  "contextvars", "copy",      "csv",        "curses",      "dataclasses",
    "datetime",   "decimal",      "difflib",     "email",       "enum",      "errno",      "fcntl",       "filecmp",
    "fnmatch",    "fractions",    "ftplib",      "functools",   "gc",        "getopt",     "getpass",     "glob",
    "graphlib",   "grp",          "gzip",        "hashlib",     "heapq",     "hmac",       "html",        "http",
    "inspect",    "io",           "ipaddress",   "itertools",   "json",      "keyword",    "linecache",   "locale",
    "logging",    "lzma",         "math",        "mimetypes",   "mmap",      "netrc",      "ntpath",      "numbers",
    "operator",   "optparse",     "os",          "pathlib",     "platform",  "plistlib",   "poplib",      "posixpath",
    "pprint",     "pytest",       "pwd",         "queue",       "quopri",    "random",     "re",          "reprlib",
    "resource",   "sched",        "secrets",     "select",      "selectors", "shlex",      "shutil",      "signal",
    "smtplib",    "socket",       "sqlite3",     "ssl",         "stat",      "statistics", "string",      "stringprep",
    "struct",     "sys",          "sysconfig",   "syslog",      "tarfile",   "tempfile",   "termios",     "textwrap",
    "threading",  "time",         "token",       "tokenize",    "tomllib",   "traceback",  "tracemalloc", "tty",
    "types",      "typing",       "unicodedata", "unittest",    "urllib",    "uuid",       "warnings",    "wave",
    "weakref",    "xml",          "zipfile",     "zlib",        "zoneinfo",
};
/* Parts of these that do. */
static const char *const python_parts[] = {"asyncio.subprocess", "concurrent.futures.interpreter", "http.server",
                                           "logging.config", "unittest.mock._importer"};

/* Headers of ISO C and C++, of POSIX, of compilers' vector instructions, and harmless ones of C libraries. A name
 * without a suffix is one of C++. */
static const char *const c_headers[] = {
    "assert.h", "complex.h", "ctype.h", "errno.h", "fenv.h", "float.h", "inttypes.h", "iso646.h", "limits.h",
    "locale.h", "math.h", "setjmp.h", "signal.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbit.h", "stdbool.h",
    "stdckdint.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "stdnoreturn.h", "string.h", "tgmath.h", "threads.h",
    "time.h", "uchar.h", "wchar.h", "wctype.h",
    /* POSIX */
    "aio.h", "arpa/inet.h", "cpio.h", "dirent.h", "dlfcn.h", "endian.h", "fcntl.h", "fmtmsg.h", "fnmatch.h", "ftw.h",
    "glob.h", "grp.h", "iconv.h", "langinfo.h", "libgen.h", "libintl.h", "monetary.h", "mqueue.h", "ndbm.h", "net/if.h",
    "netdb.h", "netinet/in.h", "netinet/tcp.h", "nl_types.h", "poll.h", "pthread.h", "pwd.h", "regex.h", "sched.h",
    "search.h", "semaphore.h", "spawn.h", "strings.h", "stropts.h", "sys/ipc.h", "sys/mman.h", "sys/msg.h",
    "sys/resource.h", "sys/select.h", "sys/sem.h", "sys/shm.h", "sys/socket.h", "sys/stat.h", "sys/statvfs.h",
    "sys/time.h", "sys/times.h", "sys/types.h", "sys/uio.h", "sys/un.h", "sys/utsname.h", "sys/wait.h", "syslog.h",
    "tar.h", "termios.h", "trace.h", "ulimit.h", "unistd.h", "utime.h", "utmpx.h", "wordexp.h",
    /* C libraries */
    "alloca.h", "byteswap.h", "err.h", "error.h", "execinfo.h", "features.h", "getopt.h", "malloc.h", "sys/cdefs.h",
    "sys/epoll.h", "sys/eventfd.h", "sys/file.h", "sys/inotify.h", "sys/ioctl.h", "sys/param.h", "sys/queue.h",
    "sys/random.h", "sys/sendfile.h", "sys/signalfd.h", "sys/statfs.h", "sys/sysinfo.h", "sys/timerfd.h", "sys/vfs.h",
    "sys/xattr.h",
    /* compilers */
    "arm_acle.h", "arm_bf16.h", "arm_fp16.h", "arm_neon.h", "arm_sve.h", "cpuid.h", "emmintrin.h", "immintrin.h",
    "nmmintrin.h", "pmmintrin.h", "smmintrin.h", "tmmintrin.h", "wmmintrin.h", "x86intrin.h", "xmmintrin.h",
    /* C++ */
    "algorithm", "any", "array", "atomic", "barrier", "bit", "bitset", "cassert", "ccomplex", "cctype", "cerrno",
    "cfenv", "cfloat", "charconv", "chrono", "cinttypes", "ciso646", "climits", "clocale", "cmath", "codecvt",
    "compare", "complex", "concepts", "condition_variable", "coroutine", "csetjmp", "csignal", "cstdalign", "cstdarg",
    "cstdbool", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "ctgmath", "ctime", "cuchar", "cwchar", "cwctype",
    "deque", "exception", "execution", "expected", "filesystem", "flat_map", "flat_set", "format", "forward_list",
    "fstream", "functional", "future", "generator", "initializer_list", "iomanip", "ios", "iosfwd", "iostream",
    "istream", "iterator", "latch", "limits", "list", "locale", "map", "mdspan", "memory", "memory_resource", "mutex",
    "new", "numbers", "numeric", "optional", "ostream", "print", "queue", "random", "ranges", "ratio", "regex",
    "scoped_allocator", "semaphore", "set", "shared_mutex", "source_location", "span", "spanstream", "sstream", "stack",
    "stacktrace", "stdexcept", "stdfloat", "stop_token", "streambuf", "string", "string_view", "strstream",
    "syncstream", "system_error", "thread", "tuple", "type_traits", "typeindex", "typeinfo", "unordered_map",
    "unordered_set", "utility", "valarray", "variant", "vector", "version"};

/* Modules of Node.js that do not run programs or text as code. */
static const char *const node_modules[] = {"assert",
                                           "async_hooks",
                                           "buffer",
                                           "console",
                                           "constants",
                                           "crypto",
                                           "dgram",
                                           "diagnostics_channel",
                                           "dns",
                                           "events",
                                           "fs",
                                           "http",
                                           "http2",
                                           "https",
                                           "net",
                                           "os",
                                           "path",
                                           "perf_hooks",
                                           "punycode",
                                           "querystring",
                                           "readline",
                                           "stream",
                                           "string_decoder",
                                           "test",
                                           "timers",
                                           "tls",
                                           "tty",
                                           "url",
                                           "util",
                                           "zlib"};

#define COUNT(list)      (sizeof(list) / sizeof *(list))
#define MODULE_BYTES_MAX 256  /* a longer name is not compared, but needs a review */
#define IMPORTS_MAX      2000 /* maximum number of imports of a text that are compared with those of the other text */

static bool is_listed(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0) return true;
    return false;
}

/* Writes a reason that names a module. */
static const char *tell_module(const char *begin, const char *name, const char *end, char room[WHIT_REASON_BYTES])
{
    whit_buf shown = {0};
    if (!whit_plain_show(name, strlen(name), WHIT_PLAIN_NAME, &shown)) shown.size_bytes = 0;
    const int n_name = shown.size_bytes < WHIT_REASON_BYTES / 3 ? (int)shown.size_bytes : WHIT_REASON_BYTES / 3;
    snprintf(room, WHIT_REASON_BYTES, "%s%.*s%s", begin, n_name, shown.size_bytes ? whit_chars(&shown) : "", end);
    whit_buf_free(&shown);
    return room;
}

#define UNKNOWN  ", which is neither of the project nor known to be harmless"
#define TOO_MANY "it imports more modules than can be reviewed"

/* ---- files of the project ------------------------------------------------------------------------ */

/* Returns whether the project has a file, or gets it with the changes that are reviewed together with this one. */
static bool has_file(const whit_review_project *project, const char *path)
{
    char entry[PATH_MAX];
    const whit_change *staged = project->staged ? whit_changes_find(project->staged, path) : NULL;
    if (staged && staged->is) return true;
    const int n = snprintf(entry, sizeof entry, "%s/%s", project->folder, path);
    return n > 0 && n < (int)sizeof entry && whit_path_exists(entry);
}

/* Returns whether a module's file or package lies in a folder ("" or a path that ends in '/'). A folder without
 * __init__.py does not count, since an installed package of its name would be imported instead. */
static bool folder_has_module(const whit_review_project *project, const char *folder, int n_folder, const char *name)
{
    static const char *const below[] = {"", "src/", "lib/", "python/"};
    static const char *const endings[] = {".py", "/__init__.py", ".pyx"};
    char path[PATH_MAX];
    for (size_t i = 0; i < COUNT(below) * COUNT(endings); i++) {
        const int n = snprintf(path, sizeof path, "%.*s%s%s%s", n_folder, folder, below[i / COUNT(endings)], name,
                               endings[i % COUNT(endings)]);
        if (n > 0 && n < (int)sizeof path && has_file(project, path)) return true;
    }
    return false;
}

/* Returns whether a Python module is one of the project: it lies in a folder above the importing file that Python may
 * search, thus not within a package. */
static bool is_own_module(const whit_review_project *project, const char *importer, const char *name)
{
    char path[PATH_MAX];
    if (!project->folder) return false;
    for (int n_folder = (int)strlen(importer);;) {
        while (n_folder > 0 && importer[n_folder - 1] != '/') n_folder--;
        const int n = snprintf(path, sizeof path, "%.*s__init__.py", n_folder, importer);
        const bool is_package = n_folder && n > 0 && n < (int)sizeof path && has_file(project, path);
        if (!is_package && folder_has_module(project, importer, n_folder, name)) return true;
        if (!n_folder) return false;
        n_folder--;
    }
}

/* A header that is searched in the project. */
struct wanted {
    char name[MODULE_BYTES_MAX];
    const char *below; /* the name without leading "./" and "../" */
    bool found;
};

/* Returns whether a path is the name, or ends with it after a '/'. */
static bool ends_in(const char *path, const char *name)
{
    const size_t n = strlen(path), n_name = strlen(name);
    return n >= n_name && strcmp(path + n - n_name, name) == 0 && (n == n_name || path[n - n_name - 1] == '/');
}

/* Marks the headers that a path of the project is. Returns whether others are left. */
static bool find_headers(void *user, const char *path)
{
    whit_buf *list = user;
    struct wanted *wanted = WHIT_ITEMS(struct wanted, list);
    size_t n_left = 0;
    for (size_t i = 0; i < list->size_bytes / sizeof *wanted; i++) {
        wanted[i].found = wanted[i].found || ends_in(path, wanted[i].below);
        n_left += !wanted[i].found;
    }
    return n_left > 0;
}

/* Marks the headers that are files of the project: a path of the project ends with their names, since the folders in
 * which a compiler searches are not known. */
static void find_own_headers(const whit_review_project *project, whit_buf *list)
{
    const whit_walk_how how = {.is_unruled = true};
    struct wanted *wanted = WHIT_ITEMS(struct wanted, list);
    bool is_left = project->folder && list->size_bytes;
    for (size_t i = 0; i < list->size_bytes / sizeof *wanted; i++) {
        wanted[i].below = wanted[i].name;
        while (strncmp(wanted[i].below, "./", 2) == 0 || strncmp(wanted[i].below, "../", 3) == 0)
            wanted[i].below += wanted[i].below[1] == '.' ? 3 : 2;
    }
    for (size_t i = 0; is_left && project->staged && i < whit_changes_count(project->staged); i++)
        if (whit_changes_at(project->staged, i)->is)
            is_left = find_headers(list, whit_changes_at(project->staged, i)->path);
    if (is_left) (void)whit_walk(project->folder, &how, find_headers, list);
}

/* ---- Python ---------------------------------------------------------------------------------------- */

/* Copies a dotted name without blanks; *n_first gets the length of its first part. Returns false if it is relative. */
static bool module_name(const whit_review_text *t, const whit_parse_mention *m, char name[MODULE_BYTES_MAX],
                        size_t *n_first)
{
    size_t n = 0;
    if (!m->imports || m->n_dots) return false;
    for (uint32_t i = 0; i < m->n_name && n + 1 < MODULE_BYTES_MAX; i++) {
        const char c = t->text[m->name + i];
        if (whit_review_is_word(c) || c == '.') name[n++] = c;
    }
    name[n] = 0;
    *n_first = strcspn(name, ".");
    return *n_first > 0;
}

static size_t skip_blanks(const char *text, size_t n, size_t at)
{
    while (at < n &&
           (text[at] == ' ' || text[at] == '\t' || text[at] == '\f' ||
            (text[at] == '\\' && at + 1 < n && isspace((uint8_t)text[at + 1])) ||
            (at && isspace((uint8_t)text[at]) && text[at - 1] == '\\') ||
            (at > 1 && text[at] == '\n' && text[at - 1] == '\r' && text[at - 2] == '\\')))
        at++;
    return at;
}

/* Returns whether all names of the module are imported ("from a import *"). */
static bool imports_all(const whit_review_text *t, const whit_parse_mention *m)
{
    size_t at = skip_blanks(t->text, t->n, m->name + m->n_name);
    if (t->n - at < 6 || memcmp(t->text + at, "import", 6) != 0) return false;
    at = skip_blanks(t->text, t->n, at + 6);
    return at < t->n && t->text[at] == '*';
}

/* Returns whether a text imports a module: its first part, or with is_whole the whole name; with is_all, all names. */
static bool imports_module(const whit_review_text *t, const char *name, bool is_whole, bool is_all)
{
    char other[MODULE_BYTES_MAX];
    const size_t n_wanted = strcspn(name, ".");
    size_t n_first;
    for (size_t i = 0; i < t->parse->n_mentions; i++) {
        const whit_parse_mention *m = &t->parse->mentions[i];
        if (!module_name(t, m, other, &n_first)) continue;
        const bool is_same =
            is_whole ? strcmp(name, other) == 0 : n_first == n_wanted && memcmp(name, other, n_first) == 0;
        if (is_same && (!is_all || imports_all(t, m))) return true;
    }
    return false;
}

static const char *find_python(const whit_review_text *before, const whit_review_text *after,
                               const whit_review_project *project, char room[WHIT_REASON_BYTES])
{
    char name[MODULE_BYTES_MAX], first[MODULE_BYTES_MAX];
    size_t n_first, n_imports = 0;
    for (size_t i = 0; i < after->parse->n_mentions; i++) {
        const whit_parse_mention *m = &after->parse->mentions[i];
        if (!module_name(after, m, name, &n_first)) continue;
        if (++n_imports > IMPORTS_MAX) return TOO_MANY;
        const bool is_part = is_listed(name, python_parts, COUNT(python_parts)), is_all = imports_all(after, m);
        const bool is_old = imports_module(before, name, is_part, false);
        snprintf(first, sizeof first, "%.*s", (int)n_first, name);
        const bool is_known = !is_part && is_listed(first, python_modules, COUNT(python_modules));
        if ((is_old || is_known) && (!is_all || imports_module(before, name, true, true))) continue;
        if (is_own_module(project, after->path, first)) continue;
        return is_old || is_known ? tell_module("it imports all names of ", name, ", which is not of the project", room)
                                  : tell_module("it imports ", name, UNKNOWN, room);
    }
    return NULL;
}

/* ---- C --------------------------------------------------------------------------------------------- */

/* Lists the new headers of a text that are not known to be harmless. Returns false if there are too many, or if memory
 * runs out. */
static bool list_headers(const whit_review_text *before, const whit_review_text *after, whit_buf *list)
{
    size_t n_imports = 0;
    for (size_t i = 0; i < after->parse->n_mentions; i++) {
        const whit_parse_mention *m = &after->parse->mentions[i];
        struct wanted wanted = {.found = false};
        if (!m->imports) continue;
        if (++n_imports > IMPORTS_MAX) return false;
        if (whit_review_imports_name(before, after->text + m->name, m->n_name)) continue;
        snprintf(wanted.name, sizeof wanted.name, "%.*s", (int)m->n_name, after->text + m->name);
        const bool is_whole = strlen(wanted.name) == m->n_name;
        if (is_whole && is_listed(wanted.name, c_headers, COUNT(c_headers))) continue;
        if (!whit_buf_append(list, &wanted, sizeof wanted)) return false;
    }
    return true;
}

static const char *find_c(const whit_review_text *before, const whit_review_text *after,
                          const whit_review_project *project, char room[WHIT_REASON_BYTES])
{
    whit_buf list = {0};
    const char *reason = NULL;
    if (!list_headers(before, after, &list)) reason = TOO_MANY;
    if (!reason) find_own_headers(project, &list);
    const struct wanted *wanted = WHIT_ITEMS(const struct wanted, &list);
    for (size_t i = 0; !reason && i < list.size_bytes / sizeof *wanted; i++)
        if (!wanted[i].found) reason = tell_module("it includes ", wanted[i].name, UNKNOWN, room);
    whit_buf_free(&list);
    return reason;
}

/* ---- JavaScript ------------------------------------------------------------------------------------ */

static bool is_javascript(const whit_review_text *t)
{
    static const char *const endings[] = {".js",  ".mjs", ".cjs",    ".ts",    ".mts",  ".cts", ".jsx",
                                          ".tsx", ".vue", ".svelte", ".astro", ".html", ".htm", ".xhtml"};
    const char *dot = strrchr(t->path, '.'), *end = t->n ? memchr(t->text, '\n', t->n) : NULL;
    const size_t n_line = end ? (size_t)(end - t->text) : 0;
    for (size_t i = 0; dot && i < COUNT(endings); i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    return n_line > 2 && memcmp(t->text, "#!", 2) == 0 &&
        (memmem(t->text, n_line, "node", 4) || memmem(t->text, n_line, "deno", 4) || memmem(t->text, n_line, "bun", 3));
}

/* Skips blanks, line ends and comments. */
static size_t skip_space(const whit_review_text *t, size_t at)
{
    for (;;) {
        while (at < t->n && isspace((uint8_t)t->text[at])) at++;
        if (at + 1 >= t->n || t->text[at] != '/' || (t->text[at + 1] != '*' && t->text[at + 1] != '/')) return at;
        const char *stop = t->text[at + 1] == '/' ? "\n" : "*/";
        const char *end = memmem(t->text + at + 2, t->n - at - 2, stop, strlen(stop));
        if (!end) return t->n;
        at = (size_t)(end - t->text) + strlen(stop);
    }
}

typedef struct js_import {
    char name[MODULE_BYTES_MAX]; /* "": the name is computed */
} js_import;

/* Finds the next import of a module at or after *at, and moves *at after it: a string after `from`, `import` or
 * `require`, with or without a bracket. */
static bool next_import(const whit_review_text *t, size_t *at, js_import *import)
{
    static const char *const words[] = {"require", "import", "from"};
    for (size_t n = 1; *at < t->n; *at += n, n = 1) {
        if (!whit_review_is_word(t->text[*at])) continue;
        while (*at + n < t->n && whit_review_is_word(t->text[*at + n])) n++;
        size_t i = 0, next = skip_space(t, *at + n);
        while (i < COUNT(words) && !(strlen(words[i]) == n && memcmp(t->text + *at, words[i], n) == 0)) i++;
        if (i == COUNT(words) || next >= t->n || (*at && t->text[*at - 1] == '.')) continue;
        const bool is_called = i < 2 && t->text[next] == '(';
        if (is_called) next = skip_space(t, next + 1);
        const char quote = next < t->n ? t->text[next] : 0;
        const char *end = quote && strchr("'\"`", quote) ? memchr(t->text + next + 1, quote, t->n - next - 1) : NULL;
        const size_t n_name = end ? (size_t)(end - t->text) - next - 1 : 0;
        *import = (js_import){0};
        if (!end && !is_called) continue;
        if (end && n_name < MODULE_BYTES_MAX) memcpy(import->name, t->text + next + 1, n_name);
        const size_t after = end ? skip_space(t, next + n_name + 2) : 0;
        const bool is_computed = (is_called && end && after < t->n && !strchr("),", t->text[after])) ||
            strpbrk(import->name, "$\\\n") != NULL;
        if (is_computed) *import->name = 0;
        *at += n;
        return true;
    }
    return false;
}

static bool imports_text(const whit_review_text *t, const char *name)
{
    js_import import;
    for (size_t at = 0; next_import(t, &at, &import);)
        if (strcmp(import.name, name) == 0) return true;
    return false;
}

/* Returns whether a name leads to a file of the project, or to a harmless module of Node.js. */
static bool is_harmless_js(const char *name)
{
    static const char *const own[] = {"./", "../", "#", "@/", "~/"};
    char first[MODULE_BYTES_MAX];
    for (size_t i = 0; i < COUNT(own); i++)
        if (strncmp(name, own[i], strlen(own[i])) == 0) return true;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return true;
    if (strncmp(name, "node:", 5) == 0) name += 5;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(name, "/"), name);
    return is_listed(first, node_modules, COUNT(node_modules));
}

static const char *find_js(const whit_review_text *before, const whit_review_text *after, char room[WHIT_REASON_BYTES])
{
    js_import import;
    size_t n_imports = 0;
    for (size_t at = 0; next_import(after, &at, &import);) {
        if (++n_imports > IMPORTS_MAX) return TOO_MANY;
        if ((*import.name && is_harmless_js(import.name)) || imports_text(before, import.name)) continue;
        return *import.name ? tell_module("it imports ", import.name, UNKNOWN, room)
                            : "it imports a module whose name is computed";
    }
    return NULL;
}

const char *whit_review_imports(const whit_review_text *before, const whit_review_text *after,
                                const whit_review_project *project, char room[WHIT_REASON_BYTES])
{
    switch (after->language) {
    case WHIT_CODE_C: return find_c(before, after, project, room);
    case WHIT_CODE_PYTHON: return find_python(before, after, project, room);
    case WHIT_CODE_OTHER: return is_javascript(after) ? find_js(before, after, room) : NULL;
    default: return NULL;
    }
}
