/* SPDX-License-Identifier: MIT
 * Writes a tokenizer's image as GGUF keys: SentencePiece ("llama", by scores) and byte-level BPE ("gpt2", by ranked
 * merges and a named pattern). */
#include "model/export_gguf.h"
#include "base/items.h"

#include <stdlib.h>

#include "tokenizer/from_gguf.h"
#include "tokenizer/scan.h"

/* Lists the pre-tokenizer patterns with the names that every reader of GGUF knows. A name also determines whether words
 * that are tokens are looked up without merging. */
static const struct pattern_name {
    const char *pattern, *name;
    bool ignore_merges;
} pattern_names[] = {
    {WHIT_PATTERN_LLAMA3, "llama-bpe", true},
    {WHIT_PATTERN_LLAMA3, "smaug-bpe", false},
    {WHIT_PATTERN_QWEN2, "qwen2", false},
    {WHIT_PATTERN_GPT2, "gpt-2", false},
};

/* Returns the name of a pipeline that consists of one known pattern and the byte-level symbols; NULL if it has another
 * form. */
static const char *find_pattern(const whit_tokenizer_view *view)
{
    size_t n;
    const whit_tokenizer_step *steps = whit_tokenizer_section(view, WHIT_TOKENS_SPLIT, sizeof *steps, &n);
    const bool ignore_merges = view->header->flags & WHIT_TOKENIZER_IGNORE_MERGES;
    if (n == 1 && steps[0].kind == WHIT_STEP_BYTE_LEVEL && steps[0].flags == WHIT_STEP_FLAG_REGEX)
        return ignore_merges ? NULL : "gpt-2";
    if (n != 2 || steps[0].kind != WHIT_STEP_SPLIT || steps[0].flags != WHIT_STEP_FLAG_REGEX ||
        steps[0].a != WHIT_SPLIT_ISOLATED || steps[1].kind != WHIT_STEP_BYTE_LEVEL || steps[1].flags)
        return NULL;
    const uint8_t *text = whit_tokenizer_string(view, steps[0].text_offset, steps[0].text_bytes);
    for (size_t i = 0; text && i < sizeof pattern_names / sizeof *pattern_names; i++)
        if (strlen(pattern_names[i].pattern) == steps[0].text_bytes &&
            pattern_names[i].ignore_merges == ignore_merges &&
            memcmp(pattern_names[i].pattern, text, steps[0].text_bytes) == 0)
            return pattern_names[i].name;
    return NULL;
}

static int by_rank(const void *a, const void *b)
{
    const whit_merge_slot *x = a, *y = b;
    return (x->rank_plus_1 > y->rank_plus_1) - (x->rank_plus_1 < y->rank_plus_1);
}

static whit_status put_merges(const whit_tokenizer_view *view, whit_gguf_writer *writer,
                              const whit_allocator *allocator, whit_error *error)
{
    size_t n_slots, n = 0;
    const whit_merge_slot *slots = whit_tokenizer_section(view, WHIT_TOKENS_MERGES, sizeof *slots, &n_slots);
    whit_merge_slot *sorted = whit_alloc(allocator, n_slots * sizeof *sorted + 1);
    whit_buf text = {.allocator = allocator};
    if (!sorted) return whit_fail_memory(error, "the tokenizer's merges", n_slots * sizeof *sorted);
    for (size_t i = 0; i < n_slots; i++)
        if (slots[i].rank_plus_1) sorted[n++] = slots[i];
    qsort(sorted, n, sizeof *sorted, by_rank);
    whit_gguf_put_strings(writer, "tokenizer.ggml.merges", n);
    for (size_t i = 0; i < n; i++) {
        size_t left_bytes, right_bytes;
        const uint8_t *left = whit_tokenizer_token_text(view, (int32_t)sorted[i].left, &left_bytes);
        const uint8_t *right = whit_tokenizer_token_text(view, (int32_t)sorted[i].right, &right_bytes);
        text.size_bytes = 0;
        if (left) whit_buf_append(&text, left, left_bytes);
        whit_buf_append(&text, " ", 1);
        if (right) whit_buf_append(&text, right, right_bytes);
        whit_gguf_put_element(writer, whit_chars(&text), text.size_bytes);
    }
    bool failed = text.failed;
    whit_buf_free(&text);
    whit_free(allocator, sorted, n_slots * sizeof *sorted + 1);
    return failed ? whit_fail_memory(error, "the tokenizer's merges", 0) : WHIT_OK;
}

static whit_status put_tokens(const whit_tokenizer_view *view, bool scores, whit_gguf_writer *writer,
                              const whit_allocator *allocator, whit_error *error)
{
    uint32_t n = whit_tokenizer_n_tokens(view);
    whit_buf types = {.allocator = allocator}, numbers = {.allocator = allocator};
    whit_gguf_put_strings(writer, "tokenizer.ggml.tokens", n);
    for (uint32_t id = 0; id < n; id++) {
        size_t text_bytes = 0;
        const uint8_t *text = whit_tokenizer_token_text(view, (int32_t)id, &text_bytes);
        int32_t type = text ? whit_tokenizer_token_flags(view, (int32_t)id) & WHIT_TOKEN_TYPE : WHIT_TOKEN_UNUSED;
        float score = (float)whit_tokenizer_token_score(view, (int32_t)id);
        char hole[32];
        /* the name that converters give to an id without a text */
        int hole_bytes = snprintf(hole, sizeof hole, "[PAD%u]", id);
        size_t n_shown = text ? text_bytes : (size_t)hole_bytes;
        whit_gguf_put_element(writer, text ? (const char *)text : hole, n_shown);
        if (!whit_buf_append(&types, &type, sizeof type) || !whit_buf_append(&numbers, &score, sizeof score)) break;
    }
    bool failed = types.failed || numbers.failed;
    if (!failed && scores) whit_gguf_put_array(writer, "tokenizer.ggml.scores", WHIT_GGUF_F32, numbers.data, n);
    if (!failed) whit_gguf_put_array(writer, "tokenizer.ggml.token_type", WHIT_GGUF_I32, types.data, n);
    whit_buf_free(&types);
    whit_buf_free(&numbers);
    return failed ? whit_fail_memory(error, "the vocabulary", 0) : WHIT_OK;
}

