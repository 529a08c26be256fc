/* SPDX-License-Identifier: MIT
 * Finds code that is written to evade the parser: where its rules for comments, strings and words differ from a
 * compiler's, it may skip code as a comment or string. Each form listed here was seen to evade it. */
#include "agent/review_text.h"

#include "base/items.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define ARGUMENT_BYTES_MAX 256 /* maximum number of bytes of a call's first argument in which a module is searched */
#define PROGRAM_BYTES_MAX  400 /* maximum number of bytes of a first line in which an interpreter's name is searched */

/* ---- languages --------------------------------------------------------------------------------- */

/* File suffixes, in lower case, in addition to the suffixes that the code graph knows. */
static const struct {
    const char *ending;
    whit_code_language language;
} endings[] = {
    {"c++", WHIT_CODE_C},       {"h++", WHIT_CODE_C},      {"tcc", WHIT_CODE_C},        {"txx", WHIT_CODE_C},
    {"ipp", WHIT_CODE_C},       {"ixx", WHIT_CODE_C},      {"cppm", WHIT_CODE_C},       {"inl", WHIT_CODE_C},
    {"def", WHIT_CODE_C},       {"m", WHIT_CODE_C},        {"mm", WHIT_CODE_C},         {"y", WHIT_CODE_C},
    {"yy", WHIT_CODE_C},        {"l", WHIT_CODE_C},        {"s", WHIT_CODE_C},          {"asm", WHIT_CODE_C},
    {"sx", WHIT_CODE_C},        {"ino", WHIT_CODE_C},      {"cl", WHIT_CODE_C},         {"cuh", WHIT_CODE_C},
    {"hip", WHIT_CODE_C},       {"pyw", WHIT_CODE_PYTHON}, {"pyx", WHIT_CODE_PYTHON},   {"pxd", WHIT_CODE_PYTHON},
    {"pl", WHIT_CODE_SCRIPT},   {"pm", WHIT_CODE_SCRIPT},  {"zsh", WHIT_CODE_SCRIPT},   {"ksh", WHIT_CODE_SCRIPT},
    {"fish", WHIT_CODE_SCRIPT}, {"awk", WHIT_CODE_SCRIPT}, {"tcl", WHIT_CODE_SCRIPT},   {"ex", WHIT_CODE_SCRIPT},
    {"exs", WHIT_CODE_SCRIPT},  {"jl", WHIT_CODE_SCRIPT},  {"cjs", WHIT_CODE_OTHER},    {"mts", WHIT_CODE_OTHER},
    {"cts", WHIT_CODE_OTHER},   {"vue", WHIT_CODE_OTHER},  {"svelte", WHIT_CODE_OTHER}, {"astro", WHIT_CODE_OTHER},
    {"html", WHIT_CODE_OTHER},  {"htm", WHIT_CODE_OTHER},  {"xhtml", WHIT_CODE_OTHER},  {"svg", WHIT_CODE_OTHER},
    {"phtml", WHIT_CODE_OTHER}, {"kts", WHIT_CODE_OTHER},  {"groovy", WHIT_CODE_OTHER}, {"gradle", WHIT_CODE_OTHER},
    {"dart", WHIT_CODE_OTHER},
};

/* Python files without a suffix, which build tools run. */
static const char *const python_names[] = {"sconstruct", "sconscript", "wscript", "snakefile"};

static bool has_text(const char *text, size_t n, const char *part)
{
    return n && memmem(text, n, part, strlen(part)) != NULL;
}

static whit_code_language language_of_program(const char *text, size_t n)
{
    const char *end = n ? memchr(text, '\n', n) : NULL;
    size_t n_line = end ? (size_t)(end - text) : n;
    if (n_line > PROGRAM_BYTES_MAX) n_line = PROGRAM_BYTES_MAX;
    if (n_line < 2 || memcmp(text, "#!", 2) != 0) return WHIT_CODE_NONE;
    if (has_text(text, n_line, "python")) return WHIT_CODE_PYTHON;
    if (has_text(text, n_line, "node") || has_text(text, n_line, "deno") || has_text(text, n_line, "bun") ||
        has_text(text, n_line, "php"))
        return WHIT_CODE_OTHER;
    return WHIT_CODE_SCRIPT;
}

