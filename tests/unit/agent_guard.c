/* SPDX-License-Identifier: MIT
 * Tests the guard of an agent: names of files that are secret or that control other programs, keys and hidden
 * characters in texts, hidden files, and whit's own folders. */
#include "test_folder.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/changes.h"
#include "agent/guard.h"
#include "agent/light.h"
#include "agent/links.h"
#include "agent/patch.h"
#include "base/file.h"
#include "base/items.h"

static void names_are_compared_as_file_systems_do(void **state)
{
    (void)state;
    static const char *const secret[] = {".git/config",
                                         ".GIT/config",
                                         "sub/.Git/hooks/x",
                                         "git~1/config",
                                         "GIT~1/config",
                                         ".git /config",
                                         ".git./config",
                                         ".git::$INDEX_ALLOCATION/config",
                                         ".g\xE2\x80\x8Cit/config",
                                         ".gi\xEF\xBB\xBFt/x",
                                         "\xEF\xBC\x8Egit/config" /* U+FF0E */,
                                         ".\xC5\xBFsh/x" /* U+017F */,
                                         ".ENV",
                                         ".env.local",
                                         "prod.env",
                                         "SSH~1/id",
                                         "id_rsa",
                                         "id_ecdsa",
                                         "id_dsa",
                                         "id_ed25519_work",
                                         "deploy.pem",
                                         "server.key",
                                         ".git-credentials",
                                         ".npmrc",
                                         ".pypirc",
                                         ".aws/credentials",
                                         ".docker/config.json",
                                         ".kube/config",
                                         ".pgpass",
                                         ".htpasswd",
                                         ".vault-token",
                                         "terraform.tfstate",
                                         ".bash_history",
                                         ".netrc",
                                         "a/b/.SSH/known_hosts",
                                         ".gnupg/x",
                                         "credentials.json",
                                         "Deploy.PEM",
                                         ".claude/.credentials.json",
                                         ".codex/auth.json",
                                         ".authinfo.gpg",
                                         "http.keytab",
                                         ".git-credential-cache/socket",
                                         "profile/key4.db",
                                         "pip/pip.conf",
                                         ".m2/settings.xml",
                                         "kubeconfig.yaml",
                                         "prod.kubeconfig",
                                         "ansible/vault_password",
                                         "wg0.conf",
                                         ".rclone.conf",
                                         ".mbsyncrc",
                                         ".curlrc",
                                         "filezilla/sitemanager.xml",
                                         "secret.yaml",
                                         ".huggingface/token",
                                         ".config/gcloud/credentials.db",
                                         "Login Data",
                                         ".config/gcloud/application_default_credentials.json",
                                         ".Renviron",
                                         ".dev.vars",
                                         "ansible/.vault_pass.txt",
                                         "fish/fish_history",
                                         "prod.env~",
                                         "prod.env.bak",
                                         "#prod.env#",
                                         ".prod.env.swp",
                                         ".pgpass~",
                                         ".netrc.~12~",
                                         "credentials~",
                                         "Secrets.yml.ORIG",
                                         "server.key.old.bak",
                                         ".auth.json.swo",
                                         ".ssh"};
    static const char *const open[] = {"src/a.c",
                                       "id_rsa.pub",
                                       "credentials.py",
                                       "src/secrets.py",
                                       ".gitignore",
                                       "git/config",
                                       "env/x.c",
                                       "keys.md",
                                       "a~1b.c",
                                       "docs/environment.md",
                                       "monkey",
                                       "a.c~",
                                       "#a.c#",
                                       ".a.c.swp",
                                       "monkey.bak",
                                       "~",
                                       ".bak",
                                       "key.~1~",
                                       "wg.conf",
                                       "kubeconfig.go",
                                       "vault_passwords.py"};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!whit_guard_is_secret(secret[i])) fail_msg("'%s' is a secret", secret[i]);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (whit_guard_is_secret(open[i])) fail_msg("'%s' is not a secret", open[i]);
    /* each U+FDFA becomes eighteen characters; the suffix must not be cut off */
    char grown[64] = "";
    for (int i = 0; i < 15; i++) strcat(grown, "\xEF\xB7\xBA");
    strcat(grown, ".pem");
    assert_true(whit_guard_is_secret(grown));
}

