/* SPDX-License-Identifier: MIT
 * Writes random answers that follow a schema, for scripts that check whether they are valid.
 *
 *     grammar_sample TOKENIZER FILE N MOST_TOKENS SEED
 *
 * Every line of FILE is a JSON schema. For each, N answers are written: every token is drawn from those that the mask
 * allows, all with the same probability. Prints a JSON line per answer, and the times of masks to stderr. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "grammar/grammar.h"
#include "runtime/grammar.h"
#include "tokenizer/decoder.h"
#include "tokenizer/from_path.h"

static uint64_t *times;
static size_t n_times;
static whit_tokenizer_view view;

/* Returns the processor time of this thread, which other load does not affect. */
static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int32_t draw(const uint64_t *bits, uint32_t n_words, whit_rng *rng)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < n_words; i++) n += (uint64_t)__builtin_popcountll(bits[i]);
    uint64_t wanted = whit_rng_below(rng, n);
    for (uint32_t i = 0; i < n_words; i++) {
        uint64_t here = (uint64_t)__builtin_popcountll(bits[i]), word = bits[i];
        if (wanted >= here) {
            wanted -= here;
            continue;
        }
        while (wanted--) word &= word - 1;
        return (int32_t)(i * 64 + (uint32_t)__builtin_ctzll(word));
    }
    return -1;
}

/* Returns the last token that is the letter x, or -1. The first such token may be a byte token, whose text the decoder
 * withholds. */
static int32_t letter_of(const whit_grammar_vocabulary *v)
{
    for (uint32_t id = v->n_tokens; id-- > 0;)
        if (v->begin[id + 1] - v->begin[id] == 1 && v->bytes[v->begin[id]] == 'x') return (int32_t)id;
    return -1;
}

/* Decodes ids as a user would see them, with the tokenizer's decoder instead of the grammar's vocabulary. With `letter`
 * the ids follow a letter, since decoders drop a space at the beginning of a text. */
static whit_status decode(const whit_buf *ids, bool letter, whit_buf *text, whit_error *error)
{
    WHIT_TRY(whit_tokenizer_decode(&view, (const int32_t *)(const void *)ids->data, ids->size_bytes / sizeof(int32_t),
                                   true, text, error));
    if (!letter || text->size_bytes == 0) return WHIT_OK;
    memmove(text->data, text->data + 1, --text->size_bytes);
    return WHIT_OK;
}

static const char *answer(whit_grammar *g, uint32_t most, whit_rng *rng, whit_buf *text, uint32_t *n_tokens,
                          whit_error *error)
{
    const whit_grammar_vocabulary *v = g->vocabulary;
    whit_grammar_state *state;
    const char *finish = "length";
    whit_buf ids = {0};
    int32_t letter = letter_of(v);
    text->size_bytes = 0;
    if (whit_grammar_state_open(g, &state, error) != WHIT_OK) return "error";
    if (letter >= 0) whit_buf_append(&ids, &letter, sizeof letter);
    for (*n_tokens = 0; *n_tokens < most; ++*n_tokens) {
        const uint64_t *bits;
        uint64_t begin = cpu_ns();
        if (whit_grammar_mask(state, &bits, error) != WHIT_OK) {
            finish = "error";
            break;
        }
        times = n_times % 65536 ? times : realloc(times, (n_times + 65536) * sizeof *times);
        times[n_times++] = cpu_ns() - begin;
        int32_t id = draw(bits, v->n_words, rng);
        if (whit_grammar_accept(state, id, error) != WHIT_OK) {
            finish = "error";
            break;
        }
        if (v->ends[id / 64] >> id % 64 & 1) {
            finish = "stop";
            break;
        }
        whit_buf_append(&ids, &id, sizeof id);
    }
    if (ids.size_bytes && decode(&ids, letter >= 0, text, error) != WHIT_OK) finish = "error";
    whit_grammar_state_close(state);
    whit_buf_free(&ids);
    return finish;
}

static int one_line(const whit_grammar_vocabulary *v, const char *line, size_t n, int number, char *const *arguments)
{
    whit_grammar *g;
    whit_error error;
    whit_buf text = {0}, out = {0};
    uint64_t begin = whit_now_ns();
    whit_status status = whit_grammar_open_json_schema(v, "schema", line, n, &g, &error);
    double open_ms = (double)(whit_now_ns() - begin) / 1e6;
    if (status != WHIT_OK) {
        whit_json_write_string(&out, error.message, strlen(error.message));
        printf("{\"schema\": %d, \"finish\": \"refused\", \"open_ms\": %.3f, \"error\": %.*s}\n", number, open_ms,
               (int)out.size_bytes, (const char *)out.data);
        whit_buf_free(&out);
        return 0;
    }
    int n_answers = atoi(arguments[3]);
    for (int i = 0; i < n_answers; i++) {
        whit_rng rng = {(uint64_t)atoll(arguments[5]) + (uint64_t)number * 1000003 + (uint64_t)i};
        uint32_t n_tokens = 0;
        const char *finish = answer(g, (uint32_t)atoi(arguments[4]), &rng, &text, &n_tokens, &error);
        out.size_bytes = 0;
        whit_json_write_string(&out, (const char *)text.data, text.size_bytes);
        printf("{\"schema\": %d, \"finish\": \"%s\", \"tokens\": %u, \"text\": %.*s", number, finish, n_tokens,
               (int)out.size_bytes, (const char *)out.data);
        out.size_bytes = 0;
        if (finish[0] == 'e') whit_json_write_string(&out, error.message, strlen(error.message));
        printf("%s%.*s}\n", out.size_bytes ? ", \"error\": " : "", (int)out.size_bytes,
               out.data ? (const char *)out.data : "");
    }
    whit_grammar_close(g);
    whit_buf_free(&text);
    whit_buf_free(&out);
    return 0;
}

int main(int argc, char **argv)
{
    whit_buf image = {0};
    whit_error error;
    whit_grammar_vocabulary *v;
    const char *const none[] = {NULL};
    if (argc != 6) return 2;
    if (whit_tokenizer_from_path(argv[1], &image, &error) != WHIT_OK ||
        whit_tokenizer_check(image.data, image.size_bytes, &view, &error) != WHIT_OK ||
        whit_token_trie_of_tokenizer(&view, whit_tokenizer_n_tokens(&view), none, argv[1], NULL, &v, &error) !=
            WHIT_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    FILE *file = fopen(argv[2], "r");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    if (!file) return 1;
    for (int number = 0; (n = getline(&line, &capacity, file)) > 0; number++)
        one_line(v, line, (size_t)n, number, argv);
    fclose(file);
    free(line);
    if (n_times) {
        qsort(times, n_times, sizeof *times, by_time);
        fprintf(stderr, "%u tokens, %zu masks: median %.4f ms, p99 %.4f ms, most %.3f ms\n", v->n_tokens, n_times,
                (double)times[n_times / 2] / 1e6, (double)times[n_times / 100 * 99] / 1e6,
                (double)times[n_times - 1] / 1e6);
    }
    free(times);
    whit_token_trie_free(v);
    whit_buf_free(&image);
    return 0;
}
