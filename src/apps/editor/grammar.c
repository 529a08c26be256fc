/* SPDX-License-Identifier: MIT */
#include "whit_config.h"

#if WHIT_HAVE_TREE_SITTER
#define PCRE2_CODE_UNIT_WIDTH 8
#include "editor/grammar.h"

#include <dlfcn.h>
#include <limits.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/items.h"

#define QUERY_BYTES    (256u << 10)
#define GRAMMARS_MAX   32
#define PREDICATES_MAX 1024
/* maximum number of bytes of a node's text that a predicate compares; a longer text never matches */
#define WORD_BYTES 256
#define STEPS_MAX  100000u

enum compared { EQUAL, MATCHES, ANY_OF };

struct predicate {
    uint32_t pattern, capture;
    enum compared how;
    bool negated;
    pcre2_code *expression;
    const TSQueryPredicateStep *words; /* operands of the predicate: strings with which the node's text is compared */
    uint32_t n_words;
};

struct ed_grammar {
    char name[32];
    const TSLanguage *language;
    TSQuery *query;
    uint8_t *styles; /* style of each capture, by capture id */
    struct predicate *predicates;
    size_t n_predicates;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    bool usable;
};

const struct ed_tree_sitter *ed_tree_sitter(void)
{
    static struct ed_tree_sitter library;
    static bool tried, whole;
    if (tried) return whole ? &library : NULL;
    tried = true;
    void *handle = dlopen("libtree-sitter.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) return NULL;
    whole = true;
#define LOAD(name) whole = (*(void **)&library.name = dlsym(handle, #name)) && whole;
    ED_TREE_FUNCTIONS(LOAD)
#undef LOAD
    return whole ? &library : NULL;
}

/* Maps a capture name of tree-sitter's highlighting queries to a style; the part after a dot is ignored. */
static whit_style style_of(const char *name, uint32_t n)
{
    static const struct {
        const char *name;
        whit_style style;
    } styles[] = {
        {"keyword", WHIT_STYLE_KEYWORD},     {"type", WHIT_STYLE_TYPE},           {"constructor", WHIT_STYLE_TYPE},
        {"function", WHIT_STYLE_FUNCTION},   {"method", WHIT_STYLE_FUNCTION},     {"string", WHIT_STYLE_STRING},
        {"character", WHIT_STYLE_STRING},    {"escape", WHIT_STYLE_NUMBER},       {"number", WHIT_STYLE_NUMBER},
        {"float", WHIT_STYLE_NUMBER},        {"comment", WHIT_STYLE_COMMENT},     {"constant", WHIT_STYLE_CONSTANT},
        {"boolean", WHIT_STYLE_CONSTANT},    {"attribute", WHIT_STYLE_DIRECTIVE}, {"preproc", WHIT_STYLE_DIRECTIVE},
        {"include", WHIT_STYLE_DIRECTIVE},   {"tag", WHIT_STYLE_KEYWORD},         {"label", WHIT_STYLE_DIRECTIVE},
        {"conditional", WHIT_STYLE_KEYWORD}, {"repeat", WHIT_STYLE_KEYWORD},
    };
    const char *dot = memchr(name, '.', n);
    size_t length = dot ? (size_t)(dot - name) : n;
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
        if (strlen(styles[i].name) == length && !memcmp(styles[i].name, name, length)) return styles[i].style;
    return WHIT_STYLE_TEXT;
}

static bool is_word(const struct ed_tree_sitter *ts, const TSQuery *query, const TSQueryPredicateStep *step,
                    const char *word)
{
    uint32_t n;
    const char *value = ts->ts_query_string_value_for_id(query, step->value_id, &n);
    return step->type == TSQueryPredicateStepTypeString && n == strlen(word) && !memcmp(value, word, n);
}

/* Adds one predicate of a pattern. Unknown predicates (#set!, #is-not? ...) count as true. */
static void add_predicate(const struct ed_tree_sitter *ts, struct ed_grammar *g, uint32_t pattern,
                          const TSQueryPredicateStep *steps, uint32_t n)
{
    struct predicate p = {.pattern = pattern, .words = steps + 2, .n_words = n - 2};
    if (n < 3 || g->n_predicates == PREDICATES_MAX || steps[1].type != TSQueryPredicateStepTypeCapture) return;
    p.capture = steps[1].value_id;
    p.negated = is_word(ts, g->query, steps, "not-eq?") || is_word(ts, g->query, steps, "not-match?");
    if (is_word(ts, g->query, steps, "eq?") || is_word(ts, g->query, steps, "not-eq?"))
        p.how = EQUAL;
    else if (is_word(ts, g->query, steps, "any-of?"))
        p.how = ANY_OF;
    else if (is_word(ts, g->query, steps, "match?") || is_word(ts, g->query, steps, "not-match?"))
        p.how = MATCHES;
    else
        return;
    if (p.how == MATCHES) {
        uint32_t n_bytes;
        const char *text = ts->ts_query_string_value_for_id(g->query, steps[2].value_id, &n_bytes);
        int code;
        PCRE2_SIZE at;
        p.expression = pcre2_compile((PCRE2_SPTR)text, n_bytes, 0, &code, &at, NULL);
        if (!p.expression) return;
    }
    g->predicates[g->n_predicates++] = p;
}

static bool read_query(const struct ed_tree_sitter *ts, struct ed_grammar *g, const char *text, size_t n, char *why,
                       size_t why_bytes)
{
    uint32_t at;
    TSQueryError wrong;
    g->query = ts->ts_query_new(g->language, text, (uint32_t)n, &at, &wrong);
    if (!g->query) {
        snprintf(why, why_bytes, "%s.scm: its query does not fit its grammar, at byte %u; run make grammars again",
                 g->name, at);
        return false;
    }
    uint32_t n_captures = ts->ts_query_capture_count(g->query);
    g->styles = calloc(n_captures + 1, 1);
    g->predicates = calloc(PREDICATES_MAX, sizeof *g->predicates);
    g->match = pcre2_match_data_create(1, NULL);
    g->limits = pcre2_match_context_create(NULL);
    if (!g->styles || !g->predicates || !g->match || !g->limits) {
        snprintf(why, why_bytes, "there is not enough memory for the grammar of %s", g->name);
        return false;
    }
    pcre2_set_match_limit(g->limits, STEPS_MAX);
    for (uint32_t i = 0; i < n_captures; i++) {
        uint32_t length;
        const char *name = ts->ts_query_capture_name_for_id(g->query, i, &length);
        g->styles[i] = (uint8_t)style_of(name, length);
    }
    for (uint32_t i = 0; i < ts->ts_query_pattern_count(g->query); i++) {
        uint32_t n_steps;
        const TSQueryPredicateStep *steps = ts->ts_query_predicates_for_pattern(g->query, i, &n_steps);
        for (uint32_t begin = 0, end; begin < n_steps; begin = end + 1) {
            for (end = begin; end < n_steps && steps[end].type != TSQueryPredicateStepTypeDone; end++) {
            }
            add_predicate(ts, g, i, steps + begin, end - begin);
        }
    }
    return true;
}

static bool open_grammar(const struct ed_tree_sitter *ts, struct ed_grammar *g, const char *folder, char *why,
                         size_t why_bytes)
{
    char path[PATH_MAX + 40], symbol[64];
    struct stat info;
    whit_buf query = {0};
    whit_error error;
    snprintf(path, sizeof path, "%s/%s.so", folder, g->name);
    if (stat(path, &info) != 0) return false; /* most languages have no grammar, so this is not an error */
    if ((info.st_uid != getuid() && info.st_uid != 0) || (info.st_mode & 022)) {
        snprintf(why, why_bytes, "%.200s: others may write to it, so it is not loaded", path);
        return false;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    snprintf(symbol, sizeof symbol, "tree_sitter_%s", g->name);
    const TSLanguage *(*language)(void) = NULL;
    if (library) *(void **)&language = dlsym(library, symbol);
    if (!language) {
        snprintf(why, why_bytes, "%.200s: is not a grammar; run make grammars again", path);
        return false;
    }
    g->language = language();
    TSParser *parser = ts->ts_parser_new();
    bool fits = parser && ts->ts_parser_set_language(parser, g->language);
    if (parser) ts->ts_parser_delete(parser);
    if (!fits) {
        snprintf(why, why_bytes, "%.200s: made for another version of tree-sitter; run make grammars again", path);
        return false;
    }
    snprintf(path, sizeof path, "%s/%s.scm", folder, g->name);
    if (whit_read_file(path, QUERY_BYTES, &query, &error) != WHIT_OK) {
        snprintf(why, why_bytes, "%.250s", error.message);
        return false;
    }
    bool ok = read_query(ts, g, whit_chars(&query), query.size_bytes, why, why_bytes);
    whit_buf_free(&query);
    return ok;
}

const struct ed_grammar *ed_grammar_for(const char *language, char *why, size_t why_bytes)
{
    static struct ed_grammar grammars[GRAMMARS_MAX];
    static size_t n_grammars;
    *why = 0;
    for (size_t i = 0; i < n_grammars; i++)
        if (!strcmp(grammars[i].name, language)) return grammars[i].usable ? &grammars[i] : NULL;
    if (n_grammars == GRAMMARS_MAX || strlen(language) >= sizeof grammars->name || strpbrk(language, "/.")) return NULL;
    struct ed_grammar *g = &grammars[n_grammars++];
    snprintf(g->name, sizeof g->name, "%s", language);
    const char *own = getenv("WHIT_GRAMMARS"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char folder[PATH_MAX];
    if (own && *own)
        snprintf(folder, sizeof folder, "%s", own);
    else if (data && *data)
        snprintf(folder, sizeof folder, "%s/whit/grammars", data);
    else if (home)
        snprintf(folder, sizeof folder, "%s/.local/share/whit/grammars", home);
    else
        return NULL;
    if (access(folder, R_OK)) return NULL; /* the library is not loaded if there are no grammars */
    const struct ed_tree_sitter *ts = ed_tree_sitter();
    g->usable = ts && open_grammar(ts, g, folder, why, why_bytes);
    return g->usable ? g : NULL;
}

const TSLanguage *ed_grammar_language(const struct ed_grammar *g)
{
    return g->language;
}

const TSQuery *ed_grammar_query(const struct ed_grammar *g)
{
    return g->query;
}

whit_style ed_grammar_style(const struct ed_grammar *g, uint32_t capture)
{
    return (whit_style)g->styles[capture];
}

static bool holds(const struct ed_grammar *g, const struct predicate *p, const char *word, size_t n)
{
    const struct ed_tree_sitter *ts = ed_tree_sitter();
    if (p->how == MATCHES) return pcre2_match(p->expression, (PCRE2_SPTR)word, n, 0, 0, g->match, g->limits) >= 0;
    for (uint32_t i = 0; i < p->n_words; i++) {
        uint32_t length;
        if (p->words[i].type != TSQueryPredicateStepTypeString) return false;
        const char *value = ts->ts_query_string_value_for_id(g->query, p->words[i].value_id, &length);
        if (length == n && !memcmp(value, word, n)) return true;
    }
    return false;
}

bool ed_grammar_holds(const struct ed_grammar *g, const whit_text *text, const TSQueryMatch *match)
{
    const struct ed_tree_sitter *ts = ed_tree_sitter();
    for (size_t i = 0; i < g->n_predicates; i++) {
        const struct predicate *p = &g->predicates[i];
        if (p->pattern != match->pattern_index) continue;
        for (uint16_t k = 0; k < match->capture_count; k++) {
            if (match->captures[k].index != p->capture) continue;
            char word[WORD_BYTES];
            uint32_t begin = ts->ts_node_start_byte(match->captures[k].node);
            uint32_t end = ts->ts_node_end_byte(match->captures[k].node);
            bool fits = end - begin <= sizeof word;
            size_t n = fits ? whit_text_read(text, begin, word, end - begin) : 0;
            if ((fits && holds(g, p, word, n)) == p->negated) return false;
        }
    }
    return true;
}
#else
typedef int whit_no_tree_sitter;
#endif
