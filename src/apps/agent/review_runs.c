/* SPDX-License-Identifier: MIT
 * Words that run programs, for languages that the parser does not know. Sources: the languages' documentation of
 * processes and of evaluating code. */
#include "agent/review_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Makes a row of the table. `kinds`: file suffixes or whole file names in lower case, separated by blanks. `text`:
 * searched as a whole word at an end that is a letter. */
#define RUNS(kinds, text)                                                                                              \
    {                                                                                                                  \
        " " kinds " ", text, "it runs programs or text as code: " text                                                 \
    }
#define RUBY    "rb rake gemspec podspec cr rakefile gemfile guardfile podfile brewfile fastfile vagrantfile"
#define WEB     "js mjs cjs ts mts cts jsx tsx vue svelte astro html htm xhtml svg"
#define DOTNET  "cs fs fsx vb"
#define JVM     "java kt kts scala sc groovy gradle clj cljc"
#define PERL    "pl pm t"
#define SHELL   "sh bash zsh ksh fish dash"
#define POWER   "ps1 psm1 psd1"
#define BATCH   "bat cmd"
#define LISP    "el lisp lsp scm rkt"
#define ML      "ml mli"
#define ERLANG  "erl hrl"
#define HASKELL "hs lhs"
#define PHP     "php phtml"
#define NODE    "package.json"

