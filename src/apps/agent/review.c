/* SPDX-License-Identifier: MIT */
#include "agent/review.h"

#include "agent/review_expected.h"
#include "agent/review_imports.h"
#include "agent/review_text.h"
#include "base/hash.h"
#include "base/items.h"
#include "code/diff.h"
#include "code/parse.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <utf8proc.h>

#define STATEMENT_BYTES 4096 /* maximum number of bytes of a statement that are compared */
#define ALIASES_MAX     1000
#define CHANGES_TEST    "it changes a test that is there, which may leave fewer checks"

/* ---- names that need a review ------------------------------------------------------------------ */

enum rule {
    RUNS, /* the name runs programs or runs text as code; a use is old if the whole function around it is unchanged */
    /* the name writes out of bounds, or to a file name that another process may take; a use is old if its statement is
     * unchanged */
    UNSAFE,
};

static const struct flagged {
    whit_code_language language;
    enum rule rule;
    const char *name, *reason;
} flagged[] = {
#define FLAG(language, rule, name)                                                                                     \
    {                                                                                                                  \
        WHIT_CODE_##language, rule, name, "it adds a call of " name "()"                                               \
    }
#define C_RUNS(name)   FLAG(C, RUNS, name)
#define C_UNSAFE(name) FLAG(C, UNSAFE, name)
#define C_USE(name)                                                                                                    \
    {                                                                                                                  \
        WHIT_CODE_C, RUNS, name, "it adds a use of " name                                                              \
    }
#define C_STARTS(name)                                                                                                 \
    {                                                                                                                  \
        WHIT_CODE_C, UNSAFE, name, "it may add code that runs without a call: " name                                   \
    }
#define PYTHON(name) FLAG(PYTHON, RUNS, name)
#define OTHER(name)  FLAG(OTHER, RUNS, name)
    C_RUNS("system"),
    C_RUNS("popen"),
    C_RUNS("execl"),
    C_RUNS("execle"),
    C_RUNS("execlp"),
    C_RUNS("execv"),
    C_RUNS("execve"),
    C_RUNS("execvp"),
    C_RUNS("execvpe"),
    C_RUNS("execveat"),
    C_RUNS("fexecve"),
    C_RUNS("posix_spawn"),
    C_RUNS("posix_spawnp"),
    C_RUNS("wordexp"),
    C_RUNS("dlopen"),
    C_RUNS("dlmopen"),
    C_RUNS("dlsym"),
    C_RUNS("syscall"),
    C_RUNS("_popen"),
    C_RUNS("_wsystem"),
    C_RUNS("_execl"),
    C_RUNS("_execv"),
    C_RUNS("_execvp"),
    C_RUNS("_spawnl"),
    C_RUNS("_spawnv"),
    C_RUNS("_spawnvp"),
    C_RUNS("_spawnlp"),
    C_RUNS("_spawnve"),
    C_RUNS("_spawnvpe"),
    C_RUNS("_execve"),
    C_RUNS("_execvpe"),
    C_RUNS("_IO_popen"),
    C_RUNS("_IO_proc_open"),
    C_RUNS("g_spawn_sync"),
    C_RUNS("g_spawn_async"),
    C_RUNS("g_spawn_command_line_sync"),
    C_RUNS("g_spawn_command_line_async"),
    C_RUNS("QProcess"),
    C_RUNS("WinExec"),
    C_RUNS("CreateProcess"),
    C_RUNS("CreateProcessA"),
    C_RUNS("CreateProcessW"),
    C_RUNS("ShellExecute"),
    C_RUNS("ShellExecuteA"),
    C_RUNS("ShellExecuteW"),
    C_RUNS("LoadLibrary"),
    C_RUNS("LoadLibraryA"),
    C_RUNS("LoadLibraryW"),
    C_RUNS("execvP"),
    C_RUNS("exect"),
    C_RUNS("__libc_system"),
    C_RUNS("__libc_dlopen_mode"),
    C_RUNS("g_subprocess_new"),
    C_RUNS("g_subprocess_newv"),
    C_RUNS("g_spawn_async_with_pipes"),
    C_RUNS("g_spawn_async_with_pipes_and_fds"),
    C_RUNS("g_spawn_async_with_fds"),
    C_RUNS("g_module_open"),
    C_RUNS("_wpopen"),
    C_RUNS("_wexecl"),
    C_RUNS("_wexecle"),
    C_RUNS("_wexeclp"),
    C_RUNS("_wexeclpe"),
    C_RUNS("_wexecv"),
    C_RUNS("_wexecve"),
    C_RUNS("_wexecvp"),
    C_RUNS("_wexecvpe"),
    C_RUNS("_wspawnl"),
    C_RUNS("_wspawnle"),
    C_RUNS("_wspawnlp"),
    C_RUNS("_wspawnlpe"),
    C_RUNS("_wspawnv"),
    C_RUNS("_wspawnve"),
    C_RUNS("_wspawnvp"),
    C_RUNS("_wspawnvpe"),
    C_RUNS("_execle"),
    C_RUNS("_execlp"),
    C_RUNS("_execlpe"),
    C_RUNS("_spawnle"),
    C_RUNS("_spawnlpe"),
    C_RUNS("CreateProcessAsUserA"),
    C_RUNS("CreateProcessAsUserW"),
    C_RUNS("CreateProcessWithLogonW"),
    C_RUNS("CreateProcessWithTokenW"),
    C_RUNS("ShellExecuteEx"),
    C_RUNS("ShellExecuteExA"),
    C_RUNS("ShellExecuteExW"),
    C_RUNS("LoadLibraryEx"),
    C_RUNS("LoadLibraryExA"),
    C_RUNS("LoadLibraryExW"),
    C_RUNS("LoadPackagedLibrary"),
    C_RUNS("PyRun_SimpleString"),
    C_RUNS("PyRun_SimpleFile"),
    C_RUNS("PyRun_String"),
    C_RUNS("PyRun_File"),
    C_RUNS("luaL_dostring"),
    C_RUNS("luaL_loadstring"),
    C_RUNS("luaL_dofile"),
    C_RUNS("luaL_loadfile"),
    C_RUNS("Tcl_Eval"),
    C_RUNS("Tcl_EvalFile"),
    C_RUNS("JS_Eval"),
    C_RUNS("vfork"),
    C_RUNS("clone"),
    C_RUNS("clone3"),
    C_RUNS("memfd_create"),
    C_USE("PROT_EXEC"),
    C_STARTS("constructor"),
    C_STARTS("__constructor__"),
    C_STARTS("destructor"),
    C_STARTS("__destructor__"),
    C_STARTS("ifunc"),
    C_STARTS("__ifunc__"),
    C_STARTS("__section__"),
    C_UNSAFE("gets"),
    C_UNSAFE("strcpy"),
    C_UNSAFE("strcat"),
    C_UNSAFE("stpcpy"),
    C_UNSAFE("wcscpy"),
    C_UNSAFE("wcscat"),
    C_UNSAFE("sprintf"),
    C_UNSAFE("vsprintf"),
    C_UNSAFE("tmpnam"),
    C_UNSAFE("tempnam"),
    C_UNSAFE("mktemp"),
    /* Python modules are listed too, since only the import shows a use such as `from subprocess import run as r`. */
    PYTHON("eval"),
    PYTHON("exec"),
    PYTHON("compile"),
    PYTHON("__import__"),
    PYTHON("system"),
    PYTHON("popen"),
    PYTHON("Popen"),
    PYTHON("check_call"),
    PYTHON("check_output"),
    PYTHON("getoutput"),
    PYTHON("getstatusoutput"),
    PYTHON("execl"),
    PYTHON("execle"),
    PYTHON("execlp"),
    PYTHON("execlpe"),
    PYTHON("execv"),
    PYTHON("execve"),
    PYTHON("execvp"),
    PYTHON("execvpe"),
    PYTHON("spawnl"),
    PYTHON("spawnle"),
    PYTHON("spawnlp"),
    PYTHON("spawnlpe"),
    PYTHON("spawnv"),
    PYTHON("spawnve"),
    PYTHON("spawnvp"),
    PYTHON("spawnvpe"),
    PYTHON("posix_spawn"),
    PYTHON("posix_spawnp"),
    PYTHON("startfile"),
    PYTHON("create_subprocess_exec"),
    PYTHON("create_subprocess_shell"),
    PYTHON("import_module"),
    PYTHON("run_path"),
    PYTHON("run_module"),
    PYTHON("rmtree"),
    PYTHON("subprocess"),
    PYTHON("pickle"),
    PYTHON("cPickle"),
    PYTHON("dill"),
    PYTHON("cloudpickle"),
    PYTHON("marshal"),
    PYTHON("shelve"),
    PYTHON("ctypes"),
    PYTHON("cffi"),
    PYTHON("pty"),
    PYTHON("importlib"),
    PYTHON("runpy"),
    PYTHON("builtins"),
    PYTHON("__builtins__"),
    PYTHON("pexpect"),
    PYTHON("unsafe_load"),
    PYTHON("UnsafeLoader"),
    PYTHON("timeit"),
    PYTHON("cProfile"),
    PYTHON("pdb"),
    PYTHON("bdb"),
    PYTHON("webbrowser"),
    PYTHON("runsource"),
    PYTHON("runcode"),
    PYTHON("InteractiveInterpreter"),
    PYTHON("InteractiveConsole"),
    PYTHON("_posixsubprocess"),
    PYTHON("pipepager"),
    PYTHON("tempfilepager"),
    PYTHON("zipimport"),
    PYTHON("load_source"),
    PYTHON("addsitedir"),
    PYTHON("read_pickle"),
    PYTHON("allow_pickle"),
    PYTHON("joblib"),
    PYTHON("jsonpickle"),
    PYTHON("FunctionType"),
    PYTHON("LambdaType"),
    PYTHON("CodeType"),
    PYTHON("load_extension"),
    PYTHON("dictConfig"),
    PYTHON("fileConfig"),
    PYTHON("resolve_name"),
    PYTHON("pydoc"),
    PYTHON("doctest"),
    PYTHON("distutils"),
    PYTHON("ensurepip"),
    PYTHON("script_helper"),
    PYTHON("spawn"),
    PYTHON("subprocess_exec"),
    PYTHON("subprocess_shell"),
    PYTHON("_popen"),
    PYTHON("pipes"),
    PYTHON("interact"),
    PYTHON("_ctypes"),
    PYTHON("__loader__"),
    PYTHON("load_module"),
    PYTHON("exec_module"),
    PYTHON("get_objects"),
    PYTHON("get_referrers"),
    PYTHON("run_string"),
    PYTHON("_xxsubinterpreters"),
    PYTHON("_interpreters"),
    PYTHON("InterpreterPoolExecutor"),
    PYTHON("runctx"),
    PYTHON("Tcl"),
    PYTHON("get_type_hints"),
    PYTHON("spawnv_passfds"),
    PYTHON("set_executable"),
    PYTHON("CGIHTTPRequestHandler"),
    PYTHON("load_dynamic"),
    PYTHON("load_compiled"),
    PYTHON("c2py"),
    PYTHON("enable_load_extension"),
    PYTHON("getattr_static"),
    PYTHON("breakpoint"),
    PYTHON("importorskip"),
    PYTHON("pytest_plugins"),
    PYTHON("pytester"),
    PYTHON("testdir"),
    PYTHON("eval_str"),
    PYTHON("f_globals"),
    PYTHON("f_builtins"),
    PYTHON("_create_fn"),
    PYTHON("loadTestsFromName"),
    PYTHON("loadTestsFromNames"),
    OTHER("eval"),
    OTHER("system"),
    OTHER("popen"),
    OTHER("execSync"),
    OTHER("execFile"),
    OTHER("execFileSync"),
    OTHER("spawn"),
    OTHER("spawnSync"),
    OTHER("Function"),
    OTHER("runInNewContext"),
    OTHER("runInThisContext"),
    OTHER("instance_eval"),
    OTHER("class_eval"),
    OTHER("shell_exec"),
    OTHER("passthru"),
    OTHER("proc_open"),
    OTHER("pcntl_exec"),
    OTHER("getRuntime"),
    OTHER("ProcessBuilder"),
    OTHER("child_process"),
#undef FLAG
};
enum { N_FLAGGED = sizeof flagged / sizeof *flagged };

