/* SPDX-License-Identifier: MIT
 * Lists the guarded names, and matches paths against them. */
#include "agent/guard.h"
#include "agent/guard_known.h"
#include "base/file.h"
#include "base/items.h"
#include "base/path.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <utf8proc.h>

/* ---- lists of file names ----------------------------------------------------------------------- */

/* Patterns of fnmatch() in lower case, each for one part of a path. */
static const char *const secrets[] = {
    /* version control */
    ".git", ".hg", ".svn", ".bzr", ".jj", "_darcs", ".git-credential*",
    /* keys */
    ".ssh", ".gnupg", ".password-store", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p8",
    "*.p12", "*.pkcs12", "*.pfx", "*.jks", "*.jceks", "*.keystore", "*.ppk", "*.kdbx", "*.agekey", "wallet.dat",
    "*.ovpn", "wg[0-9]*.conf", "*.keytab", "krb5cc_*",
    /* passwords and tokens of programs */
    ".netrc", "_netrc", ".env*", "*.env", ".aws", ".azure", ".gcloud", ".kube", "kubeconfig", "kubeconfig.y*ml",
    "*.kubeconfig", ".docker", ".dockercfg", ".dockerconfigjson", ".npmrc", ".yarnrc*", ".pypirc", "pip.conf", ".m2",
    ".pgpass", ".my.cnf", ".mylogin.cnf", ".htpasswd", ".htdigest", ".vault-token", ".vault_pass*", ".vault-pass*",
    "vault_pass", "vault_pass.txt", "vault_password", "vault_password.txt", ".dev.vars*", ".renviron", ".flaskenv",
    ".smbcredentials*", ".passwd-s3fs", "application_default_credentials.json", "*.tfstate", "*.tfstate.*", "*.tfvars",
    ".terraformrc", ".terraform.d", ".s3cfg", ".boto", "rclone.conf", ".rclone.conf", ".fetchmailrc", ".getmailrc",
    ".msmtprc", ".esmtprc", ".muttrc", ".mbsyncrc", ".offlineimaprc", ".curlrc", ".wgetrc", ".lftprc",
    "sitemanager.xml", ".sentryclirc", ".dbt", ".huggingface", ".kaggle", ".clasprc.json", ".gem", "credentials",
    "credentials.db", "credentials.json", "credentials.csv", "credentials.toml", "credentials.xml", "credentials.y*ml",
    ".secret*", "secret.json", "secret.y*ml", "secret.toml", "secrets.json", "secrets.y*ml", "secrets.toml",
    "secrets.ini", ".credentials*", "auth.json", ".authinfo*", "kaggle.json", "settings-security.xml",
    "local.settings.json", "wp-config.php", "client_secret*.json", "service-account*.json", "service_account*.json",
    ".mozilla", ".thunderbird", ".databrickscfg", ".snowsql", "cookies.sqlite", "logins.json", "key3.db", "key4.db",
    "login data*",
    /* histories of typed commands */
    ".*_history", ".history", ".lesshst", ".viminfo", ".dbshell", "fish_history", "consolehost_history.txt"};

/* Dot files that programs neither run nor read commands from. */
static const char *const harmless[] = {".gitignore",
                                       ".gitkeep",
                                       ".keep",
                                       ".dockerignore",
                                       ".npmignore",
                                       ".eslintignore",
                                       ".prettierignore",
                                       ".helmignore",
                                       ".ignore",
                                       ".mailmap",
                                       ".clang-format",
                                       ".clang-format-ignore",
                                       ".nojekyll",
                                       ".nvmrc",
                                       ".python-version",
                                       ".ruby-version",
                                       ".node-version",
                                       ".gcloudignore",
                                       ".stylelintignore",
                                       ".markdownlintignore"};

/* Names, without a leading dot, of files that programs obey: files of CI, git's hooks wherever core.hooksPath leads,
 * instructions for agents, tasks that start by themselves, start-up files, and files that are read before a build file
 * of the project. */
