/* SPDX-License-Identifier: MIT
 * Compiles a grammar of answers with tool calls, in the syntax of the model: thinking, then text or calls.
 *
 * Free text ends where the marker that precedes calls is complete. There is one rule for each prefix of the marker
 * that the text may end with (the states of Knuth, Morris and Pratt), so that no call can bypass the grammar. */
#include "base/phrase.h"
#include "whit/calls.h"

#include "base/items.h"
#include "base/json.h"
#include "base/options.h"
#include "base/utf8.h"
#include "grammar/grammar.h"
#include "grammar/schema.h"
#include "runtime/answer.h"
#include "runtime/call_gemma.h"
#include "runtime/call_tagged.h"
#include "runtime/chat.h"
#include "runtime/grammar.h"
#include "runtime/model.h"

enum { MOST_MARK = 40, MOST_NAME_BYTES = 128, MOST_BLANKS = 4, MOST_TOOLS = 1024 };

typedef struct builder {
    const whit_chat_template *chat;
    const whit_call_options *options;
    whit_automaton graph;
    whit_json tools;
    uint32_t any_object; /* rule for an arbitrary JSON object; WHIT_AUTOMATON_NONE until first used */
    whit_error *error;
} builder;

/* ---- text up to a marker ----------------------------------------------------------------------- */

typedef struct marker {
    uint32_t codes[MOST_MARK], n;
} marker;

static marker marker_of(const char *text)
{
    marker m = {.n = 0};
    size_t n = strlen(text);
    for (size_t at = 0, length; at < n && m.n < MOST_MARK; at += length)
        m.codes[m.n++] = whit_utf8_decode((const uint8_t *)text + at, n - at, &length);
    return m;
}

/* Returns how many code points at the text's end match the beginning of the marker after `code` was appended, if
 * n_matched did before (the transition of Knuth, Morris and Pratt). */
static uint32_t matched_after(const marker *m, uint32_t n_matched, uint32_t code)
{
    for (uint32_t n = n_matched + 1; n > 0; n--) {
        if (m->codes[n - 1] != code) continue;
        uint32_t i = 0; /* compares the marker's first n - 1 code points with the text's last n - 1 */
        while (i < n - 1 && m->codes[i] == m->codes[n_matched - (n - 1) + i]) i++;
        if (i == n - 1) return n;
    }
    return 0;
}

/* Adds a transition to `next` on any code point except `codes`. */
static uint32_t other_code(whit_automaton *g, const uint32_t *codes, size_t n, uint32_t next)
{
    uint32_t sorted[MOST_MARK + 8], from = 0;
    whit_code_range ranges[MOST_MARK + 9];
    size_t n_ranges = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at && sorted[at - 1] > codes[i]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = codes[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (sorted[i] > from) ranges[n_ranges++] = (whit_code_range){from, sorted[i] - 1};
        from = sorted[i] + 1;
    }
    ranges[n_ranges++] = (whit_code_range){from, 0x10FFFF};
    return whit_automaton_code(g, ranges, n_ranges, next);
}

/* Builds free text up to the complete marker `text`. The third argument is the state that follows the marker, up to the
 * end of the root rule; if it is WHIT_AUTOMATON_NONE, the marker must not be completed. may_end: the answer may end
 * within the text. plain: the text begins with neither a brace nor a blank, so that it cannot be a call without a
 * marker. */
static uint32_t text_until(whit_automaton *g, const char *text, uint32_t behind, bool may_end, bool plain)
{
    static const uint32_t call_begins[] = {'{', ' ', '\t', '\r', '\n'};
    marker m = marker_of(text);
    uint32_t rules[MOST_MARK], begin = WHIT_AUTOMATON_NONE;
    for (uint32_t i = 0; i < m.n; i++) rules[i] = whit_automaton_rule(g);
    for (uint32_t i = 0; i <= m.n; i++) { /* the last iteration builds the start of plain text */
        uint32_t ways[MOST_MARK + 2], told[MOST_MARK + 8], n_ways = 0, n_told = 0, n_matched = i < m.n ? i : 0;
        if (i == m.n && !plain) break;
        if (may_end) ways[n_ways++] = WHIT_AUTOMATON_RET;
        for (uint32_t k = 0; k < m.n; k++) {
            uint32_t known = 0, n = matched_after(&m, n_matched, m.codes[k]);
            while (known < n_told && told[known] != m.codes[k]) known++;
            if (known < n_told || !n) continue;
            whit_code_range one = {m.codes[k], m.codes[k]};
            told[n_told++] = m.codes[k];
            if (n < m.n)
                ways[n_ways++] = whit_automaton_code(g, &one, 1, whit_automaton_call(g, rules[n], WHIT_AUTOMATON_RET));
            else if (behind != WHIT_AUTOMATON_NONE)
                ways[n_ways++] = whit_automaton_code(g, &one, 1, behind);
        }
        for (size_t k = 0; i == m.n && k < sizeof call_begins / sizeof *call_begins; k++)
            told[n_told++] = call_begins[k];
        ways[n_ways++] = other_code(g, told, n_told, whit_automaton_call(g, rules[0], WHIT_AUTOMATON_RET));
        begin = whit_automaton_split(g, ways, n_ways);
        if (i < m.n) whit_automaton_define(g, rules[i], begin);
    }
    return plain ? begin : whit_automaton_call(g, rules[0], WHIT_AUTOMATON_RET);
}