static void programs_obey_dot_files(void **state)
{
    (void)state;
    static const char *const obeyed[] = {".lefthook.yaml",
                                         "lefthook.toml",
                                         ".codex/config.toml",
                                         ".aider.conf.yml",
                                         ".windsurfrules",
                                         ".clinerules",
                                         "AGENTS.override.md",
                                         "agents.md",
                                         "CLAUDE.local.md",
                                         ".gdbinit",
                                         ".cargo/config.toml",
                                         ".eslintrc.js",
                                         ".clangd",
                                         ".npmrc",
                                         ".netrc",
                                         ".bashrc",
                                         ".profile",
                                         ".gitconfig",
                                         ".config/autostart/x.desktop",
                                         ".git/hooks/x",
                                         ".whit/agent.json",
                                         ".GitHub/workflows/x.yml",
                                         "GITHUB~1/x",
                                         "Jenkinsfile",
                                         ".editorconfig",
                                         ".gitattributes",
                                         ".unheard-of",
                                         "sub/HEAD",
                                         "bare/config",
                                         "bare/hooks/x",
                                         "sitecustomize.py",
                                         "lib/sitecustomize/__init__.py",
                                         "usercustomize.pyc",
                                         "built/makefile",
                                         "BSDmakefile",
                                         "Jenkinsfile.release",
                                         "binding.gyp",
                                         "rust-toolchain.toml",
                                         "docs/copilot-instructions.md",
                                         ".vscode/tasks.json",
                                         ".envrc",
                                         "whit.code-workspace",
                                         "AGENT.md",
                                         "skills/x/SKILL.md",
                                         "eslint.config.mjs",
                                         "pylintrc",
                                         "backend/mypy.ini",
                                         "vitest.config.ts",
                                         "web/prettier.config.js",
                                         "gradle/wrapper/gradle-wrapper.properties",
                                         "flake.nix",
                                         ".husky/x"};
    static const char *const plain[] = {"src/a.c",    ".gitignore", ".clang-format", "docs/agents/x.md",
                                        "head/x.c",   "head.c",     "config",        "Makefile",
                                        "sub/config", "makefile",   "both/makefile", "built/Makefile"};
    char project[700], path[1024];
    snprintf(project, sizeof project, "%s/bare-test", test_folder);
    assert_int_equal(mkdir(project, 0700), 0);
    snprintf(path, sizeof path, "%s/bare", project);
    assert_int_equal(mkdir(path, 0700), 0);
    static const char *const files[] = {"bare/HEAD", "built/Makefile", "both/Makefile", "both/makefile"};
    static const char *const folders[] = {"built", "both"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", project, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", project, files[i]);
        fclose(fopen(path, "w"));
    }
    for (size_t i = 0; i < sizeof obeyed / sizeof *obeyed; i++)
        if (!whit_guard_is_configuration(project, obeyed[i])) fail_msg("'%s' is obeyed", obeyed[i]);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (whit_guard_is_configuration(project, plain[i])) fail_msg("'%s' is not obeyed", plain[i]);
}

/* Writes lines of a text, each between two texts. */
static void put_lines(whit_buf *text, const char *before, const char *const *lines, size_t n, const char *after)
{
    for (size_t i = 0; i < n; i++) whit_buf_printf(text, "%s%s%s\n", before, lines[i], after);
}

/* All lines of a private key are hidden, also if they are strings of a program, comments, or lines of a list or a
 * difference; and a token of which escape sequences colour a part. */