/* Returns whether a name runs code only as a builtin function, not as a method: re.compile() and cursor.exec() are
 * harmless. */
static bool is_builtin(const char *name)
{
    return strcmp(name, "compile") == 0 || strcmp(name, "eval") == 0 || strcmp(name, "exec") == 0;
}

static bool same_name(const char *text, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(text, name, n) == 0;
}

/* ---- one side of a change ---------------------------------------------------------------------- */

struct span {
    uint32_t begin, n;
};

typedef struct side {
    const char *text;
    size_t n;
    whit_code_language language;
    whit_review_text raw;
    whit_parse parse;
    whit_buf lines;   /* size_t[]: offset of the beginning of each line, then of the text's end */
    whit_buf digests; /* digest of each definition's text, then of the whole text */
    whit_buf aliases; /* struct span[]: names through which this file uses flagged names */
} side;

static const whit_parse_definition *definition_at(const side *s, uint32_t i)
{
    return &s->parse.definitions[i];
}

static void close_side(side *s)
{
    whit_parse_free(&s->parse);
    whit_buf_free(&s->lines);
    whit_buf_free(&s->digests);
    whit_buf_free(&s->aliases);
}

/* Converts a Python identifier to its normal form (NFKC), as Python does: it treats compatible characters such as wide
 * or bold letters as the same. Returns the new length; *name points into `folded` if it changed. */