/* Writes a token id. If the id is absent but readers would assume a default, writes a key of our own that says so. */
static void put_id(whit_gguf_writer *writer, const char *name, int32_t id, const char *absent)
{
    if (id >= 0)
        whit_gguf_put_u32(writer, name, (uint32_t)id);
    else if (absent)
        whit_gguf_put_bool(writer, absent, true);
}

static bool has_step(const whit_tokenizer_view *view, enum whit_tokenizer_section section, uint32_t kind)
{
    size_t n;
    const whit_tokenizer_step *steps = whit_tokenizer_section(view, section, sizeof *steps, &n);
    for (size_t i = 0; i < n; i++)
        if (steps[i].kind == kind) return true;
    return false;
}

/* Refuses added tokens with conditions on where they match, because GGUF cannot represent them. */
static whit_status check_added(const whit_tokenizer_view *view, const char *path, whit_error *error)
{
    size_t n;
    const whit_added_token *added = whit_tokenizer_section(view, WHIT_TOKENS_ADDED, sizeof *added, &n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t flags = added[i].flags;
        if (!(flags & (WHIT_ADDED_SINGLE_WORD | WHIT_ADDED_LSTRIP | WHIT_ADDED_RSTRIP))) continue;
        const uint8_t *text = whit_tokenizer_string(view, added[i].text_offset, added[i].text_bytes);

        int n_shown = text ? (int)(added[i].text_bytes < 80 ? added[i].text_bytes : 80) : 0;
        const char *flag = "rstrip";
        if (flags & WHIT_ADDED_SINGLE_WORD)
            flag = "single_word";
        else if (flags & WHIT_ADDED_LSTRIP)
            flag = "lstrip";
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the added token '%.*s' has %s, which GGUF cannot store; export without the tokenizer",
                         path, n_shown, text ? (const char *)text : "", flag);
    }
    return WHIT_OK;
}

whit_status whit_export_gguf_tokenizer(const whit_tokenizer_view *view, const char *path, whit_gguf_writer *writer,
                                       const whit_allocator *allocator, whit_error *error)
{
    const whit_tokenizer_header *header = view->header;
    bool byte_level = header->flags & WHIT_TOKENIZER_BYTE_LEVEL;
    size_t n_normalize, n_before, n_after;
    whit_tokenizer_section(view, WHIT_TOKENS_NORMALIZE, sizeof(whit_tokenizer_step), &n_normalize);
    whit_tokenizer_section(view, WHIT_TOKENS_BEFORE, sizeof(int32_t), &n_before);
    whit_tokenizer_section(view, WHIT_TOKENS_AFTER, sizeof(int32_t), &n_after);
    WHIT_TRY(check_added(view, path, error));
    if (header->model == WHIT_TOKENIZER_BPE && byte_level && n_normalize == 0) {
        const char *name = find_pattern(view);
        if (!name)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: the tokenizer's pattern%s has no name in GGUF; export without the tokenizer", path,
                             header->flags & WHIT_TOKENIZER_IGNORE_MERGES ? ", with ignore_merges," : "");
        whit_gguf_put_string(writer, "tokenizer.ggml.model", "gpt2", 4);
        whit_gguf_put_string(writer, "tokenizer.ggml.pre", name, strlen(name));
        WHIT_TRY(put_merges(view, writer, allocator, error));
    } else if (header->model == WHIT_TOKENIZER_SPM && !byte_level) {
        bool prefix = has_step(view, WHIT_TOKENS_NORMALIZE, WHIT_STEP_PREPEND);
        whit_gguf_put_string(writer, "tokenizer.ggml.model", "llama", 5);
        whit_gguf_put_string(writer, "tokenizer.ggml.pre", "default", 7);
        whit_gguf_put_bool(writer, "tokenizer.ggml.add_space_prefix", prefix);
    } else {
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: GGUF cannot store a tokenizer of this kind; export without the tokenizer", path);
    }
    WHIT_TRY(put_tokens(view, header->model == WHIT_TOKENIZER_SPM, writer, allocator, error));
    const bool has_defaults = header->model == WHIT_TOKENIZER_SPM;
    put_id(writer, "tokenizer.ggml.bos_token_id", header->bos, has_defaults ? WHIT_GGUF_NO_BOS : NULL);
    put_id(writer, "tokenizer.ggml.eos_token_id", header->eos, has_defaults ? WHIT_GGUF_NO_EOS : NULL);
    put_id(writer, "tokenizer.ggml.unknown_token_id", header->unk, has_defaults ? WHIT_GGUF_NO_UNKNOWN : NULL);
    put_id(writer, "tokenizer.ggml.padding_token_id", header->pad, NULL);
    whit_gguf_put_bool(writer, "tokenizer.ggml.add_bos_token", n_before > 0);
    whit_gguf_put_bool(writer, "tokenizer.ggml.add_eos_token", n_after > 0);
    return WHIT_OK;
}