static void hide_divided_keys(void)
{
#define BODY "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    static const char *const lines[] = {
        "-----BEGIN RSA PRIVATE KEY-----", BODY, BODY, BODY, "MIIEw9==", "-----END RSA PRIVATE KEY-----"};
    static const struct {
        const char *before, *after;
    } forms[] = {{"", ""},     {"    ", ""},       {"# ", ""},      {" * ", ""},       {"-", ""},
                 {"+", ""},    {"> ", ""},         {"   17\t", ""}, {"  \"", "\\n\""}, {"  + \"", "\\n\""},
                 {" '", "',"}, {"key.pem:3:", ""}, {"", "\\n\\"},   {"", "\r"}};
    static const char note[] = "which is not shown";
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t n = 6; n >= 3; n -= 3) { /* the whole key, and its beginning */
            whit_buf text = {0};
            put_lines(&text, forms[i].before, lines, n, forms[i].after);
            assert_true(whit_guard_has_key(whit_chars(&text), text.size_bytes));
            whit_guard_hide_keys(&text);
            assert_true(whit_buf_append(&text, "", 1));
            if (strstr(whit_chars(&text), "MIIE") || strstr(whit_chars(&text), "END") ||
                !strstr(whit_chars(&text), note))
                fail_msg("form %zu of a key is shown: %s", i, whit_chars(&text));
            whit_buf_free(&text);
        }
    /* a key that is encoded in base64 once more, in a line and divided into lines */
    static const char encoded[] =
        "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUV2UUlCQURBTkJna3Foa2lHOXcwQkFRRUZBQVNDQktjd2dnU2"
        "pBZ0VBQW9JQkFRQzdWSlRVdDlVczhjS2oKTUlJRXZRSUJBREFOQmdrcWhraUc5dzBCQVFFRkFBU0NCS2N3Z2dTakFn"
        "RUFBb0lCQVFDN1ZKVFV0OVVzOGNLagotLS0tLUVORCBQUklWQVRFIEtFWS0tLS0tCg==";
    for (int is_divided = 0; is_divided < 2; is_divided++) {
        whit_buf text = {0};
        whit_buf_append_str(&text, "client-key-data: ");
        for (size_t i = 0; i < sizeof encoded - 1; i++) {
            whit_buf_append(&text, encoded + i, 1);
            if (is_divided && i % 76 == 75) whit_buf_append_str(&text, "\n    ");
        }
        whit_buf_append_str(&text, "\nname: x\n");
        whit_guard_hide_keys(&text);
        assert_true(whit_buf_append(&text, "", 1));
        if (strstr(whit_chars(&text), "LS0tLS1C") || strstr(whit_chars(&text), "TUlJ") ||
            !strstr(whit_chars(&text), "\nname: x"))
            fail_msg("an encoded key is shown: %s", whit_chars(&text));
        whit_buf_free(&text);
    }
    static const char *const coloured[] = {"a \033[01;31m\033[Kghp_\033[m\033[K0123456789abcdefABCDEF0123456789abcd b",
                                           "a ghp_0123456789abc\033]8;;x\033\\defABCDEF0123456789abcd b",
                                           "a ghp_0123456789abcdef\033(BABCDEF0123456789abcd\033[0m b"};
    for (size_t i = 0; i < sizeof coloured / sizeof *coloured; i++) {
        whit_buf text = {0}, cut = {0};
        assert_true(whit_guard_has_key(coloured[i], strlen(coloured[i])));
        assert_true(whit_guard_append_cut(&cut, coloured[i], strlen(coloured[i]), 24));
        assert_int_equal(cut.size_bytes, 24);
        assert_null(memmem(cut.data, cut.size_bytes, "0123", 4));
        whit_buf_append_str(&text, coloured[i]);
        whit_guard_hide_keys(&text);
        assert_true(whit_buf_append(&text, "", 1));
        if (strstr(whit_chars(&text), "abc") || !strstr(whit_chars(&text), note) || !strstr(whit_chars(&text), " b"))
            fail_msg("a coloured key is shown: %s", whit_chars(&text));
        whit_buf_free(&text);
        whit_buf_free(&cut);
    }
    /* in UTF-16 of both byte orders, after an even and an odd number of bytes in another encoding */
    static const char wide[] = "a ghp_0123456789abcdefABCDEF0123456789abcd b";
    for (size_t form = 0; form < 4; form++) {
        whit_buf text = {0};
        whit_buf_append(&text, "xy", 1 + form / 2);
        for (const char *at = wide; *at; at++) {
            const char pair[] = {form % 2 ? '\0' : *at, form % 2 ? *at : '\0'};
            whit_buf_append(&text, pair, sizeof pair);
        }
        assert_true(whit_guard_has_key(whit_chars(&text), text.size_bytes));
        whit_guard_hide_keys(&text);
        assert_true(memmem(text.data, text.size_bytes, note, sizeof note - 1) &&
                    !memchr(text.data, 0, text.size_bytes));
        whit_buf_free(&text);
    }
}