static const struct run_form {
    const char *kinds, *text, *reason;
} forms[] = {
    RUNS("rs", "process::{"),
    RUNS("rs", "process::*"),
    RUNS("rs", "process as"),
    RUNS("rs", "process;"),
    RUNS("rs", "libc::"),
    RUNS("rs", "unistd::"),
    RUNS("rs", "libloading"),
    RUNS("go", "syscall"),
    RUNS("go", "StartProcess"),
    RUNS("go", "plugin.Open"),
    RUNS("go", "x/sys"),
    RUNS(DOTNET, "Process"),
    RUNS(DOTNET, "ProcessStartInfo"),
    RUNS(DOTNET, "DllImport"),
    RUNS(DOTNET, "Assembly.Load"),
    RUNS(DOTNET, "LoadFrom"),
    RUNS(DOTNET, "UnsafeLoadFrom"),
    RUNS(DOTNET, "Assembly.LoadFile"),
    RUNS(DOTNET, "CSharpScript"),
    RUNS(DOTNET, "Shell("),
    RUNS(RUBY, "`"),
    RUNS(RUBY, "%x"),
    RUNS(RUBY, "exec"),
    RUNS(RUBY, "fork"),
    RUNS(RUBY, "Open3"),
    RUNS(RUBY, "Fiddle"),
    RUNS(RUBY, "module_eval"),
    RUNS("rake rakefile fastfile", "sh"),
    RUNS(RUBY, "open(\"|"),
    RUNS(RUBY, "open('|"),
    RUNS(RUBY, "Marshal"),
    RUNS(PHP, "`"),
    RUNS(PHP, "exec"),
    RUNS(PHP, "assert"),
    RUNS(PHP, "create_function"),
    RUNS(PHP, "unserialize"),
    RUNS("lua", "os.execute"),
    RUNS("lua", "io.popen"),
    RUNS("lua", "load"),
    RUNS("lua", "loadstring"),
    RUNS("lua", "loadfile"),
    RUNS("lua", "dofile"),
    RUNS("lua", "loadlib"),
    RUNS(PERL, "exec"),
    RUNS(PERL, "`"),
    RUNS(PERL, "qx"),
    RUNS(PERL, "-|"),
    RUNS(PERL, "|-"),
    RUNS(WEB, "child_"),
    RUNS(WEB, "Deno.run"),
    RUNS(WEB, "Deno.Command"),
    RUNS(WEB, "Bun"),
    RUNS(WEB, "process.binding"),
    RUNS(WEB, "process.dlopen"),
    RUNS(WEB, "mainModule"),
    RUNS(WEB, "data:text/javascript"),
    RUNS(WEB, "setTimeout(\""),
    RUNS(WEB, "setTimeout('"),
    RUNS(WEB, "setInterval(\""),
    RUNS(WEB, "setInterval('"),
    RUNS(WEB, "constructor.constructor"),
    RUNS(WEB, "worker_threads"),
    RUNS("ex exs", "System.cmd"),
    RUNS("ex exs", "System.shell"),
    RUNS("ex exs", ":os"),
    RUNS("ex exs", "Port"),
    RUNS("ex exs", "Code"),
    RUNS(ERLANG, "os:cmd"),
    RUNS(ERLANG, "open_port"),
    RUNS(ERLANG, "erl_eval"),
    RUNS("jl", "run("),
    RUNS("jl", "`"),
    RUNS("jl", "ccall"),
    RUNS("jl", "include_string"),
    RUNS("swift", "Process"),
    RUNS("swift", "NSTask"),
    RUNS("swift", "posix_spawn"),
    RUNS("swift", "dlopen"),
    RUNS(HASKELL, "System.Process"),
    RUNS(HASKELL, "System.Posix"),
    RUNS(HASKELL, "foreign import"),
    RUNS(HASKELL, "Turtle"),
    RUNS("scala sc", "sys.process"),
    RUNS(JVM, "Runtime"),
    RUNS(JVM, "defineClass"),
    RUNS(JVM, "URLClassLoader"),
    RUNS(JVM, "System.load"),
    RUNS(JVM, "System.loadLibrary"),
    RUNS(JVM, "ScriptEngineManager"),
    RUNS(JVM, "ObjectInputStream"),
    RUNS("groovy gradle", "execute"),
    RUNS("groovy gradle kts", "exec"),
    RUNS("clj cljc", "shell"),
    RUNS("clj cljc", "load-string"),
    RUNS("r", "system"),
    RUNS("r", "system2"),
    RUNS("r", "shell"),
    RUNS("r", "parse(text"),
    RUNS("r", "dyn.load"),
    RUNS("nim nims", "execShellCmd"),
    RUNS("nim nims", "execProcess"),
    RUNS("nim nims", "execProcesses"),
    RUNS("nim nims", "execCmd"),
    RUNS("nim nims", "execCmdEx"),
    RUNS("nim nims", "startProcess"),
    RUNS("nim nims", "staticExec"),
    RUNS("nim nims", "gorge"),
    RUNS("nim nims", "gorgeEx"),
    RUNS("nim nims", "exec"),
    RUNS("zig", "process.Child"),
    RUNS("zig", "ChildProcess"),
    RUNS("zig", "execv"),
    RUNS("zig", "execve"),
    RUNS("zig", "DynLib"),
    RUNS(ML, "Sys.command"),
    RUNS(ML, "Unix.system"),
    RUNS(ML, "UnixLabels.system"),
    RUNS(ML, "execv"),
    RUNS(ML, "execve"),
    RUNS(ML, "execvp"),
    RUNS(ML, "execvpe"),
    RUNS(ML, "open_process"),
    RUNS(ML, "open_process_in"),
    RUNS(ML, "open_process_out"),
    RUNS(ML, "open_process_full"),
    RUNS(ML, "open_process_args"),
    RUNS(ML, "open_process_args_in"),
    RUNS(ML, "open_process_args_out"),
    RUNS(ML, "open_process_args_full"),
    RUNS(ML, "create_process"),
    RUNS(ML, "create_process_env"),
    RUNS(ML, "Dynlink"),
    RUNS(POWER, "Invoke-Expression"),
    RUNS(POWER, "iex"),
    RUNS(POWER, "Start-Process"),
    RUNS(POWER, "DownloadString"),
    RUNS(POWER, "Invoke-WebRequest"),
    RUNS(POWER, "Invoke-RestMethod"),
    RUNS(POWER, "Add-Type"),
    RUNS(POWER, "EncodedCommand"),
    RUNS(BATCH, "start"),
    RUNS(BATCH, "powershell"),
    RUNS(BATCH, "certutil"),
    RUNS(BATCH, "bitsadmin"),
    RUNS(BATCH, "curl"),
    RUNS(SHELL, "curl"),
    RUNS(SHELL, "wget"),
    RUNS(SHELL, "nc"),
    RUNS(SHELL, "/dev/tcp"),
    RUNS(SHELL, "| sh"),
    RUNS(SHELL, "|sh"),
    RUNS(SHELL, "| bash"),
    RUNS(SHELL, "|bash"),
    RUNS(SHELL, "base64"),
    RUNS(SHELL, "sudo"),
    RUNS("vim", "system"),
    RUNS("vim", "systemlist"),
    RUNS("vim", "job_start"),
    RUNS("vim", "execute"),
    RUNS("vim", "!"),
    RUNS(LISP, "shell-command"),
    RUNS(LISP, "call-process"),
    RUNS(LISP, "start-process"),
    RUNS(LISP, "make-process"),
    RUNS(LISP, "run-program"),
    RUNS(LISP, "(system"),
    RUNS("cmake cmakelists.txt", "execute_process"),
    RUNS("meson.build", "run_command"),
    RUNS(NODE, "\"preinstall\""),
    RUNS(NODE, "\"install\""),
    RUNS(NODE, "\"postinstall\""),
    RUNS(NODE, "\"prepare\""),
    RUNS(NODE, "\"prepublish\""),
};