static const char *const obeyed[] = {"jenkinsfile*",
                                     "appveyor.y*ml",
                                     "azure-pipelines.y*ml",
                                     "bitbucket-pipelines.y*ml",
                                     "cloudbuild.y*ml",
                                     "buildspec.y*ml",
                                     "circle.yml",
                                     "wercker.yml",
                                     "netlify.toml",
                                     "vercel.json",
                                     "lefthook.y*ml",
                                     "lefthook.toml",
                                     "lefthook.json",
                                     "lefthook-local.*",
                                     "agents.md",
                                     "agents.*.md",
                                     "claude.md",
                                     "claude.*.md",
                                     "agent.md",
                                     "codex.md",
                                     "crush.md",
                                     "crush.json",
                                     "skill.md",
                                     "gemini.md",
                                     "qwen.md",
                                     "warp.md",
                                     "conventions.md",
                                     "copilot-instructions.md",
                                     "*.instructions.md",
                                     "opencode.json*",
                                     "mise.toml",
                                     "mise.*.toml",
                                     "_vimrc",
                                     "_exrc",
                                     "_gvimrc",
                                     "sitecustomize",
                                     "sitecustomize.*",
                                     "usercustomize",
                                     "usercustomize.*",
                                     "*.pth",
                                     "conftest.py",
                                     "pytest.ini",
                                     "pylintrc",
                                     "pylintrc.toml",
                                     "mypy.ini",
                                     "jest.config.*",
                                     "vitest.config.*",
                                     "tox.ini",
                                     "gnumakefile",
                                     "bsdmakefile",
                                     "binding.gyp",
                                     "bunfig.toml",
                                     "rust-toolchain",
                                     "rust-toolchain.toml",
                                     "applypatch-msg",
                                     "pre-applypatch",
                                     "post-applypatch",
                                     "pre-commit",
                                     "prepare-commit-msg",
                                     "commit-msg",
                                     "post-commit",
                                     "pre-rebase",
                                     "post-checkout",
                                     "post-merge",
                                     "pre-push",
                                     "pre-receive",
                                     "post-receive",
                                     "post-update",
                                     "post-rewrite",
                                     "pre-merge-commit",
                                     "pre-auto-gc",
                                     "push-to-checkout",
                                     "proc-receive",
                                     "reference-transaction",
                                     "fsmonitor-watchman*",
                                     "sendemail-validate",
                                     "devenv.nix",
                                     "devbox.json",
                                     "flake.nix",
                                     "shell.nix",
                                     "*.code-workspace",
                                     "*.sublime-project",
                                     "eslint.config.*",
                                     "prettier.config.*",
                                     "stylelint.config.*",
                                     "tailwind.config.*",
                                     "postcss.config.*",
                                     "babel.config.*",
                                     "gradle-wrapper.properties",
                                     "procfile",
                                     "desktop.ini",
                                     "autorun.inf"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Maximum length of a folded name: U+FDFA, which has three bytes, becomes eighteen characters. */
#define FOLDED_MAX (12 * NAME_MAX)

/* ---- comparing names of files ------------------------------------------------------------------ */

/* Writes a part of a path as the most lenient file systems compare it: NFKC_Casefold (case folded, compatibility
 * characters normalised, ignorable characters removed), without a stream (":NAME") and without trailing dots and
 * spaces. */
static void fold_part(const char *part, size_t n, char out[FOLDED_MAX + 1])
{
    utf8proc_uint8_t *folded = NULL;
    const utf8proc_option_t how =
        UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE;
    utf8proc_ssize_t got = utf8proc_map((const utf8proc_uint8_t *)part, (utf8proc_ssize_t)n, &folded, how);
    size_t n_out = 0;
    if (got >= 0) {
        n_out = (size_t)got < FOLDED_MAX ? (size_t)got : FOLDED_MAX;
        memcpy(out, folded, n_out);
    } else { /* the part is not UTF-8, so only ASCII letters are folded */
        for (; n_out < n && n_out < FOLDED_MAX; n_out++)
            out[n_out] = (char)(part[n_out] >= 'A' && part[n_out] <= 'Z' ? part[n_out] + 32 : part[n_out]);
    }
    free(folded);
    const char *stream = memchr(out, ':', n_out);
    if (stream && stream > out) n_out = (size_t)(stream - out);
    while (n_out > 1 && (out[n_out - 1] == '.' || out[n_out - 1] == ' ')) n_out--;
    out[n_out] = 0;
}

static bool is_short_name(const char *part)
{
    size_t n = strcspn(part, "~");
    return n && n <= 6 && part[n] == '~' && part[n + 1] >= '0' && part[n + 1] <= '9' && strcspn(part, ".") <= 8;
}

/* Returns whether a short name of the form STEM~N may abbreviate a name that the pattern matches. */
static bool may_stand_for(const char *part, const char *pattern)
{
    size_t n = strcspn(part, "~");
    while (*pattern == '.') pattern++;
    size_t whole = strcspn(pattern, "*."), wanted = whole < 6 ? whole : 6;
    return wanted && n == wanted && strncmp(part, pattern, n) == 0;
}

static bool matches_any(const char *part, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fnmatch(patterns[i], part, 0) == 0) return true;
        if (is_short_name(part) && may_stand_for(part, patterns[i])) return true;
    }
    return false;
}

