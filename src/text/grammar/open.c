/* SPDX-License-Identifier: MIT
 * Opens grammars from their texts. */
#include "grammar/gbnf.h"
#include "grammar/grammar.h"
#include "grammar/schema.h"

/* Skips a byte order mark, which editors on Windows write at the beginning of a file. */
static void skip_mark(const char **text, size_t *n_bytes)
{
    if (*n_bytes < 3 || memcmp(*text, "\xEF\xBB\xBF", 3) != 0) return;
    *text += 3;
    *n_bytes -= 3;
}

whit_status whit_grammar_open_gbnf(const whit_grammar_vocabulary *vocabulary, const char *name, const char *text,
                                   size_t text_bytes, whit_grammar **grammar, whit_error *error)
{
    whit_automaton graph;
    WHIT_NEED(grammar);
    *grammar = NULL;
    WHIT_NEED(vocabulary);
    WHIT_NEED(name);
    WHIT_NEED_ARRAY(text, text_bytes);
    skip_mark(&text, &text_bytes);
    WHIT_TRY(whit_automaton_open(vocabulary->allocator, &graph, error));
    whit_status status = whit_gbnf_compile(&graph, name, text, text_bytes, error);
    if (status == WHIT_OK) return whit_grammar_make(vocabulary, &graph, name, grammar, error);
    whit_automaton_close(&graph);
    return status;
}

whit_status whit_grammar_open_json_schema(const whit_grammar_vocabulary *vocabulary, const char *name,
                                          const char *schema, size_t schema_bytes, whit_grammar **grammar,
                                          whit_error *error)
{
    whit_automaton graph;
    uint32_t rule, bad;
    WHIT_NEED(grammar);
    *grammar = NULL;
    WHIT_NEED(vocabulary);
    WHIT_NEED(name);
    WHIT_NEED_ARRAY(schema, schema_bytes);
    skip_mark(&schema, &schema_bytes);
    WHIT_TRY(whit_automaton_open(vocabulary->allocator, &graph, error));
    uint32_t root = whit_automaton_rule(&graph);
    whit_status status = whit_json_schema_compile(&graph, name, schema, schema_bytes, &rule, error);
    if (status == WHIT_OK) {
        whit_automaton_define(&graph, root, whit_automaton_call(&graph, rule, WHIT_AUTOMATON_RET));
        status = whit_automaton_finish(&graph, name, &bad, error);
        if (status != WHIT_OK && bad != WHIT_AUTOMATON_NONE)
            status = whit_fail(
                error, WHIT_ERROR_UNSUPPORTED,
                "%s: #: the schema refers to itself with no property or element between: remove that reference", name);
    }
    if (status == WHIT_OK) return whit_grammar_make(vocabulary, &graph, name, grammar, error);
    whit_automaton_close(&graph);
    return status;
}