static size_t fold_name(const char **name, size_t n, char *folded, size_t room)
{
    utf8proc_uint8_t *made = NULL;
    bool is_plain = true;
    for (size_t i = 0; i < n; i++) is_plain = is_plain && (uint8_t)(*name)[i] < 0x80;
    if (is_plain) return n;
    utf8proc_ssize_t got = utf8proc_map((const utf8proc_uint8_t *)*name, (utf8proc_ssize_t)n, &made,
                                        (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT));
    if (got > 0 && (size_t)got <= room) {
        memcpy(folded, made, (size_t)got);
        *name = folded;
        n = (size_t)got;
    }
    free(made);
    return n;
}

/* Returns the row of `flagged` for a mention, or -1. For a dotted import, only the first part of the module's name is
 * looked up. */
static int find_flagged(const side *s, const whit_parse_mention *m)
{
    whit_code_language language = s->language == WHIT_CODE_SCRIPT ? WHIT_CODE_OTHER : s->language;
    const char *name = s->text + m->name, *dot = m->imports ? memchr(name, '.', m->n_name) : NULL;
    size_t n = dot && dot > name ? (size_t)(dot - name) : m->n_name;
    char folded[64];
    if (language == WHIT_CODE_PYTHON) n = fold_name(&name, n, folded, sizeof folded);
    for (int k = 0; k < N_FLAGGED; k++) {
        if (flagged[k].language != language || !same_name(name, n, flagged[k].name)) continue;
        bool is_method = m->name && s->text[m->name - 1] == '.';
        if (language == WHIT_CODE_PYTHON && is_method && is_builtin(flagged[k].name)) continue;
        /* many variables and methods are called clone */
        const bool is_member = is_method || (m->name && s->text[m->name - 1] == '>');
        if (language == WHIT_CODE_C && (is_member || !m->calls) && strcmp(flagged[k].name, "clone") == 0) continue;
        return k;
    }
    return -1;
}