whit_code_language whit_review_language(const char *path, const char *text, size_t n)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    char name[16] = "x.";
    size_t n_name = 2;
    for (const char *at = dot ? dot + 1 : ""; *at && n_name + 1 < sizeof name; at++)
        name[n_name++] = (char)tolower((uint8_t)*at);
    name[n_name] = 0;
    whit_code_language language = dot ? whit_code_language_of(name) : WHIT_CODE_NONE;
    for (size_t i = 0; dot && language == WHIT_CODE_NONE && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot + 1, endings[i].ending) == 0) language = endings[i].language;
    for (size_t i = 0; !dot && i < sizeof python_names / sizeof *python_names; i++)
        if (strcasecmp(slash ? slash + 1 : path, python_names[i]) == 0) language = WHIT_CODE_PYTHON;
    return language == WHIT_CODE_NONE ? language_of_program(text, n) : language;
}

/* ---- forms of text ----------------------------------------------------------------------------- */

struct text_form {
    const char *text, *reason;
};

/* Texts by which other languages import modules that run programs. They are in strings, which the parser does not
 * read. */
static const struct text_form modules[] = {{"child_process\"", "it adds a use of child_process"},
                                           {"child_process'", "it adds a use of child_process"},
                                           {"child_process`", "it adds a use of child_process"},
                                           {"\"os/exec\"", "it adds a use of os/exec"},
                                           {"process::Command", "it adds a use of process::Command"},
                                           {"\"open3\"", "it adds a use of open3"},
                                           {"'open3'", "it adds a use of open3"}};
/* Ways to reach a function in Python without writing its name. The text is searched with all blanks removed. */
static const struct text_form python_texts[] = {{"os.__dict__", "it finds a function of os by name"},
                                                {"sys.__dict__", "it finds a function of sys by name"},
                                                {"sys.modules", "it finds a module by name"},
                                                {"__getattribute__", "it finds a function by name"},
                                                {"__subclasses__", "it finds a class by name"},
                                                {"__globals__", "it finds a function by name"},
                                                {"attrgetter(", "it finds a function by name"},
                                                {"methodcaller(", "it finds a function by name"},
                                                {"globals()[", "it finds a function by name"},
                                                {"locals()[", "it finds a function by name"},
                                                {"yaml.load(", "it calls yaml.load()"},
                                                {"yaml.load_all(", "it calls yaml.load_all()"},
                                                {"yaml.full_load(", "it calls yaml.full_load()"},
                                                {"torch.load(", "it calls torch.load()"},
                                                {"pip.main(", "it calls pip.main()"},
                                                {"pytest.main(", "it calls pytest.main()"},
                                                {"profile.run(", "it calls profile.run()"},
                                                {"config.listen(", "it calls logging.config.listen()"},
                                                {"importosas", "it gives os another name"},
                                                {"importsysas", "it gives sys another name"}};
/* Ways to build or rename a name with the C preprocessor. */
static const struct text_form c_texts[] = {{"##", "it pastes names together"},
                                           {"%:", "it has digraphs"},
                                           {"?\?/", "it has trigraphs"},
                                           {"?\?=", "it has trigraphs"},
                                           {"redefine_extname", "it gives a function another name"},
                                           {"weakref", "it gives a function another name"},
                                           {"pragma weak", "it gives a function another name"},
                                           {"init_array", "it may add code that runs without a call"},
                                           {"fini_array", "it may add code that runs without a call"},
                                           {"init_seg", "it may add code that runs without a call"},
                                           {"pragma init", "it may add code that runs without a call"},
                                           {"pragma fini", "it may add code that runs without a call"}};

bool whit_review_imports_name(const whit_review_text *t, const char *name, size_t n)
{
    for (size_t i = 0; i < t->parse->n_mentions; i++) {
        const whit_parse_mention *m = &t->parse->mentions[i];
        if (m->imports && m->n_name == n && memcmp(t->text + m->name, name, n) == 0) return true;
    }
    return false;
}