static void keys_are_found_by_their_form(void **state)
{
    (void)state;
#define LINE "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"a\n-----BEGIN RSA PRIVATE KEY-----\n" LINE LINE "-----END RSA PRIVATE KEY-----\nb",
         "a\n[a key or token, which is not shown]-----\nb"},
        {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" LINE, ""},
        {"{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\\n\"}",
         ""},
        {"token = \"ghp_0123456789abcdefABCDEF0123456789abcd\"", "token = \"[a key or token, which is not shown]\""},
        {"AKIAIOSFODNN7EXAMPLE", ""},
        {"key: sk-ant-"
         "api03-0123456789abcdefghij\n",
         ""},
        {"xoxb-123456789012-abcdefghijkl", ""},
        /* letters that end an escape sequence are not part of a word */
        {"{\"env\": \"A=1\\nghp_0123456789abcdefABCDEF0123456789abcd\\n\"}", ""},
        {"\\u003dghp_0123456789abcdefABCDEF0123456789abcd", ""},
        {"x?token%3Dghp_0123456789abcdefABCDEF0123456789abcd", ""},
        {"\033[1;32mghp_0123456789abcdefABCDEF0123456789abcd\033[m", ""},
        {"\\x3d"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"\\075"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"=3D"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"%253D"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"\\e[31m"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"\\u001b[1;32m"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"\x9b"
         "31m"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"\033#8"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"\033[K"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"-"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"+\n-"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {" --"
         "ghp_0123456789abcdefABCDEF0123456789abcd",
         ""},
        {"rubygems_"
         "0123456789abcdef0123456789abcdef0123456789abcdef",
         ""},
        {"glrt-"
         "0123456789abcdefABCD",
         ""},
        {"key=sk-"
         "0123456789abcdef0123456789abcdef",
         ""},
        {"xoxc-"
         "123456789012-abcdefghijkl",
         ""},
        {"NRAK-"
         "0123456789ABCDEFGHIJKLMNOPQ",
         ""},
        {"hf_"
         "abcdefghijklmnopqrSTUVWXYZabcdefgh",
         ""},
        {"HRKU-"
         "AA0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV",
         ""},
        {"doo_v1_"
         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
         ""},
        {"LTAI"
         "0123456789abcdefghij",
         ""},
        {"xkeysib-"
         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef-0123456789abcdef",
         ""},
        {"ABIA"
         "Q2W3E4R5T6Y7U2I3",
         ""},
        {"fo1_"
         "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
         ""},
        {"sq0atp-"
         "0123456789abcdefABCDEF",
         ""},
    };
    static const char *const none[] = {
        "if (strstr(line, \"-----BEGIN RSA PRIVATE KEY-----\")) return 1;\nint more_of_the_program;",
        "#define BEGIN \"-----BEGIN PRIVATE KEY-----\"\n#define END \"-----END PRIVATE KEY-----\"\n"
        "static bool convertThePrivateKeyToAnotherForm(const char *fromThisFileOfTheProject);",
        "data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUV2UUlCQURBTkJna3Foa2lHOXcwQkFRRUZBQVND"
        "Qktjd2dnU2pBZ0VBQW9JQkFRQzdWSlRVdDlVczhjS2oK",
        "-----BEGIN CERTIFICATE-----\n" LINE "-----END CERTIFICATE-----\n",
        "-----BEGIN PUBLIC KEY-----\n" LINE,
        "sk-learn and npm_config_registry, ghp_ and AKIA",
        "xghp_0123456789abcdefABCDEF0123456789abcd",
        "beadghp_0123456789abcdefABCDEF0123456789abcd",
        "ta-sk-0123456789abcdef0123456789abcdef",
        "self.hf_weights_into_ternary_layers_of_2_kinds",
        "static int _hf_weights_into_ternary_layers_of_2_kinds",
        "hf_hub_download_and_other_long_names_of_functions",
        "hf_abcdefghijklmnopqrstuvwxyzabcdefgh",
        "api_org_NamesOfFunctions_and_other_long_names",
        "risk-0123456789012345678901234567890123456789012"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_buf text = {0};
        assert_true(whit_buf_append_str(&text, cases[i].text));
        whit_guard_hide_keys(&text);
        assert_true(whit_buf_append(&text, "", 1));
        if (!strstr((char *)text.data, "which is not shown")) fail_msg("a key is shown: %s", cases[i].text);
        if (strncmp(cases[i].shown, "a\n", 2) != 0 && *cases[i].shown)
            assert_string_equal((char *)text.data, cases[i].shown);
        assert_null(strstr((char *)text.data, "MIIE"));
        whit_buf_free(&text);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        size_t begin = 0, end;
        if (whit_guard_find_key(none[i], strlen(none[i]), &begin, &end)) fail_msg("not a key: %s", none[i]);
    }
    hide_divided_keys();
    /* of these keys one is the beginning of another, and two overlap: all their bytes must be hidden */
    static const char known[] = "a secret-1st-and-tail-2nd-and-end-3 b";
    size_t begin = 0, end;
    assert_true(whit_guard_know_key("secret-1st"));
    assert_true(whit_guard_know_key("secret-1st-and-tail-2nd"));
    assert_true(whit_guard_know_key("tail-2nd-and-end-3"));
    assert_true(whit_guard_find_key(known, strlen(known), &begin, &end));
    assert_int_equal(begin, 2);
    assert_int_equal(end, strlen(known) - 2);
    /* keys that occur in another one and again at its end, a key that overlaps itself, and keys of both kinds that
     * overlap: nothing of them may be shown */
    static const char *const overlaps[] = {"9seventh8seventh9seventh8", "round-5-round-5-round-5-",
                                           "ghp_0123456789abcdefABCDEF0123456789plus+tail-7",
                                           "sk-short1"
                                           "0123456789abcdefghijklmnopqrstuvwxyz0123456789"};
    static const char *const keys[] = {"9seventh8", "9seventh8seventh9se", "round-5-round-5-", "9plus+tail-7",
                                       "sk-short1"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) assert_true(whit_guard_know_key(keys[i]));
    for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++) {
        whit_buf text = {0};
        whit_buf_printf(&text, "a %s b", overlaps[i]);
        whit_guard_hide_keys(&text);
        assert_true(whit_buf_append(&text, "", 1));
        assert_string_equal(whit_chars(&text), "a [a key or token, which is not shown] b");
        whit_buf_free(&text);
    }
}