static void add_alias(side *s, size_t begin, size_t n)
{
    const struct span span = {(uint32_t)begin, (uint32_t)n};
    whit_buf_append(&s->aliases, &span, sizeof span);
}

/* Adds as aliases the names that `import a as b` and `from a import b, c as d` bind, from offset `at` to the
 * statement's end. */
static void add_imported(side *s, size_t at)
{
    int depth = 0;
    bool binds = false; /* the words that follow are bound names: "import" or "as" was read */
    for (; at < s->n; at++) {
        char c = s->text[at];
        depth += (c == '(') - (c == ')');
        if ((c == '\n' && depth <= 0 && !(at && s->text[at - 1] == '\\')) || c == ';') return;
        if (!whit_review_is_word(c)) continue;
        size_t n = 0;
        while (at + n < s->n && whit_review_is_word(s->text[at + n])) n++;
        bool is_keyword = same_name(s->text + at, n, "import") || same_name(s->text + at, n, "as");
        if (binds && !is_keyword) add_alias(s, at, n);
        binds = binds || is_keyword;
        at += n - 1;
    }
}

static size_t line_begin(const side *s, size_t line) /* lines are counted from 1 */
{
    size_t n = s->lines.size_bytes / sizeof(size_t);
    return (WHIT_ITEMS(const size_t, &s->lines))[line - 1 < n ? line - 1 : n - 1];
}

/* Returns whether a mention names a module or a name imported from one. The parser treats the words of `from a import
 * b` as plain mentions, so the line is checked. */
static bool is_imported(const side *s, const whit_parse_mention *m)
{
    if (m->imports || s->language != WHIT_CODE_PYTHON) return m->imports;
    size_t at = line_begin(s, m->line);
    while (at < m->name && (s->text[at] == ' ' || s->text[at] == '\t')) at++;
    return m->name - at > 5 && memcmp(s->text + at, "from ", 5) == 0;
}

/* Finds the aliases: macros, variables, functions and imported names through which this file uses a flagged name that
 * runs programs. */
