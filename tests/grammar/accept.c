/* SPDX-License-Identifier: MIT
 * Tells scripts which texts a schema's grammar accepts. Reads lines:
 *
 *     S SCHEMA      opens a schema (G TEXT: a GBNF grammar); prints "OK", or "REFUSED" and the reason
 *     A TEXT        prints 1 if the text is accepted and may end there, otherwise 0 and the number of bytes accepted
 *     R N SEED      writes N random answers, one per line, then "." ("?" before one that did not end, "!" an error)
 *
 * The vocabulary has a token for each byte and a few words (../fuzz/grammar.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fuzz/grammar.h"
#include "base/rng.h"

enum { N_TOKENS = 265, END = 264, STEPS_MAX = 3000, TEXT_MAX = 1 << 16 };

static whit_grammar_vocabulary *vocabulary;
static whit_grammar *grammar;

static void open_grammar(char kind, const char *text, size_t n)
{
    whit_error error;
    whit_grammar_close(grammar);
    grammar = NULL;
    fuzz_open_fn *open = kind == 'S' ? whit_grammar_open_json_schema : whit_grammar_open_gbnf;
    if (open(vocabulary, kind == 'S' ? "schema" : "grammar", text, n, &grammar, &error) == WHIT_OK)
        puts("OK");
    else
        printf("REFUSED %s\n", error.message);
}

static void accept_text(const uint8_t *text, size_t n)
{
    whit_grammar_state *state;
    whit_error error;
    size_t at = 0;
    if (whit_grammar_state_open(grammar, &state, &error) != WHIT_OK) exit(1);
    while (at < n && whit_grammar_accept(state, text[at], &error) == WHIT_OK) at++;
    if (at == n && whit_grammar_is_complete(state))
        puts("1");
    else
        printf("0 %zu\n", at);
    whit_grammar_state_close(state);
}

/* Picks a random allowed token; tokens that close something get more likely with the number of steps. */
static int32_t pick_token(const uint64_t *bits, int step, whit_rng *rng)
{
    int32_t open[N_TOKENS], closing[8];
    uint32_t n = 0, n_closing = 0;
    for (int32_t id = 0; id < END; id++) {
        if (!(bits[id / 64] >> id % 64 & 1)) continue;
        open[n++] = id;
        if (id == '"' || id == '}' || id == ']') closing[n_closing++] = id;
    }
    if (n == 0) return -1;
    uint32_t percent = step < 12 ? 15 : step < 80 ? 50 : 90;
    if (n_closing && whit_rng_below(rng, 100) < percent) return closing[whit_rng_below(rng, n_closing)];
    return open[whit_rng_below(rng, n)];
}

static void write_answer(whit_rng *rng)
{
    static uint8_t text[TEXT_MAX];
    whit_grammar_state *state;
    whit_error error;
    size_t n = 0;
    const char *sign = "?";
    if (whit_grammar_state_open(grammar, &state, &error) != WHIT_OK) exit(1);
    for (int step = 0; step < STEPS_MAX; step++) {
        const uint64_t *bits;
        if (whit_grammar_is_complete(state) && (whit_grammar_is_finished(state) || whit_rng_below(rng, 2))) {
            sign = "";
            break;
        }
        whit_status status = whit_grammar_mask(state, &bits, &error);
        int32_t id = status == WHIT_OK ? pick_token(bits, step, rng) : -1;
        if (id < 0 || whit_grammar_accept(state, id, &error) != WHIT_OK) {
            printf("!%s after ", error.message);
            sign = "";
            break;
        }
        uint32_t begin = vocabulary->begin[id], n_bytes = vocabulary->begin[id + 1] - begin;
        if (n + n_bytes > sizeof text) break;
        memcpy(text + n, vocabulary->bytes + begin, n_bytes);
        n += n_bytes;
    }
    printf("%s%.*s\n", sign, (int)n, (const char *)text);
    whit_grammar_state_close(state);
}

int main(void)
{
    whit_error error;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t got;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (whit_token_trie_build(N_TOKENS, fuzz_bytes, NULL, NULL, &vocabulary, &error) != WHIT_OK) return 1;
    while ((got = getline(&line, &capacity, stdin)) > 2) {
        size_t n = (size_t)got - (line[got - 1] == '\n');
        if (line[0] == 'S' || line[0] == 'G') open_grammar(line[0], line + 2, n - 2);
        if (line[0] == 'A' && grammar) accept_text((const uint8_t *)line + 2, n - 2);
        if (line[0] == 'R' && grammar) {
            char *rest;
            long n_answers = strtol(line + 2, &rest, 10);
            whit_rng rng = {strtoull(rest, NULL, 10)};
            while (n_answers-- > 0) write_answer(&rng);
            puts(".");
        }
    }
    free(line);
    whit_grammar_close(grammar);
    whit_token_trie_free(vocabulary);
    return 0;
}