/* Added lines with invisible characters need approval, except those that scripts and emoji require. */
static void hidden_characters_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *after;
        bool is_hidden;
    } cases[] = {
        {"a\tb\r\nc\f\r\n", false},
        {"# a\rb\n", true}, /* Python treats a lone CR as a line end */
        {"a\x1b[8mb\n", true},
        {"a\x08\x08b\n", true},
        {"a\x7f\n", true},
        {"\xF0\x9F\x91\xA9\xEF\xB8\x8F\xE2\x80\x8D\xF0\x9F\x92\xBB\n", false}, /* an emoji that joins two emoji */
        {"\xE2\x98\xBA\xEF\xB8\x80\xEF\xB8\x81\xEF\xB8\x82\n", true},          /* several variation selectors */
        {"a\xE2\x80\xAE\n", true},
    };
    char room[WHIT_REASON_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const whit_change change = {
            .path = "a.txt", .is = true, .after = cases[i].after, .after_bytes = strlen(cases[i].after)};
        const char *reason = whit_light_red("/", NULL, &change, room);
        if (cases[i].is_hidden != (reason && strstr(reason, "invisible")))
            fail_msg("case %zu: %s", i, reason ? reason : "");
    }
    static const struct {
        const char *path, *after;
        bool is_alike;
    } letters[] = {{"a.txt",
                    "is_\xD0\xB0"
                    "dmin()\n",
                    true},
                   {"m\xD0\xB0in.c", "x\n", true},
                   {"a.js", "if (env\xC7\x83=LIVE) {}\n", true}, /* a click, which looks like "!" */
                   {"a.txt", "\xD0\xB6\xD0\xB0 a\n", false}};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
        const whit_change change = {
            .path = letters[i].path, .is = true, .after = letters[i].after, .after_bytes = strlen(letters[i].after)};
        const char *reason = whit_light_red("/", NULL, &change, room);
        if (letters[i].is_alike != (reason && strstr(reason, "look like Latin")))
            fail_msg("letters %zu: %s", i, reason ? reason : "");
    }
}

/* Changes of a .gitignore that hide files which checks see now must be found. */
static void hidden_files_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *path, *after;
        bool hides;
    } cases[] = {
        {".gitignore", "build/\n", false},
        {".gitignore", "tests/\n", true},
        {".gitignore", "*.log\ntest_*\n", true},
        {"tests/.gitignore", "*\n", true},
        {"tests/.gitignore", "*\n!test_a.py\n", false},
        {"tests/ignore", "*\n", false},
    };
    char project[PATH_MAX], command[1200], room[WHIT_REASON_BYTES];
    const char *folder = in_folder("ignoring");
    snprintf(command, sizeof command, "mkdir -p %s/tests && touch %s/a.c %s/tests/test_a.py", folder, folder, folder);
    assert_int_equal(system(command), 0);
    assert_non_null(realpath(folder, project));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const whit_change change = {
            .path = cases[i].path, .is = true, .after = cases[i].after, .after_bytes = strlen(cases[i].after)};
        const char *reason = whit_light_red(project, NULL, &change, room);
        if (cases[i].hides != (reason && strstr(reason, "hides files")))
            fail_msg("case %zu: %s", i, reason ? reason : "");
    }
}

/* If a hunk is left out, another reason in the shown text does not count; a reason where there was none before, or
 * another place of the file, does. */
static void reasons_are_compared_after_a_question(void **state)
{
    (void)state;
    static const char before[] = "int f(void);\n", plain[] = "int g(void);\n",
                      runs[] = "int f(void)\n{\n    return system(\"x\");\n}\n",
                      copies[] = "int f(void);\nvoid g(char *a)\n{\n    strcpy(a, \"x\");\n}\n",
                      both[] = "int f(void)\n{\n    return system(\"x\");\n}\n"
                               "void g(char *a)\n{\n    strcpy(a, \"x\");\n}\n";
    static const struct {
        const char *shown, *left;
        bool is_new;
    } cases[] = {
        {both, both, false}, {both, runs, false}, {both, copies, false}, {plain, plain, false}, {plain, copies, true}};
    char project[PATH_MAX], command[1200];
    const char *folder = in_folder("asked");
    snprintf(command, sizeof command, "mkdir -p %s && echo 'int f(void);' >%s/a.c", folder, folder);
    assert_int_equal(system(command), 0);
    assert_non_null(realpath(folder, project));
    whit_changes set = {0};
    whit_change change = {.path = "a.c", .was = true, .is = true, .before = before, .before_bytes = strlen(before)};
    assert_true(whit_changes_copy(&set, &change));
    whit_change *c = whit_changes_at(&set, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        c->after = cases[i].shown, c->after_bytes = strlen(c->after);
        (void)whit_light_mark(project, &set);
        c->after = cases[i].left, c->after_bytes = strlen(c->after);
        if (cases[i].is_new != (whit_light_find_new(project, &set) != NULL)) fail_msg("case %zu", i);
    }
    c->after = both, c->after_bytes = strlen(both);
    assert_non_null(whit_light_mark(project, &set));
    c->after = runs, c->after_bytes = strlen(runs);
    snprintf(command, sizeof command, "ln %s/a.c %s/b.c", folder, folder);
    assert_int_equal(system(command), 0);
    assert_non_null(whit_light_find_new(project, &set));
    /* all reasons of a file are named: of its place, in which one may be added while a person reads, and of its text */
    assert_non_null(whit_light_mark(project, &set));
    assert_non_null(strstr(c->reason, "it has other names, whose text would change, too, and it "));
    assert_null(whit_light_find_new(project, &set));
    whit_changes_free(&set);
}