static size_t count_text(const char *text, size_t n, const char *form)
{
    size_t count = 0, n_form = strlen(form);
    for (const char *at = text, *end = text + n; (at = memmem(at, (size_t)(end - at), form, n_form)); at += n_form)
        count++;
    return count;
}

/* Returns the reason of the first form that occurs more often in the new text than in the old one, or NULL. */
static const char *find_more(const struct text_form *forms, size_t n_forms, const char *before, size_t n_before,
                             const char *after, size_t n_after)
{
    for (size_t i = 0; i < n_forms; i++)
        if (count_text(after, n_after, forms[i].text) > count_text(before, n_before, forms[i].text))
            return forms[i].reason;
    return NULL;
}

/* Returns the offset after `word` if it is at offset `at` as a whole word, otherwise 0. */
static size_t word_end(const char *text, size_t n, size_t at, const char *word)
{
    const size_t n_word = strlen(word);
    if (n - at < n_word || memcmp(text + at, word, n_word) != 0) return 0;
    if ((at && whit_review_is_word(text[at - 1])) || (at + n_word < n && whit_review_is_word(text[at + n_word])))
        return 0;
    return at + n_word;
}

/* Counts asm statements: an asm keyword followed by a bracket, a comment, a backslash, or volatile, goto or inline. */
static size_t count_assembly(const char *text, size_t n)
{
    static const char *const words[] = {"asm", "_asm", "__asm", "__asm__"};
    size_t count = 0;
    for (size_t at = 0; at + 3 < n; at++) {
        size_t end = 0;
        if (text[at] != 'a' && text[at] != '_') continue;
        for (size_t i = 0; !end && i < sizeof words / sizeof *words; i++) end = word_end(text, n, at, words[i]);
        while (end && end < n && isspace((uint8_t)text[end])) end++;
        if (!end || end == n) continue;
        count += strchr("({/\\", text[end]) != NULL || has_text(text + end, n - end < 12 ? n - end : 12, "volatile") ||
            word_end(text, n, end, "goto") || word_end(text, n, end, "inline");
    }
    return count;
}

/* Counts attributes that put code or data into a section, section("...") and allocate("..."): a linker collects the
 * functions that run before and after main() by the names of sections. */
static size_t count_sections(const char *text, size_t n)
{
    static const char *const words[] = {"section", "allocate"};
    size_t count = 0;
    for (size_t at = 1; at < n; at++) {
        size_t end = 0, before = at;
        if (text[at] != 's' && text[at] != 'a') continue;
        for (size_t i = 0; !end && i < sizeof words / sizeof *words; i++) end = word_end(text, n, at, words[i]);
        while (end && before && isspace((uint8_t)text[before - 1])) before--;
        if (!end || !before || !strchr("(,:", text[before - 1])) continue;
        while (end < n && isspace((uint8_t)text[end])) end++;
        count += end < n && text[end] == '(';
    }
    return count;
}

/* Counts #include and similar directives that the parser does not see: either a "#" and the word are there but the file
 * name is not next (it is in a macro or after a comment), or the word and the file name are there but no "#" is
 * directly before (a comment or a backslash at a line's end is between them). */
static size_t count_included(const char *text, size_t n)
{
    static const char *const words[] = {"include", "include_next", "import", "embed"};
    size_t count = 0;
    for (size_t at = 1; at < n; at++) {
        size_t end = 0, before = at;
        if (text[at] != 'i' && text[at] != 'e') continue;
        for (size_t i = 0; !end && i < sizeof words / sizeof *words; i++) end = word_end(text, n, at, words[i]);
        while (end && before && (text[before - 1] == ' ' || text[before - 1] == '\t')) before--;
        if (!end || !before || !strchr("#/\n", text[before - 1])) continue;
        while (end < n && (text[end] == ' ' || text[end] == '\t')) end++;
        const bool is_directive = text[before - 1] == '#';
        count +=
            end < n && (is_directive ? text[end] != '"' && text[end] != '<' : text[end] == '"' || text[end] == '<');
    }
    return count;
}

/* Counts words and operators that a backslash at a line's end splits: the compiler joins the parts, the parser does
 * not. GCC allows blanks after the backslash. */