static bool stands_in(const char *text, size_t n, const char *form)
{
    const size_t n_form = strlen(form);
    for (size_t at = 0; at + n_form <= n; at++) {
        const char *found = memmem(text + at, n - at, form, n_form);
        if (!found) return false;
        at = (size_t)(found - text);
        const bool begins = !whit_review_is_word(form[0]) || !at || !whit_review_is_word(text[at - 1]);
        const bool ends =
            !whit_review_is_word(form[n_form - 1]) || at + n_form == n || !whit_review_is_word(text[at + n_form]);
        if (begins && ends) return true;
    }
    return false;
}

/* Finds the kind of a file: the suffix of its name in lower case or, without a suffix, the interpreter in its first
 * line. `kind` gets it between two blanks. */
static void find_kind(const char *name, const char *text, size_t n, char kind[24])
{
    static const struct {
        const char *program, *kind;
    } programs[] = {{"ruby", "rb"}, {"perl", "pl"}, {"lua", "lua"},  {"node", "js"},   {"deno", "js"},
                    {"bun", "js"},  {"php", "php"}, {"pwsh", "ps1"}, {"fish", "fish"}, {"sh", "sh"}};
    const char *dot = strrchr(name, '.');
    const size_t n_line = n && memchr(text, '\n', n) ? (size_t)((const char *)memchr(text, '\n', n) - text) : n;
    snprintf(kind, 24, " %.20s ", dot ? dot + 1 : "");
    for (char *at = kind; *at; at++) *at = (char)tolower((uint8_t)*at);
    if (dot || n_line < 2 || memcmp(text, "#!", 2) != 0) return;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (memmem(text, n_line, programs[i].program, strlen(programs[i].program))) {
            snprintf(kind, 24, " %s ", programs[i].kind);
            return;
        }
}

const char *whit_review_runs(const char *path, const char *before, size_t n_before, const char *after, size_t n_after)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char kind[24], whole[24];
    if (!n_after || (n_before == n_after && memcmp(before, after, n_after) == 0)) return NULL;
    find_kind(name, after, n_after, kind);
    snprintf(whole, sizeof whole, " %.20s ", name);
    for (char *at = whole; *at; at++) *at = (char)tolower((uint8_t)*at);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if ((strstr(forms[i].kinds, kind) || strstr(forms[i].kinds, whole)) && stands_in(after, n_after, forms[i].text))
            return forms[i].reason;
    return NULL;
}