/* A key that is replaced by another one is taken out, too. */
static void taken_keys_are_found(void **state)
{
    (void)state;
    static const char before[] = "a=AKIAA1B2C3D4E5F6G7H8 b=AKIAZ1B2C3D4E5F6G7H8\n";
    static const struct {
        const char *after;
        bool is_taken;
    } cases[] = {
        {"a=AKIAA1B2C3D4E5F6G7H8 b=AKIAZ1B2C3D4E5F6G7H8 c\n", false},
        {"b=AKIAZ1B2C3D4E5F6G7H8 a=AKIAA1B2C3D4E5F6G7H8\n", false},
        {"a=AKIAA1B2C3D4E5F6G7H8\n", true},
        {"a=AKIAA1B2C3D4E5F6G7H8 b=AKIAA1B2C3D4E5F6G7H8\n", true},
        {"a=AKIAA1B2C3D4E5F6G7H8 b=AKIAY1B2C3D4E5F6G7H8\n", true},
        {"", true},
    };
    char room[WHIT_REASON_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const whit_change change = {.path = "a.txt",
                                    .was = true,
                                    .is = true,
                                    .before = before,
                                    .after = cases[i].after,
                                    .before_bytes = sizeof before - 1,
                                    .after_bytes = strlen(cases[i].after)};
        const char *reason = whit_light_red("/", NULL, &change, room);
        if (cases[i].is_taken != (reason && strstr(reason, "takes a key"))) fail_msg("case %zu", i);
    }
}

/* Git takes a project's folder for a repository if it has HEAD, objects and refs, and obeys its `config`. */
static void a_bare_repository_is_guarded(void **state)
{
    (void)state;
    char project[PATH_MAX], command[1200];
    const char *folder = in_folder("bare");
    snprintf(command, sizeof command, "mkdir -p %s/sub/deep", folder);
    assert_int_equal(system(command), 0);
    assert_non_null(realpath(folder, project));
    assert_false(whit_guard_is_configuration(project, "config"));
    assert_false(whit_guard_is_configuration(project, "sub/deep/config"));
    snprintf(command, sizeof command, "touch %s/sub/HEAD", folder);
    assert_int_equal(system(command), 0);
    assert_false(whit_guard_is_configuration(project, "config"));
    assert_true(whit_guard_is_configuration(project, "sub/deep/config"));
    snprintf(command, sizeof command, "rm %s/sub/HEAD && touch %s/HEAD", folder, folder);
    assert_int_equal(system(command), 0);
    assert_true(whit_guard_is_configuration(project, "config"));
    assert_true(whit_guard_is_configuration(project, "sub/deep/config"));
}

/* A module needs no question if the project has it, or gets it with the same changes. */
static void modules_of_a_set_are_known(void **state)
{
    (void)state;
    static const char text[] = "import helper, added\n";
    char project[PATH_MAX];
    whit_error error;
    whit_changes set = {0};
    const whit_change change = {.path = "main.py", .is = true, .after = text, .after_bytes = sizeof text - 1},
                      added = {.path = "added.py", .is = true, .after = "", .after_bytes = 0};
    assert_int_equal(mkdir(in_folder("modules"), 0700), 0);
    assert_non_null(realpath(in_folder("modules"), project));
    assert_true(whit_changes_copy(&set, &change));
    const whit_change *first = whit_light_mark(project, &set);
    assert_non_null(first);
    assert_string_equal(first->reason, "it imports helper, which is neither of the project nor known to be harmless");
    assert_ok(whit_write_file(in_folder("modules/helper.py"), "", 0, &error), error);
    first = whit_light_mark(project, &set);
    assert_non_null(first);
    assert_string_equal(first->reason, "it imports added, which is neither of the project nor known to be harmless");
    assert_true(whit_changes_copy(&set, &added));
    assert_null(whit_light_mark(project, &set));
    whit_changes_free(&set);
}

/* After changes were settled within an answer, before a command, a patch with a file that fails leaves the texts of its
 * other files as they are. */