static size_t count_divided(const char *text, size_t n)
{
    size_t count = 0;
    for (size_t i = 1; i < n; i++) {
        size_t end = i + 1;
        if (text[i] != '\\' || isspace((uint8_t)text[i - 1])) continue;
        while (end < n && text[end] != '\n' && isspace((uint8_t)text[end])) end++;
        count += end + 1 < n && text[end] == '\n' && !isspace((uint8_t)text[end + 1]);
    }
    return count;
}

/* Counts raw strings in files that may be compiled as C, where R may be a macro before an ordinary string. */
static size_t count_raw(const whit_review_text *t)
{
    static const char *const plain[] = {".c", ".h", ".inc", ".def", ".inl", ".y", ".l", ".m", ".s"};
    static const char *const prefixes[] = {"R", "LR", "uR", "UR", "u8R"};
    const char *dot = strrchr(t->path, '.');
    bool may_be_c = false;
    size_t count = 0;
    for (size_t i = 0; dot && i < sizeof plain / sizeof *plain; i++) may_be_c = may_be_c || strcmp(dot, plain[i]) == 0;
    for (size_t at = 0; may_be_c && at < t->n; at++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            size_t end = t->text[at] == *prefixes[i] ? word_end(t->text, t->n, at, prefixes[i]) : 0;
            count += end && end < t->n && t->text[end] == '"';
        }
    return count;
}

/* Returns whether the first two lines of a Python source declare an encoding (PEP 263) other than UTF-8, ASCII,
 * Latin-1, ISO-8859-15 or cp1252. Its characters may then have another meaning: in unicode_escape, "#\u000aexec()" is
 * code. */
static bool is_encoded(const char *text, size_t n)
{
    static const char *const usual[] = {"utf-8",   "utf8",   "utf-8-sig",  "utf_8",       "ascii", "us-ascii",
                                        "latin-1", "latin1", "iso-8859-1", "iso-8859-15", "cp1252"};
    for (size_t at = 0, line = 0; at < n && line < 2; line++) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t n_line = end ? (size_t)(end - text) - at : n - at;
        const char *word = memmem(text + at, n_line, "coding", 6), *stop = text + at + n_line;
        at += n_line + 1;
        while (word && !(word + 6 < stop && (word[6] == ':' || word[6] == '=')))
            word = memmem(word + 1, (size_t)(stop - word) - 1, "coding", 6);
        if (!word) continue;
        word += 7;
        while (word < stop && (*word == ' ' || *word == '\t')) word++;
        size_t n_word = 0;
        while (word + n_word < stop &&
               (whit_review_is_word(word[n_word]) || word[n_word] == '-' || word[n_word] == '.'))
            n_word++;
        bool known = !n_word;
        for (size_t i = 0; !known && i < sizeof usual / sizeof *usual; i++)
            known = strlen(usual[i]) == n_word && strncasecmp(usual[i], word, n_word) == 0;
        if (!known) return true;
    }
    return false;
}

/* Appends the text without blanks and backslashes. Returns false if memory runs out. */
static bool drop_blanks(const whit_review_text *t, whit_buf *out)
{
    if (t->n && !whit_buf_reserve(out, t->n)) return false;
    for (size_t i = 0; i < t->n; i++)
        if (!isspace((uint8_t)t->text[i]) && t->text[i] != '\\') out->data[out->size_bytes++] = (uint8_t)t->text[i];
    return true;
}

/* Counts calls getattr(m, ...) and vars(m) in which m is os or sys, also as a part of another module (glob.os,
 * random._os). The text has no blanks, so that the word before a call may be joined to it. */