static uint32_t blanks(whit_automaton *g, uint32_t next)
{
    whit_byte_set set = {0};
    for (const char *c = " \t\r\n"; *c; c++) whit_byte_add(&set, (uint8_t)*c);
    return whit_automaton_repeat(g, whit_automaton_set(g, &set, WHIT_AUTOMATON_RET), 0, MOST_BLANKS, next);
}

/* ---- arguments ----------------------------------------------------------------------------------- */

static whit_status compile_schema(builder *b, const char *name, const char *schema, size_t n, uint32_t *rule)
{
    return whit_json_schema_compile(&b->graph, name, schema, n, rule, b->error);
}

static whit_status any_object(builder *b, uint32_t *rule)
{
    static const char schema[] = "{\"type\": \"object\"}";
    if (b->any_object == WHIT_AUTOMATON_NONE)
        WHIT_TRY(compile_schema(b, "arguments", schema, sizeof schema - 1, &b->any_object));
    *rule = b->any_object;
    return WHIT_OK;
}

/* Returns whether a schema can be enforced; no error is set if it cannot. */
static bool can_hold(builder *b, uint32_t schema)
{
    whit_automaton scratch;
    whit_error ignored;
    uint32_t rule;
    size_t n;
    if (whit_json_type_of(&b->tools, schema) != WHIT_JSON_OBJECT) return false;
    uint32_t type = whit_json_get(&b->tools, schema, "type");
    if (type != WHIT_JSON_NONE && !whit_json_is(&b->tools, type, "object")) return false;
    const char *text = whit_json_raw(&b->tools, schema, &n);
    if (whit_automaton_open(b->graph.allocator, &scratch, &ignored) != WHIT_OK) return false;
    bool ok = whit_json_schema_compile(&scratch, "arguments", text, n, &rule, &ignored) == WHIT_OK;
    whit_automaton_close(&scratch);
    return ok;
}

/* Compiles the rule for the arguments of tool i. If arguments are enforced, a tool without `parameters` only accepts an
 * empty object. */
static whit_status arguments_of(builder *b, uint32_t i, uint32_t function, uint32_t *rule)
{
    const whit_json *json = &b->tools;
    uint32_t parameters = whit_json_get(json, function, "parameters"), strict = whit_json_get(json, function, "strict");
    bool held = whit_json_bool(json, strict, b->options->choice == WHIT_CALL_REQUIRED);
    char name[64];
    size_t n = 0;
    snprintf(name, sizeof name, "tools[%u].function.parameters", i);
    if (whit_chat_template_style(b->chat)->syntax == WHIT_CALLS_XML)
        return whit_call_tagged_rule(&b->graph, json, parameters, held, name, rule, b->error);
    if (whit_chat_template_style(b->chat)->syntax == WHIT_CALLS_GEMMA)
        return whit_call_gemma_rule(&b->graph, json, parameters, held, name, rule, b->error);
    /* Models are not trained for the plain form of calls, so with AUTO their arguments are constrained whenever the
     * schema can be enforced. */
    bool is_plain = !held && whit_chat_template_style(b->chat)->is_plain && b->options->choice == WHIT_CALL_AUTO;
    if (!held && !(is_plain && can_hold(b, parameters))) return any_object(b, rule);
    whit_buf own = {.allocator = b->graph.allocator};
    const char *schema = whit_json_raw(json, parameters, &n);
    bool ok = true;
    if (whit_json_type_of(json, parameters) <= WHIT_JSON_NULL) {
        schema = "{\"type\": \"object\", \"additionalProperties\": false}";
        n = strlen(schema);
    } else if (whit_json_type_of(json, parameters) != WHIT_JSON_OBJECT) {
        return whit_fail(b->error, WHIT_ERROR_FORMAT, "%s: a schema must be an object", name);
    } else if (whit_json_get(json, parameters, "$ref") == WHIT_JSON_NONE) {
        uint32_t type = whit_json_get(json, parameters, "type");
        if (type != WHIT_JSON_NONE && !whit_json_is(json, type, "object"))
            return whit_fail(b->error, WHIT_ERROR_FORMAT, "%s: #/type: the arguments of a function must be an object",
                             name);
        bool empty = !whit_json_count(json, parameters);
        ok = type != WHIT_JSON_NONE ||
            (whit_buf_printf(&own, "{\"type\": \"object\"%s", empty ? "" : ", ") &&
             whit_buf_append(&own, schema + 1, n - 1));
        if (own.size_bytes) schema = whit_chars(&own), n = own.size_bytes;
    }
    whit_status status =
        ok ? compile_schema(b, name, schema, n, rule) : whit_fail_memory(b->error, "a schema of arguments", n);
    whit_buf_free(&own);
    return status;
}