static void find_aliases(side *s)
{
    for (size_t i = 0; i < s->parse.n_mentions; i++) {
        const whit_parse_mention *m = &s->parse.mentions[i];
        int k = find_flagged(s, m);
        if (k < 0 || flagged[k].rule != RUNS) continue;
        if (is_imported(s, m)) {
            add_imported(s, line_begin(s, m->line));
        } else if (m->inside != WHIT_PARSE_NONE) {
            add_alias(s, definition_at(s, m->inside)->name, definition_at(s, m->inside)->n_name);
        } else {
            for (uint32_t d = 0; d < s->parse.n_definitions; d++)
                if (definition_at(s, d)->line == m->line)
                    add_alias(s, definition_at(s, d)->name, definition_at(s, d)->n_name);
        }
    }
}

static void hash_span(const side *s, size_t begin, size_t end, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "agent-review");
    if (end > begin) whit_hash_add(&hash, s->text + begin, end - begin);
    whit_hash_end(&hash, digest);
}

/* Returns the digest of definition i; i = s->parse.n_definitions: digest of the whole text. */
static const uint8_t *digest_at(const side *s, size_t i)
{
    return s->digests.data + i * WHIT_HASH_BYTES;
}

static bool open_side(side *s, const char *path, const char *text, size_t n)
{
    uint8_t digest[WHIT_HASH_BYTES];
    *s = (side){.text = n ? text : "", .n = n};
    s->language = whit_review_language(path, s->text, n);
    s->raw = (whit_review_text){path, s->text, n, s->language, &s->parse};
    whit_parse_text(&s->parse, s->language, s->text, n);
    for (size_t at = 0; at < n;) {
        whit_buf_append(&s->lines, &at, sizeof at);
        const char *end = memchr(s->text + at, '\n', n - at);
        at = end ? (size_t)(end - s->text) + 1 : n;
    }
    if (!whit_buf_append(&s->lines, &n, sizeof n)) return false;
    for (uint32_t d = 0; d < s->parse.n_definitions; d++) {
        hash_span(s, line_begin(s, definition_at(s, d)->line), line_begin(s, (size_t)definition_at(s, d)->end_line + 1),
                  digest);
        whit_buf_append(&s->digests, digest, sizeof digest);
    }
    hash_span(s, 0, n, digest);
    whit_buf_append(&s->digests, digest, sizeof digest);
    find_aliases(s);
    return !s->parse.failed && !s->digests.failed && !s->aliases.failed;
}

/* Returns the end of the statement around a name: the first ';' or, except in C, line end outside all brackets.
 * Searches at most STATEMENT_BYTES. */
static size_t statement_end(const side *s, size_t at)
{
    int depth = 0;
    for (size_t end = at + STATEMENT_BYTES; at < s->n && at < end; at++) {
        char c = s->text[at];
        depth += (c == '(' || c == '{' || c == '[') - (c == ')' || c == '}' || c == ']');
        if (c == ';' && depth <= 0) return at;
        if (c == '\n' && depth <= 0 && s->language != WHIT_CODE_C) return at;
    }
    return at;
}

struct use {
    uint8_t digest[WHIT_HASH_BYTES];
    int row; /* row of `flagged`; N_FLAGGED: the name is an alias */
};

/* Hashes the text that must be unchanged for a mention to count as old. For an import, and for a name that does not run
 * programs, that is the statement. For a name that runs programs it is the whole function; outside functions, or in a
 * language whose function ends are not parsed, it is the whole file, or in C the statement. */
static struct use use_of(const side *s, const whit_parse_mention *m, int row, enum rule rule)
{
    struct use use = {.row = row};
    bool has_ends = s->language == WHIT_CODE_C || s->language == WHIT_CODE_PYTHON;
    bool is_whole = rule == RUNS && !is_imported(s, m);
    size_t begin = line_begin(s, m->line);
    if (is_whole && m->inside != WHIT_PARSE_NONE && has_ends)
        memcpy(use.digest, digest_at(s, m->inside), sizeof use.digest);
    else if (is_whole && s->language != WHIT_CODE_C)
        memcpy(use.digest, digest_at(s, s->parse.n_definitions), sizeof use.digest);
    else
        hash_span(s, m->name - begin < STATEMENT_BYTES ? begin : m->name, statement_end(s, m->name), use.digest);
    return use;
}

static bool is_alias(const side *s, const whit_parse_mention *m)
{
    const struct span *alias = WHIT_ITEMS(const struct span, &s->aliases);
    for (size_t i = 0; i < s->aliases.size_bytes / sizeof *alias; i++)
        if (alias[i].n == m->n_name && memcmp(s->text + alias[i].begin, s->text + m->name, m->n_name) == 0) return true;
    return false;
}

static int compare_uses(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct use));
}