static bool is_public(const char *part)
{
    size_t n = strlen(part);
    return n > 4 && strcmp(part + n - 4, ".pub") == 0;
}

/* Returns the length of the end of a name by which editors and people name copies: "~", ".~1~", ".bak" and the like; 0
 * if the name has no such end. */
static size_t copy_end_bytes(const char *name, size_t n)
{
    static const char *const ends[] = {".bak", ".backup", ".old", ".orig", ".save", ".tmp", ".swp", ".swo", ".swn"};
    for (size_t i = 0; i < COUNT(ends); i++) {
        const size_t n_end = strlen(ends[i]);
        if (n > n_end && memcmp(name + n - n_end, ends[i], n_end) == 0) return n_end;
    }
    if (n < 2 || name[n - 1] != '~') return 0;
    size_t digits = n - 1;
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') digits--;
    return digits > 2 && name[digits - 1] == '~' && name[digits - 2] == '.' ? n - digits + 2 : 1;
}

/* Returns whether a part is the name of a copy of a file with secrets: "NAME~", "NAME.bak", "#NAME#" or ".NAME.swp". */
static bool is_secret_copy(const char *part)
{
    char name[FOLDED_MAX + 1];
    const char *begin = part;
    size_t n = strlen(part), n_end;
    if (n > 2 && *begin == '#' && begin[n - 1] == '#') begin++, n -= 2;
    while ((n_end = copy_end_bytes(begin, n)) > 0) n -= n_end;
    if (n == strlen(part)) return false;
    memcpy(name, begin, n);
    name[n] = 0;
    return matches_any(name, secrets, COUNT(secrets)) ||
        (*name == '.' && matches_any(name + 1, secrets, COUNT(secrets)));
}

static bool is_secret_part(const char *part)
{
    return !is_public(part) && (matches_any(part, secrets, COUNT(secrets)) || is_secret_copy(part));
}

static bool is_obeyed_part(const char *part)
{
    if (*part == '.') return !matches_any(part, harmless, COUNT(harmless));
    return is_short_name(part) || matches_any(part, obeyed, COUNT(obeyed));
}

static bool has_part(const char *path, bool (*is_one)(const char *part))
{
    char part[FOLDED_MAX + 1];
    for (size_t n; *path; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if (!n) continue;
        fold_part(path, n, part);
        if (is_one(part)) return true;
    }
    return false;
}

/* Returns whether a file or folder exists in the folder of the project that is the first n bytes of a path. */
static bool has_entry(const char *project, const char *path, size_t n, const char *entry)
{
    char name[PATH_MAX];
    const int length = snprintf(name, sizeof name, "%s/%.*s%s", project, (int)n, path, entry);
    return length > 0 && length < (int)sizeof name && whit_path_exists(name);
}

/* Returns whether a path names a file HEAD, or lies in a folder, the project's or one below, that contains a file HEAD.
 * Git treats a folder with HEAD, objects and refs as a repository, and runs programs that its `config` names. */