/* Returns whether a name consists of 1 to MOST_NAME_BYTES letters, digits, _, - and ., because names are written
 * between quotes or on a line of their own. */
static bool is_name(const char *name, size_t n)
{
    bool ok = n > 0 && n <= MOST_NAME_BYTES;
    for (size_t i = 0; ok && i < n; i++)
        ok = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
            (name[i] >= '0' && name[i] <= '9') || name[i] == '_' || name[i] == '-' || name[i] == '.';
    return ok;
}

/* ---- calls ----------------------------------------------------------------------------------------- */

/* Builds one call from its name on: the name, the literal `between`, the arguments (rule), then `next`. */
static uint32_t one_call(builder *b, const char *name, size_t n, const char *between, uint32_t rule, uint32_t next)
{
    whit_automaton *g = &b->graph;
    return whit_automaton_text(g, name, n, whit_automaton_literal(g, between, whit_automaton_call(g, rule, next)));
}

/* Builds a call of any tool from its name on: the name, the literal `between`, the arguments, then `next`. */
static whit_status any_call(builder *b, const char *between, uint32_t next, uint32_t *begin)
{
    const whit_json *json = &b->tools;
    uint32_t ways[MOST_TOOLS], n_ways = 0, i = 0;
    for (uint32_t at = whit_json_first(json, WHIT_JSON_ROOT); at != WHIT_JSON_NONE;
         at = whit_json_next(json, WHIT_JSON_ROOT, at), i++) {
        uint32_t function = whit_json_get(json, at, "function"), rule;
        size_t n;
        const char *name = whit_json_string(json, whit_json_get(json, function, "name"), &n);
        if (!name || !is_name(name, n))
            return whit_fail(b->error, WHIT_ERROR_FORMAT,
                             "tools[%u].function.name: expected at most %d letters, digits, _, - and .", i,
                             MOST_NAME_BYTES);
        if (b->options->name && (strlen(b->options->name) != n || memcmp(b->options->name, name, n) != 0)) continue;
        if (n_ways == MOST_TOOLS)
            return whit_fail(b->error, WHIT_ERROR_LIMIT, "tools: at most %d can be constrained by their schemas",
                             MOST_TOOLS);
        WHIT_TRY(arguments_of(b, i, function, &rule));
        ways[n_ways++] = one_call(b, name, n, between, rule, next);
    }
    if (!n_ways && b->options->name)
        return whit_fail(b->error, WHIT_ERROR_ARGUMENT, "tool_choice: there is no tool named %.*s", MOST_NAME_BYTES,
                         b->options->name);
    if (!n_ways) return whit_fail(b->error, WHIT_ERROR_ARGUMENT, "tools: a call is required, but the list has no tool");
    *begin = whit_automaton_split(&b->graph, ways, n_ways);
    return WHIT_OK;
}

/* Literal pieces of a call syntax. The members are in the order of the text: before the first call, before a name,
 * between name and arguments, after the arguments, between two calls (NULL: only one call is possible), after the last
 * call. */
typedef struct call_form {
    const char *open, *before, *between, *behind, *again, *close;
} call_form;