static size_t count_lookups(const char *text, size_t n)
{
    static const char *const calls[] = {"getattr(", "vars("}, *const found[] = {"os", "_os", "sys", "_sys"};
    size_t count = 0;
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        const size_t n_call = strlen(calls[k]);
        for (const char *at = text, *stop = text + n; (at = memmem(at, (size_t)(stop - at), calls[k], n_call));) {
            int depth = 1;
            const char *end = at += n_call;
            for (; end < stop && end - at < ARGUMENT_BYTES_MAX && !(depth == 1 && *end == ','); end++)
                if ((depth += (*end == '(') - (*end == ')')) == 0) break;
            count += end - at == ARGUMENT_BYTES_MAX;  /* it is not looked at */
            while (end > at && end[-1] == ')') end--; /* the end of the first argument */
            const char *begin = end;
            while (begin > at && whit_review_is_word(begin[-1])) begin--;
            for (size_t i = 0; i < sizeof found / sizeof *found; i++)
                count += (size_t)(end - begin) == strlen(found[i]) && memcmp(begin, found[i], strlen(found[i])) == 0;
        }
    }
    return count;
}

static const char *find_python(const whit_review_text *before, const whit_review_text *after)
{
    whit_buf old = {0}, new = {0};
    if (is_encoded(after->text, after->n)) return "it is written in an encoding that hides code";
    const char *reason = "there is not enough memory to look at its code";
    if (drop_blanks(before, &old) && drop_blanks(after, &new)) {
        const char *was = old.size_bytes ? whit_chars(&old) : "", *is = new.size_bytes ? whit_chars(&new) : "";
        reason = find_more(python_texts, sizeof python_texts / sizeof *python_texts, was, old.size_bytes, is,
                           new.size_bytes);
        if (!reason && count_lookups(is, new.size_bytes) > count_lookups(was, old.size_bytes))
            reason = "it finds a function of os or sys by name";
    }
    whit_buf_free(&old);
    whit_buf_free(&new);
    return reason;
}

static bool is_same(const whit_review_text *before, const whit_review_text *after)
{
    return before->n == after->n && (!after->n || memcmp(before->text, after->text, after->n) == 0);
}

static bool is_assembly(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".s") == 0 || strcasecmp(dot, ".sx") == 0 || strcasecmp(dot, ".asm") == 0);
}

static const char *find_c(const whit_review_text *before, const whit_review_text *after)
{
    if (is_assembly(after->path) && !is_same(before, after)) return "it adds assembly";
    const char *reason =
        find_more(c_texts, sizeof c_texts / sizeof *c_texts, before->text, before->n, after->text, after->n);
    if (reason) return reason;
    if (count_assembly(after->text, after->n) > count_assembly(before->text, before->n)) return "it adds assembly";
    if (count_included(after->text, after->n) > count_included(before->text, before->n))
        return "it includes a file that is not named after the word";
    if (count_sections(after->text, after->n) > count_sections(before->text, before->n))
        return "it puts code or data into a section by its name";
    if (count_raw(after) > count_raw(before)) return "it has a raw string, which is code for some compilers";
    return count_divided(after->text, after->n) > count_divided(before->text, before->n)
        ? "it divides a name over two lines"
        : NULL;
}

const char *whit_review_forms(const whit_review_text *before, const whit_review_text *after)
{
    switch (after->language) {
    case WHIT_CODE_C: return find_c(before, after);
    case WHIT_CODE_PYTHON: return find_python(before, after);
    case WHIT_CODE_SCRIPT:
    case WHIT_CODE_OTHER:
        return is_same(before, after)
            ? NULL
            : find_more(modules, sizeof modules / sizeof *modules, "", 0, after->text, after->n);
    default: return NULL;
    }
}

bool whit_review_uses(const char *text, size_t n, const char *name, bool is_word)
{
    const size_t n_name = strlen(name);
    for (size_t at = 0; at < n; at++) {
        const char *found = memmem(text + at, n - at, name, n_name);
        if (!found) return false;
        at = (size_t)(found - text);
        size_t end = word_end(text, n, at, name);
        if (!end) continue;
        if (!is_word || (at && strchr("'\"`:&", text[at - 1]))) return true;
        while (end < n && (text[end] == ' ' || text[end] == '\t')) end++;
        if (end < n && strchr("('\"`$", text[end])) return true;
        if (n - end > 5 && text[end] == '.' &&
            (memcmp(text + end, ".call", 5) == 0 || memcmp(text + end, ".appl", 5) == 0 ||
             memcmp(text + end, ".bind", 5) == 0))
            return true;
    }
    return false;
}