static void a_failed_patch_keeps_settled_changes(void **state)
{
    (void)state;
    static const char text[] = "b.txt\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE\n"
                               "a.txt\n<<<<<<< SEARCH\nnobody\n=======\nd\n>>>>>>> REPLACE\n";
    static const char last[] = "the text of the change that stays\n";
    char project[PATH_MAX];
    whit_error error;
    whit_changes set = {0};
    whit_patch patch = {0};
    assert_int_equal(mkdir(in_folder("settled"), 0700), 0);
    assert_non_null(realpath(in_folder("settled"), project));
    assert_ok(whit_write_file(in_folder("settled/b.txt"), "b\n", 2, &error), error);
    assert_ok(whit_changes_put(&set, project, "a.txt", "first\n", 6, &error), error);
    assert_ok(whit_changes_put(&set, project, "a.txt", last, sizeof last - 1, &error), error);
    whit_changes_settle(&set);
    assert_int_equal(whit_changes_count(&set), 1);
    assert_ok(whit_patch_parse(text, sizeof text - 1, &patch, &error), error);
    assert_int_equal(whit_patch_n_files(&patch), 2);
    assert_int_not_equal(whit_changes_patch(&set, project, &patch, NULL, &error), WHIT_OK);
    whit_patch_free(&patch);
    assert_int_equal(whit_changes_count(&set), 1);
    const whit_change *left = whit_changes_at(&set, 0);
    assert_string_equal(left->path, "a.txt");
    assert_int_equal(left->after_bytes, sizeof last - 1);
    assert_memory_equal(left->after, last, sizeof last - 1);
    whit_changes_free(&set);
}

/* The program's own folders must be recognised below any project and under any name. */
static void own_folders_are_known(void **state)
{
    (void)state;
    char home[700], path[1024], command[3000], room[WHIT_REASON_BYTES];
    snprintf(home, sizeof home, "%s/home", test_folder);
    snprintf(command, sizeof command,
             "mkdir -p %s/.config/whit %s/.local/state/whit %s/.cache/whit && ln -s .config %s/c", home, home, home,
             home);
    assert_int_equal(system(command), 0);
    setenv("HOME", home, 1);
    unsetenv("XDG_CONFIG_HOME"), unsetenv("XDG_STATE_HOME"), unsetenv("XDG_CACHE_HOME");
    snprintf(path, sizeof path, "%s/.config/whit", home);
    assert_int_equal(whit_guard_folder_of(path), WHIT_GUARD_CONFIG);
    snprintf(path, sizeof path, "%s/.cache/whit/run-1/tree", home);
    assert_int_equal(whit_guard_folder_of(path), WHIT_GUARD_STATE);
    snprintf(path, sizeof path, "%s/.local/state/whit/agent.ndf", home);
    assert_int_equal(whit_guard_folder_of(path), WHIT_GUARD_STATE);
    assert_int_equal(whit_guard_folder_of(home), WHIT_GUARD_ELSEWHERE);
    whit_change change = {.path = "c/whit/agent.json", .is = true, .after = "{}", .after_bytes = 2};
    assert_non_null(strstr(whit_light_red(home, NULL, &change, room), "own configuration"));
    /* the settings contain environment variables of servers */
    assert_true(whit_light_secret(home, "c/whit/agent.json"));
    assert_true(whit_light_secret(home, ".config/whit/AGENT.json"));
    assert_false(whit_light_secret(home, ".config/whit/edit.conf"));
    snprintf(path, sizeof path, "%s/.config", home);
    change.path = "whit/edit.conf";
    assert_non_null(strstr(whit_light_red(path, NULL, &change, room), "own configuration"));
    /* also before the folder exists */
    snprintf(command, sizeof command, "rmdir %s/.config/whit", home);
    assert_int_equal(system(command), 0);
    assert_non_null(whit_light_red(path, NULL, &change, room));
    change.path = "other/edit.conf";
    assert_null(whit_light_red(path, NULL, &change, room));
}

/* Hooks of git are often links to scripts of the project. */
static void linked_hooks_are_guarded(void **state)
{
    (void)state;
    char project[PATH_MAX], command[1200], room[WHIT_REASON_BYTES];
    const char *folder = in_folder("hooks");
    snprintf(
        command, sizeof command,
        "mkdir -p %s/.git/hooks %s/sub && cd %s && ln -s ../../sub/check.sh .git/hooks/pre-commit && touch sub/free.sh",
        folder, folder, folder);
    assert_int_equal(system(command), 0);
    for (int deep = 0; deep < 2; deep++) {
        snprintf(command, sizeof command, "%s%s", folder, deep ? "/sub" : "");
        assert_non_null(realpath(command, project));
        for (int exists = 0; exists < 2; exists++) {
            whit_change change = {
                .path = deep ? "check.sh" : "sub/check.sh", .is = true, .after = "true\n", .after_bytes = 5};
            const char *reason = whit_light_red(project, NULL, &change, room);
            if (!reason || !strstr(reason, "programs obey")) fail_msg("a hook: %s", reason ? reason : "");
            change.path = deep ? "free.sh" : "sub/free.sh";
            assert_null(whit_light_red(project, NULL, &change, room));
            snprintf(command, sizeof command, "touch %s/sub/check.sh", folder);
            assert_int_equal(system(command), 0);
        }
        snprintf(command, sizeof command, "rm %s/sub/check.sh", folder);
        assert_int_equal(system(command), 0);
    }
    /* a hook whose name no list has */
    snprintf(command, sizeof command, "cd %s && ln -sf ../../sub/free.sh .git/hooks/post-index-change", folder);
    assert_int_equal(system(command), 0);
    assert_non_null(realpath(folder, project));
    assert_non_null(whit_light_red(
        project, NULL, &(whit_change){.path = "sub/free.sh", .is = true, .after = "true\n", .after_bytes = 5}, room));
    /* a path without a folder above it, as that of a drive, ends the search */
    assert_false(whit_links_hook("p", "/elsewhere"));
    assert_false(whit_links_hook("Z:/p", "/elsewhere"));
}