static call_form form_of(whit_call_syntax syntax)
{
    static const char arguments[] = "\", \"arguments\": ";
    switch (syntax) {
    case WHIT_CALLS_TAGGED:
        return (call_form){"\n", "{\"name\": \"", arguments, "}\n</tool_call>", "\n<tool_call>\n", ""};
    case WHIT_CALLS_MISTRAL: return (call_form){"[", "{\"name\": \"", arguments, "", ", ", "]"};
    case WHIT_CALLS_GRANITE: return (call_form){"[", "{\"name\": \"", arguments, "}", ", ", "]"};
    case WHIT_CALLS_LLAMA: return (call_form){"", "{\"name\": \"", "\", \"parameters\": ", "}", NULL, ""};
    case WHIT_CALLS_DEEPSEEK:
        return (call_form){"",
                           "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                           "\n```json\n",
                           "\n```<｜tool▁call▁end｜>",
                           "\n",
                           "<｜tool▁calls▁end｜>"};
    case WHIT_CALLS_GEMMA: return (call_form){"", "call:", "{", "}<tool_call|>", "<|tool_call>", ""};
    case WHIT_CALLS_XML:
        return (call_form){"\n", "<function=", ">\n", "</function>\n</tool_call>", "\n<tool_call>\n", ""};
    }
    return (call_form){"", "", "", "", NULL, ""};
}

/* Builds the end of a call after its arguments. Mistral's models may write an id there. */
static uint32_t behind_arguments(whit_automaton *g, const call_form *form, whit_call_syntax syntax, uint32_t next)
{
    if (syntax != WHIT_CALLS_MISTRAL) return whit_automaton_literal(g, form->behind, next);
    whit_byte_set set = {0};
    for (uint8_t c = '0'; c <= 'z'; c++)
        if (c <= '9' || (c >= 'A' && c <= 'Z') || c >= 'a') whit_byte_add(&set, c);
    uint32_t id = whit_automaton_repeat(g, whit_automaton_set(g, &set, WHIT_AUTOMATON_RET), 9, 9,
                                        whit_automaton_literal(g, "\"}", next));
    uint32_t ways[] = {whit_automaton_literal(g, ", \"id\": \"", id), whit_automaton_literal(g, "}", next)};
    return whit_automaton_split(g, ways, 2);
}

/* Builds all calls, from the end of their marker to the end of the answer. */
static whit_status all_calls(builder *b, uint32_t *begin)
{
    whit_automaton *g = &b->graph;
    whit_call_syntax syntax = whit_chat_template_style(b->chat)->syntax;
    call_form form = form_of(syntax);
    uint32_t call = whit_automaton_rule(g), end = whit_automaton_literal(g, form.close, WHIT_AUTOMATON_RET), inside = 0;
    if (form.again && !b->options->single) {
        uint32_t ways[] = {end,
                           whit_automaton_literal(g, form.again, whit_automaton_call(g, call, WHIT_AUTOMATON_RET))};
        end = whit_automaton_split(g, ways, 2);
    }
    WHIT_TRY(any_call(b, form.between, behind_arguments(g, &form, syntax, end), &inside));
    whit_automaton_define(g, call, whit_automaton_literal(g, form.before, inside));
    *begin = whit_automaton_literal(g, form.open, whit_automaton_call(g, call, WHIT_AUTOMATON_RET));
    return WHIT_OK;
}

/* ---- whole answers --------------------------------------------------------------------------------- */

/* Builds an answer from the end of its thinking section on. */
static whit_status build_answer(builder *b, uint32_t *begin)
{
    whit_automaton *g = &b->graph;
    whit_call_syntax syntax = whit_chat_template_style(b->chat)->syntax;
    bool bare = syntax == WHIT_CALLS_LLAMA; /* calls have no marker before them */
    const char *section = whit_answer_section(syntax);
    uint32_t calls, rule;
    WHIT_TRY(all_calls(b, &calls));
    uint32_t marked = bare ? calls : whit_automaton_literal(g, section, calls);
    if (b->options->choice == WHIT_CALL_REQUIRED) {
        *begin = marked;
    } else if (b->options->answer_schema) {
        WHIT_TRY(
            compile_schema(b, "response_format", b->options->answer_schema, b->options->answer_schema_bytes, &rule));
        uint32_t ways[] = {marked, whit_automaton_call(g, rule, WHIT_AUTOMATON_RET)};
        *begin = whit_automaton_split(g, ways, 2);
    } else if (bare) {
        uint32_t ways[] = {calls, text_until(g, section, WHIT_AUTOMATON_NONE, true, true)};
        *begin = blanks(g, whit_automaton_split(g, ways, 2));
    } else {
        *begin = text_until(g, section, calls, true, false);
    }
    return WHIT_OK;
}

/* Builds the whole answer. It begins with a thinking section if the prompt has opened one, or if the template knows
 * such sections and the prompt has not closed one. */