/* Lists the uses of flagged names and of aliases, sorted. Returns false if there are too many aliases, or if memory
 * runs out. */
static bool list_uses(const side *s, whit_buf *uses)
{
    if (s->aliases.size_bytes / sizeof(struct span) > ALIASES_MAX) return false;
    for (size_t i = 0; i < s->parse.n_mentions; i++) {
        const whit_parse_mention *m = &s->parse.mentions[i];
        int row = find_flagged(s, m);
        if (row < 0 && !is_alias(s, m)) continue;
        int flag = row < 0 ? N_FLAGGED : row;
        struct use use = use_of(s, m, flag, row < 0 ? RUNS : flagged[row].rule);
        if (!whit_buf_append(uses, &use, sizeof use)) return false;
    }
    if (uses->size_bytes) qsort(uses->data, uses->size_bytes / sizeof(struct use), sizeof(struct use), compare_uses);
    return true;
}

static bool is_same(const side *before, const side *after)
{
    return before->n == after->n && memcmp(before->text, after->text, after->n) == 0;
}

/* Returns a reason if the change adds an include of a file whose suffix is not that of C code, since such a file's
 * content was not reviewed as code. */
static const char *find_included(const side *before, const side *after)
{
    char path[PATH_MAX];
    for (size_t i = 0; after->language == WHIT_CODE_C && i < after->parse.n_mentions; i++) {
        const whit_parse_mention *m = &after->parse.mentions[i];
        const char *name = after->text + m->name;
        /* <vector> and the like are system headers */
        const bool is_system = m->name && name[-1] == '<' && !memchr(name, '.', m->n_name);
        if (!m->imports || is_system || whit_review_imports_name(&before->raw, name, m->n_name)) continue;
        snprintf(path, sizeof path, "%.*s", (int)m->n_name, name);
        if (m->n_name >= sizeof path || whit_review_language(path, "", 0) != WHIT_CODE_C)
            return "it includes a file that is not named as code";
    }
    return NULL;
}

/* Returns a reason if a changed text in a language without a full parser contains a flagged name anywhere. Strings may
 * contain code ("#{system('x')}"), and the parser does not know the comments of each language. */
static const char *find_named(const side *before, const side *after)
{
    if ((after->language != WHIT_CODE_OTHER && after->language != WHIT_CODE_SCRIPT) || is_same(before, after))
        return NULL;
    for (int k = 0; k < N_FLAGGED; k++) {
        const char *name = flagged[k].name;
        const bool is_word = strcmp(name, "system") == 0 || strcmp(name, "spawn") == 0 || strcmp(name, "Function") == 0;
        if (flagged[k].language == WHIT_CODE_OTHER && whit_review_uses(after->text, after->n, name, is_word))
            return flagged[k].reason;
    }
    return NULL;
}

static const char *find_new_use(const side *before, const side *after, const whit_review_project *project,
                                char room[WHIT_REASON_BYTES])
{
    whit_buf old = {0}, new = {0};
    const char *reason = NULL;
    bool ok = list_uses(before, &old) && list_uses(after, &new);
    const struct use *use = WHIT_ITEMS(const struct use, &new);
    for (size_t i = 0; ok && !reason && i < new.size_bytes / sizeof *use; i++) {
        if (old.size_bytes && bsearch(&use[i], old.data, old.size_bytes / sizeof *use, sizeof *use, compare_uses))
            continue;
        reason = use[i].row < N_FLAGGED ? flagged[use[i].row].reason : "it calls what runs programs";
    }
    if (!reason) reason = find_included(before, after);
    if (!reason) reason = find_named(before, after);
    if (!reason) reason = whit_review_forms(&before->raw, &after->raw);
    if (!reason) reason = whit_review_imports(&before->raw, &after->raw, project, room);
    whit_buf_free(&old);
    whit_buf_free(&new);
    return ok ? reason : "it has more calls than can be reviewed";
}

/* ---- changes of tests -------------------------------------------------------------------------- */

static bool word_is(const char *word, size_t n, const char *wanted)
{
    return strlen(wanted) == n && strncasecmp(word, wanted, n) == 0;
}

/* Returns whether a path has "e2e" as a word, which has a digit. */
static bool is_end_to_end(const char *path)
{
    for (const char *at = path; (at = strcasestr(at, "e2e")); at++)
        if ((at == path || !isalnum((uint8_t)at[-1])) && !isalnum((uint8_t)at[3])) return true;
    return false;
}

/* Returns whether the path contains a word such as "test" or "spec", or ends as the tests of Perl do. Words end at
 * capitals and at characters that are not letters. */