/* A file has the kind of each link of the project that leads to it or to a folder above it. */
static void linked_names_are_guarded(void **state)
{
    (void)state;
    static const struct {
        const char *link, *target, *path;
        bool is_secret;
    } cases[] = {
        {"AGENTS.md", "docs/rules.md", "docs/rules.md", false},
        {"sub/CLAUDE.md", "../docs/rules.md", "docs/rules.md", false},
        {".github", "docs", "docs/deep/ci.yml", false},
        {".whit/agent.json", "../docs/new.json", "docs/new.json", false},
        {".env", "docs/rules.md", "docs/rules.md", true},
    };
    char project[PATH_MAX], command[1200], room[WHIT_REASON_BYTES];
    const char *folder = in_folder("links");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(command, sizeof command,
                 "mkdir -p %s/docs/deep %s/sub %s/.whit && cd %s && touch docs/rules.md docs/deep/ci.yml other.md && "
                 "ln -s %s %s && ln -s other.md link.md",
                 folder, folder, folder, folder, cases[i].target, cases[i].link);
        assert_int_equal(system(command), 0);
        assert_non_null(realpath(folder, project));
        whit_change change = {.path = cases[i].path, .is = true, .after = "{}", .after_bytes = 2};
        const char *reason = whit_light_red(project, NULL, &change, room);
        if (!reason || !strstr(reason, "programs obey")) fail_msg("%s: %s", cases[i].link, reason ? reason : "");
        assert_int_equal(strstr(reason, "keys") != NULL, cases[i].is_secret);
        assert_int_equal(whit_light_secret(project, cases[i].path), cases[i].is_secret);
        change.path = "other.md";
        assert_null(whit_light_red(project, NULL, &change, room));
        snprintf(command, sizeof command, "rm -rf %s", folder);
        assert_int_equal(system(command), 0);
    }
}

/* Configurations that are kept in a project, to which a link or a hard link of the configuration's folder leads. */
static void linked_settings_are_known(void **state)
{
    (void)state;
    static const char *const links[] = {"ln -s", "ln", "rm p/own.json; ln -s",
                                        "cd home/.config/whit && ln -s ../../../p/own.json"};
    char config[1100], project[PATH_MAX], command[3000], room[WHIT_REASON_BYTES];
    snprintf(config, sizeof config, "%s/dotfiles/home/.config", test_folder);
    setenv("XDG_CONFIG_HOME", config, 1);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        for (int is_editors = 0; is_editors < 2; is_editors++) {
            const char *name = is_editors ? "edit.conf" : "agent.json";
            snprintf(command, sizeof command,
                     "d=%s/dotfiles; rm -rf $d; mkdir -p $d/p $d/home/.config/whit && cd $d && touch p/own.json && %s "
                     "%s %s/whit/%s",
                     test_folder, links[i], i == 3 ? "" : "$PWD/p/own.json", config, name);
            assert_int_equal(system(command), 0);
            snprintf(command, sizeof command, "%s/dotfiles/p", test_folder);
            assert_non_null(realpath(command, project));
            whit_change change = {.path = "own.json", .is = true, .after = "{}", .after_bytes = 2};
            const char *reason = whit_light_red(project, NULL, &change, room);
            if (!reason || !strstr(reason, "own configuration")) fail_msg("%s: %s", links[i], name);
            assert_int_equal(whit_light_secret(project, "own.json"), !is_editors);
            change.path = "other.json";
            assert_null(whit_light_red(project, NULL, &change, room));
            assert_false(whit_light_secret(project, "other.json"));
        }
    }
    unsetenv("XDG_CONFIG_HOME");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_compared_as_file_systems_do),
        cmocka_unit_test(programs_obey_dot_files),
        cmocka_unit_test(keys_are_found_by_their_form),
        cmocka_unit_test(hidden_characters_are_found),
        cmocka_unit_test(hidden_files_are_found),
        cmocka_unit_test(reasons_are_compared_after_a_question),
        cmocka_unit_test(taken_keys_are_found),
        cmocka_unit_test(a_bare_repository_is_guarded),
        cmocka_unit_test(modules_of_a_set_are_known),
        cmocka_unit_test(a_failed_patch_keeps_settled_changes),
        cmocka_unit_test(own_folders_are_known),
        cmocka_unit_test(linked_hooks_are_guarded),
        cmocka_unit_test(linked_names_are_guarded),
        cmocka_unit_test(linked_settings_are_known),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