static whit_status build_whole(builder *b, const whit_chat_prompt *prompt, uint32_t *begin)
{
    whit_automaton *g = &b->graph;
    const char *open, *close;
    bool inside = whit_chat_prompt_thinks(prompt);
    bool known = whit_chat_template_thinking(b->chat, &open, &close) && !whit_chat_prompt_has_thought(prompt);
    uint32_t after, rule = whit_automaton_rule(g);
    WHIT_TRY(build_answer(b, &after));
    whit_automaton_define(g, rule, after);
    after = whit_automaton_call(g, rule, WHIT_AUTOMATON_RET);
    uint32_t thought = inside || known ? text_until(g, close, blanks(g, after), false, false) : after;
    uint32_t ways[] = {after, blanks(g, whit_automaton_literal(g, open, thought))};
    if (inside)
        *begin = thought;
    else if (known)
        *begin = whit_automaton_split(g, ways, 2);
    else
        *begin = after;
    return WHIT_OK;
}

static whit_status build_grammar(builder *b, const whit_chat_prompt *prompt, const whit_grammar_vocabulary *vocabulary,
                                 whit_grammar **grammar)
{
    uint32_t begin = WHIT_AUTOMATON_NONE, bad;
    if (whit_json_type_of(&b->tools, WHIT_JSON_ROOT) != WHIT_JSON_ARRAY)
        return whit_fail(b->error, WHIT_ERROR_FORMAT, "tools: expected a JSON list");
    WHIT_TRY(whit_automaton_open(vocabulary->allocator, &b->graph, b->error));
    uint32_t root = whit_automaton_rule(&b->graph);
    whit_status status = build_whole(b, prompt, &begin);
    if (status == WHIT_OK) {
        whit_automaton_define(&b->graph, root, begin);
        status = whit_automaton_finish(&b->graph, "tools", &bad, b->error);
    }
    if (status == WHIT_OK) return whit_grammar_make(vocabulary, &b->graph, "tools", grammar, b->error);
    whit_automaton_close(&b->graph);
    return status;
}

whit_status whit_call_grammar_open(const whit_chat_template *chat, const whit_chat_prompt *prompt,
                                   const whit_grammar_vocabulary *vocabulary, const whit_call_options *options,
                                   whit_grammar **grammar, whit_error *error)
{
    WHIT_NEED(grammar);
    *grammar = NULL;
    WHIT_NEED(chat);
    WHIT_NEED(vocabulary);
    WHIT_NEED(options);
    whit_call_options own = whit_call_options_default();
    WHIT_TRY(whit_options_read(&own, sizeof own, options, "whit_call_options", error));
    WHIT_NEED_ARRAY(own.tools, own.tools_bytes);
    WHIT_NEED_ARRAY(own.answer_schema, own.answer_schema_bytes);
    builder b = {.chat = chat, .options = &own, .any_object = WHIT_AUTOMATON_NONE, .error = error};
    WHIT_TRY(
        whit_json_parse("tools", whit_or_empty(own.tools), own.tools_bytes, vocabulary->allocator, &b.tools, error));
    whit_status status = build_grammar(&b, prompt, vocabulary, grammar);
    whit_json_close(&b.tools);
    return status;
}

whit_status whit_call_vocabulary_open(const whit_chat_template *chat, whit_grammar_vocabulary **vocabulary,
                                      whit_error *error)
{
    WHIT_NEED(vocabulary);
    *vocabulary = NULL;
    WHIT_NEED(chat);
    static const char *const deepseek[] = {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
                                           "<｜tool▁calls▁end｜>", NULL};
    static const char *const gemma[] = {"<|channel>", "<tool_call|>", WHIT_GEMMA_MARK, NULL};
    const whit_model *model = whit_chat_template_model(chat);
    const char *spelled[8] = {NULL};
    whit_call_syntax syntax = whit_chat_template_style(chat)->syntax;
    size_t n = 0;
    /* Special tokens can spell the markers of calls only if generation does not drop special tokens. */
    if (whit_chat_template_keep_special(chat)) {
        whit_chat_template_thinking(chat, &spelled[0], &spelled[1]);
        n = 2;
        if (syntax != WHIT_CALLS_LLAMA) spelled[n++] = whit_answer_section(syntax);
        for (size_t i = 0; syntax == WHIT_CALLS_DEEPSEEK && deepseek[i]; i++) spelled[n++] = deepseek[i];
        for (size_t i = 0; syntax == WHIT_CALLS_GEMMA && gemma[i]; i++) spelled[n++] = gemma[i];
    }
    return whit_token_trie_of_tokenizer(&model->tokenizer, model->config.n_vocab, spelled, model->path,
                                        model->allocator, vocabulary, error);
}