static bool is_test(const char *path)
{
    static const char *const words[] = {"test",      "tests",      "testing",  "unittest",   "unittests", "spec",
                                        "specs",     "testcase",   "selftest", "selftests",  "smoketest", "smoketests",
                                        "testsuite", "testsuites", "cypress",  "playwright", "cy",        "regress"};
    const size_t n_path = strlen(path);
    if (n_path > 2 && strcasecmp(path + n_path - 2, ".t") == 0) return true;
    if (is_end_to_end(path)) return true;
    for (size_t i = 0; path[i];) {
        size_t n = 0;
        if (!isalpha((uint8_t)path[i])) {
            i++;
            continue;
        }
        while (isalpha((uint8_t)path[i + n]) &&
               (n == 0 || !isupper((uint8_t)path[i + n]) || isupper((uint8_t)path[i + n - 1])))
            n++;
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (word_is(path + i, n, words[k])) return true;
        i += n;
    }
    return false;
}

static bool has_prefix(const char *name, size_t n, const char *prefix)
{
    return n >= strlen(prefix) && strncasecmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_assertion(const char *name, size_t n)
{
    static const char *const prefixes[] = {"expect", "require", "check", "should", "verify",    "ensure", "fail",
                                           "must",   "EXPECT_", "ck_",   "wanted", "XCTAssert", "fatal",  "error"};
    for (size_t i = 0; i + 6 <= n; i++)
        if (strncasecmp(name + i, "assert", 6) == 0) return true;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (has_prefix(name, n, prefixes[i])) return true;
    return false;
}

static bool is_switch(const char *name, size_t n)
{
    static const char *const words[] = {"only", "xit", "xdescribe", "xtest", "fit", "fdescribe", "pending", "NDEBUG"};
    for (size_t i = 0; i + 4 <= n; i++)
        if (strncasecmp(name + i, "skip", 4) == 0) return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (word_is(name, n, words[i])) return true;
    return has_prefix(name, n, "xfail") || has_prefix(name, n, "ignore") || has_prefix(name, n, "disable");
}

/* Counts possible ways to switch tests off: words that disable tests, definitions that replace an assertion used in
 * `before`, and in C #if, #else, #elif and #undef. */
static size_t count_switches(const side *s, const side *before)
{
    size_t count = 0;
    for (size_t i = 0; i < s->parse.n_mentions; i++)
        count += is_switch(s->text + s->parse.mentions[i].name, s->parse.mentions[i].n_name);
    for (uint32_t i = 0; i < s->parse.n_definitions; i++) {
        const whit_parse_definition *d = definition_at(s, i);
        bool is_used = false;
        for (size_t k = 0; !is_used && is_assertion(s->text + d->name, d->n_name) && k < before->parse.n_mentions; k++)
            is_used = before->parse.mentions[k].n_name == d->n_name &&
                memcmp(before->text + before->parse.mentions[k].name, s->text + d->name, d->n_name) == 0;
        count += is_used || is_switch(s->text + d->name, d->n_name);
    }
    for (size_t line = 1; s->language == WHIT_CODE_C && line < s->lines.size_bytes / sizeof(size_t); line++) {
        const char *at = s->text + line_begin(s, line), *end = s->text + line_begin(s, line + 1);
        while (at < end && (*at == ' ' || *at == '\t')) at++;
        if (at == end || *at++ != '#') continue;
        while (at < end && (*at == ' ' || *at == '\t')) at++;
        count += (end - at > 2 && memcmp(at, "if", 2) == 0) || (end - at > 2 && memcmp(at, "el", 2) == 0) ||
            (end - at > 5 && memcmp(at, "undef", 5) == 0);
    }
    return count;
}

/* Returns whether a line of the old text that is not blank is removed or changed. */
static bool takes_lines(const side *before, const side *after)
{
    whit_buf runs = {0};
    bool found = !whit_diff_lines(before->text, before->n, after->text, after->n, &runs);
    const whit_diff_run *run = WHIT_ITEMS(const whit_diff_run, &runs);
    for (size_t i = 0; !found && i < runs.size_bytes / sizeof *run; i++)
        for (size_t at = line_begin(before, run[i].old_line + 1);
             !found && at < line_begin(before, run[i].old_line + run[i].n_old + 1); at++)
            found = !isspace((uint8_t)before->text[at]);
    whit_buf_free(&runs);
    return found;
}

/* Returns the innermost definition around a line, or WHIT_PARSE_NONE. */
static uint32_t definition_of(const side *s, size_t line)
{
    uint32_t best = WHIT_PARSE_NONE;
    for (uint32_t d = 0; d < s->parse.n_definitions; d++)
        if (definition_at(s, d)->line <= line && line <= definition_at(s, d)->end_line &&
            (best == WHIT_PARSE_NONE || definition_at(s, d)->line >= definition_at(s, best)->line))
            best = d;
    return best;
}

/* Appends for each assertion the definition that contains it, or WHIT_PARSE_NONE if no definition does. */
static bool list_assertions(const side *s, whit_buf *list)
{
    for (size_t i = 0; i < s->parse.n_mentions; i++) {
        const whit_parse_mention *m = &s->parse.mentions[i];
        if (m->imports || !is_assertion(s->text + m->name, m->n_name)) continue;
        if (!whit_buf_append(list, &m->inside, sizeof m->inside)) return false;
    }
    for (size_t line = 1; s->language == WHIT_CODE_PYTHON && line < s->lines.size_bytes / sizeof(size_t); line++) {
        const char *at = s->text + line_begin(s, line), *end = s->text + line_begin(s, line + 1);
        while (at < end && (*at == ' ' || *at == '\t')) at++;
        if (end - at < 7 || memcmp(at, "assert", 6) != 0 || isalnum((uint8_t)at[6]) || at[6] == '_') continue;
        uint32_t inside = definition_of(s, line);
        if (!whit_buf_append(list, &inside, sizeof inside)) return false;
    }
    return true;
}

/* Returns whether every function with assertions is unchanged and, if an assertion is outside functions, the whole
 * file. */
static bool keeps_tests(const side *before, const side *after)
{
    whit_buf list = {0};
    bool kept = list_assertions(before, &list);
    const uint32_t *inside = WHIT_ITEMS(const uint32_t, &list);
    for (size_t i = 0; kept && i < list.size_bytes / sizeof *inside; i++) {
        if (i && inside[i] == inside[i - 1]) continue;
        kept = inside[i] == WHIT_PARSE_NONE && is_same(before, after);
        for (uint32_t d = 0; !kept && inside[i] != WHIT_PARSE_NONE && d < after->parse.n_definitions; d++)
            kept = memcmp(digest_at(before, inside[i]), digest_at(after, d), WHIT_HASH_BYTES) == 0;
    }
    whit_buf_free(&list);
    return kept;
}

static const char *find_weaker_test(const whit_change *c, const side *before, const side *after)
{
    if (!c->was || !is_test(c->path)) return NULL;
    if (takes_lines(before, after) || !keeps_tests(before, after)) return CHANGES_TEST;
    if (count_switches(after, before) > count_switches(before, before)) return "it may switch tests off";
    return NULL;
}

/* Returns a reason if a change removes or changes lines of a test with assertions in a language that the parser does
 * not know. */
static const char *find_unknown_test(const whit_change *c)
{
    static const char *const words[] = {"assert", "expect", "should", "check", "ok(", "is(", "fail", "require"};
    side before, after;
    bool says = false;
    if (!c->was || !is_test(c->path)) return NULL;
    bool ok = open_side(&before, c->path, c->before, c->before_bytes);
    ok = open_side(&after, c->path, c->after, c->after_bytes) && ok;
    for (size_t i = 0; ok && i < sizeof words / sizeof *words; i++)
        says = says || memmem(before.text, before.n, words[i], strlen(words[i]));
    const char *reason = !ok || (says && takes_lines(&before, &after)) ? CHANGES_TEST : NULL;
    close_side(&before);
    close_side(&after);
    return reason;
}

const char *whit_review_code(const whit_change *c, const whit_review_project *project, char room[WHIT_REASON_BYTES])
{
    side before, after;
    if (!c->is) return NULL;
    const char *runs = whit_review_runs(c->path, c->before, c->was ? c->before_bytes : 0, c->after, c->after_bytes);
    if (runs) return runs;
    if (whit_review_takes_expected(c)) return CHANGES_TEST;
    if (whit_review_language(c->path, c->after_bytes ? c->after : "", c->after_bytes) == WHIT_CODE_NONE)
        return find_unknown_test(c);
    bool ok = open_side(&before, c->path, c->before, c->was ? c->before_bytes : 0);
    ok = open_side(&after, c->path, c->after, c->after_bytes) && ok;
    const char *reason = ok ? find_weaker_test(c, &before, &after) : "there is not enough memory to look at its code";
    if (!reason) reason = find_new_use(&before, &after, project, room);
    close_side(&before);
    close_side(&after);
    return reason;
}