static bool is_repository_part(const char *project, const char *path)
{
    char part[FOLDED_MAX + 1];
    const char *last = strrchr(path, '/');
    last = last ? last + 1 : path;
    fold_part(last, strlen(last), part);
    if (strcmp(part, "head") == 0) return true;
    for (const char *name = path; name; name = strchr(name, '/'), name += name != NULL)
        if (has_entry(project, path, (size_t)(name - path), "HEAD")) return true;
    return false;
}

bool whit_guard_is_repository(const char *project, const char *path)
{
    for (const char *name = path; name; name = strchr(name, '/'), name += name != NULL) {
        const size_t n = (size_t)(name - path);
        if (!has_entry(project, path, n, "HEAD")) continue;
        /* a work tree's own folder names the repository that has its objects */
        if (has_entry(project, path, n, "commondir") ||
            (has_entry(project, path, n, "objects") && has_entry(project, path, n, "refs")))
            return true;
    }
    return false;
}

/* Returns whether the path is a new "makefile" next to an existing Makefile: make would read the new file instead. */
static bool precedes_makefile(const char *project, const char *path)
{
    char entry[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const int n_folder = (int)(name - path);
    if (strcmp(name, "makefile") != 0) return false;
    int n = snprintf(entry, sizeof entry, "%s/%.*sMakefile", project, n_folder, path);
    if (n < 0 || n >= (int)sizeof entry || !whit_path_exists(entry)) return false;
    snprintf(entry, sizeof entry, "%s/%s", project, path);
    return !whit_path_exists(entry);
}

bool whit_guard_is_secret(const char *path)
{
    return has_part(path, is_secret_part);
}

bool whit_guard_is_configuration(const char *project, const char *path)
{
    return has_part(path, is_obeyed_part) || is_repository_part(project, path) || precedes_makefile(project, path);
}

/* ---- this program's own folders ------------------------------------------------------------------ */

bool whit_guard_own_folder(whit_guard_own which, char path[PATH_MAX])
{
    static const struct {
        const char *variable, *below;
    } places[] = {[WHIT_GUARD_OWN_STATE] = {"XDG_STATE_HOME", ".local/state"},
                  [WHIT_GUARD_OWN_CACHE] = {"XDG_CACHE_HOME", ".cache"},
                  [WHIT_GUARD_OWN_CONFIG] = {"XDG_CONFIG_HOME", ".config"}};
    const char *xdg = getenv(places[which].variable), *home = getenv("HOME");
    int n = 0;
    if (xdg && whit_path_is_absolute(xdg))
        n = snprintf(path, PATH_MAX, "%s/whit", xdg);
    else if (home && whit_path_is_absolute(home))
        n = snprintf(path, PATH_MAX, "%s/%s/whit", home, places[which].below);
    return n > 0 && n < PATH_MAX;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Returns whether a path is the folder or lies in it. The folder may not exist yet; if it exists, folders are compared
 * by device and inode. */
static bool lies_in(const char *path, const char *folder)
{
    char real[PATH_MAX], at[PATH_MAX], a[FOLDED_MAX + 1], b[FOLDED_MAX + 1];
    struct stat wanted, there;
    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at) return true;
    bool exists = stat(folder, &wanted) == 0;
    if (!exists) { /* compare the parent folder and the folded name */
        snprintf(real, sizeof real, "%s", folder);
        *strrchr(real, '/') = 0;
        if (stat(real, &wanted) != 0) return false;
        fold_part(strrchr(folder, '/') + 1, strlen(strrchr(folder, '/') + 1), a);
    }
    for (char *slash; (slash = strrchr(at, '/'));) {
        if (!exists) fold_part(slash + 1, strlen(slash + 1), b);
        if (exists && stat(at, &there) == 0 && is_same_file(&there, &wanted)) return true;
        *slash = 0;
        if (!exists && stat(*at ? at : "/", &there) == 0 && is_same_file(&there, &wanted) && strcmp(a, b) == 0)
            return true;
    }
    return false;
}

bool whit_guard_leads_to(const char *name, const char *real)
{
    char path[PATH_MAX], beside[PATH_MAX], folder[PATH_MAX];
    struct stat wanted, there;
    whit_error ignored;
    if (stat(name, &wanted) == 0) return stat(real, &there) == 0 && is_same_file(&there, &wanted);
    char *slash = whit_writer_beside(name, path, beside, &ignored) == WHIT_OK ? strrchr(path, '/') : NULL;
    if (!slash) return false;
    *slash = 0;
    if (!realpath(*path ? path : "/", folder)) return false;
    const size_t n = strlen(folder);
    return strncmp(real, folder, n) == 0 && real[n] == '/' && strcmp(real + n + 1, slash + 1) == 0;
}

whit_guard_folder whit_guard_folder_of(const char *real)
{
    char folder[PATH_MAX];
    if (whit_guard_own_folder(WHIT_GUARD_OWN_STATE, folder) && lies_in(real, folder)) return WHIT_GUARD_STATE;
    if (whit_guard_own_folder(WHIT_GUARD_OWN_CACHE, folder) && lies_in(real, folder)) return WHIT_GUARD_STATE;
    if (whit_guard_own_folder(WHIT_GUARD_OWN_CONFIG, folder) && lies_in(real, folder)) return WHIT_GUARD_CONFIG;
    return WHIT_GUARD_ELSEWHERE;
}

bool whit_guard_is_settings(const char *real, const char *name)
{
    char folder[PATH_MAX], path[PATH_MAX];
    const char *last = strrchr(real, '/');
    if (!whit_guard_own_folder(WHIT_GUARD_OWN_CONFIG, folder)) return false;
    if (last && strcasecmp(last + 1, name) == 0 && lies_in(real, folder)) return true;
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && whit_guard_leads_to(path, real);
}

/* Folders that whit_guard_know_program() has added; used like known_keys. */
static _Atomic(char *) known_programs[64];

bool whit_guard_know_program(const char *folder)
{
    return keep_known(known_programs, COUNT(known_programs), strdup(folder));
}

bool whit_guard_is_program(const char *real)
{
    for (size_t i = 0; i < COUNT(known_programs); i++) {
        const char *known = atomic_load(&known_programs[i]);
        if (known && lies_in(real, known)) return true;
    }
    return false;
}

/* Returns whether an open file is a file of the user's configuration, perhaps by another hard link. */
static bool is_setting_opened(const struct stat *opened, const char *name)
{
    char folder[PATH_MAX], path[PATH_MAX];
    struct stat wanted;
    return whit_guard_own_folder(WHIT_GUARD_OWN_CONFIG, folder) &&
        snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && stat(path, &wanted) == 0 &&
        is_same_file(opened, &wanted);
}

/* Folders that whit_guard_know_folder() has added; used like known_keys. */
static _Atomic(char *) known_folders[16];

bool whit_guard_know_folder(const char *folder)
{
    return keep_known(known_folders, COUNT(known_folders), realpath(folder, NULL));
}

bool whit_guard_is_own_file(const char *real)
{
    static const char *const names[] = {"agent-", "talk-"};
    enum { HASH_DIGITS = 24 };
    char folder[PATH_MAX];
    struct stat wanted, there;
    const char *slash = strrchr(real, '/');
    bool is_named = false;
    for (size_t i = 0; slash && i < COUNT(names); i++) {
        const size_t n = strlen(names[i]);
        is_named = is_named ||
            (strncasecmp(slash + 1, names[i], n) == 0 &&
             strspn(slash + 1 + n, "0123456789abcdefABCDEF") >= HASH_DIGITS);
    }
    if (!is_named || snprintf(folder, sizeof folder, "%.*s/", (int)(slash - real), real) >= (int)sizeof folder ||
        stat(folder, &there) != 0)
        return false;
    for (size_t i = 0; i < COUNT(known_folders); i++) {
        const char *known = atomic_load(&known_folders[i]);
        if (known && stat(known, &wanted) == 0 && is_same_file(&wanted, &there)) return true;
    }
    return false;
}

bool whit_guard_is_hidden(const char *path, const char *below, const char *real, const struct stat *opened)
{
    return whit_guard_is_secret(path) || whit_guard_is_secret(below) || whit_guard_is_own_file(real) ||
        whit_guard_folder_of(real) == WHIT_GUARD_STATE || whit_guard_is_settings(real, "agent.json") ||
        (opened && is_setting_opened(opened, "agent.json"));
}
