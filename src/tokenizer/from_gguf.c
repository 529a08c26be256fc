/* SPDX-License-Identifier: MIT */
#include "tokenizer/from_gguf.h"

#include "tokenizer/builder.h"
#include "tokenizer/scan.h"

#define METASPACE "\xE2\x96\x81"

/* What a name in tokenizer.ggml.pre stands for: patterns applied one after the other. */
typedef struct named_pattern {
    const char *names; /* separated by spaces */
    const char *patterns[4];
    bool ignore_merges, add_bos;
} named_pattern;

static const named_pattern named_patterns[] = {
    {"gpt-2 gpt2 phi-2 mpt olmo jais roberta-bpe gigachat", {WHIT_PATTERN_GPT2}, false, false},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2 midm-2.0",
     {WHIT_PATTERN_LLAMA3},
     true,
     true},
    {"dbrx smaug-bpe", {WHIT_PATTERN_LLAMA3}, false, false},
    {"qwen2 stablelm2 deepseek-r1-qwen hunyuan megrez kormo", {WHIT_PATTERN_QWEN2}, false, false},
    {"qwen35",
     {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
      "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
     false,
     false},
    {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", WHIT_PATTERN_GPT2, "[0-9][0-9][0-9]"}, false, false},
    {"default",
     {"[\\p{P}\\$\\+<=>\\^~\\|]+", WHIT_PATTERN_GPT2, "\\p{N}+", "[0-9][0-9][0-9]"},
     false,
     false},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b",
     {"\\p{N}", WHIT_PATTERN_GPT2},
     false,
     false},
    {"tekken",
     {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
      "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
      "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
     true,
     true},
    {"gpt-4o llama4",
     {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
      "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
      "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
     false,
     false},
};

static bool text_is(whit_text text, const char *wanted)
{
    return text.n_bytes == strlen(wanted) && memcmp(text.data, wanted, text.n_bytes) == 0;
}

static const named_pattern *find_pattern(whit_text name)
{
    for (size_t i = 0; i < sizeof named_patterns / sizeof named_patterns[0]; i++) {
        const char *names = named_patterns[i].names;
        while (*names) {
            size_t n = strcspn(names, " ");
            if (n == name.n_bytes && memcmp(names, name.data, n) == 0) return &named_patterns[i];
            names += n + (names[n] == ' ');
        }
    }
    return NULL;
}

static uint8_t flags_of(int32_t type)
{
    switch (type) {
    case WHIT_TOKEN_NORMAL:
    case WHIT_TOKEN_USER:
    case WHIT_TOKEN_UNUSED: return (uint8_t)(type | WHIT_TOKEN_IN_VOCAB);
    case WHIT_TOKEN_UNKNOWN:
    case WHIT_TOKEN_CONTROL: return (uint8_t)(type | WHIT_TOKEN_SPECIAL);
    case WHIT_TOKEN_BYTE: return WHIT_TOKEN_BYTE;
    default: return WHIT_TOKEN_NORMAL | WHIT_TOKEN_IN_VOCAB;
    }
}

static whit_status add_tokens(whit_tokenizer_builder *builder, const whit_gguf_vocabulary *v,
                              whit_error *error)
{
    for (size_t i = 0; i < v->n_tokens; i++)
        WHIT_TRY(whit_tokenizer_builder_token(builder, (int64_t)i, v->tokens[i].data,
                                              v->tokens[i].n_bytes, v->scores ? v->scores[i] : 0,
                                              flags_of(v->types ? v->types[i] : WHIT_TOKEN_NORMAL),
                                              error));
    return whit_tokenizer_builder_index(builder, error);
}

/* Control tokens are special, user-defined ones are cut out of any text. */
static whit_status add_added(whit_tokenizer_builder *builder, const whit_gguf_vocabulary *v,
                             whit_error *error)
{
    for (size_t i = 0; i < v->n_tokens; i++) {
        int32_t type = v->types ? v->types[i] : WHIT_TOKEN_NORMAL;
        bool special = type == WHIT_TOKEN_CONTROL || type == WHIT_TOKEN_UNKNOWN;
        if (!special && type != WHIT_TOKEN_USER) continue;
        WHIT_TRY(whit_tokenizer_builder_added(builder, (int32_t)i, v->tokens[i].data,
                                              v->tokens[i].n_bytes, false,
                                              special ? WHIT_ADDED_SPECIAL : 0, error));
    }
    return WHIT_OK;
}

static int32_t checked_id(const whit_gguf_vocabulary *v, int64_t id)
{
    return id >= 0 && (uint64_t)id < v->n_tokens ? (int32_t)id : -1;
}

static whit_status add_ids(whit_tokenizer_builder *builder, const whit_gguf_vocabulary *v,
                           bool add_bos, whit_error *error)
{
    whit_tokenizer_header *header = &builder->header;
    header->bos = checked_id(v, v->bos);
    header->eos = checked_id(v, v->eos);
    header->pad = checked_id(v, v->pad);
    if (v->add_bos >= 0) add_bos = v->add_bos;
    if (add_bos && header->bos >= 0)
        WHIT_TRY(whit_tokenizer_builder_id(builder, &builder->before, header->bos, error));
    if (v->add_eos == 1 && header->eos >= 0)
        WHIT_TRY(whit_tokenizer_builder_id(builder, &builder->after, header->eos, error));
    WHIT_TRY(whit_tokenizer_builder_end(builder, checked_id(v, v->eot), error));
    WHIT_TRY(whit_tokenizer_builder_end(builder, checked_id(v, v->eom), error));
    return whit_tokenizer_builder_end_names(builder, error);
}

static whit_status add_step(whit_tokenizer_builder *builder, whit_buf *steps,
                            whit_tokenizer_step step, const char *text, const char *content,
                            whit_error *error)
{
    return whit_tokenizer_builder_step(builder, steps, step, text, strlen(text), content,
                                       strlen(content), error);
}

static whit_status build_spm(whit_tokenizer_builder *builder, const whit_gguf_vocabulary *v,
                             whit_error *error)
{
    bool prefix = v->add_space_prefix != 0;
    const whit_tokenizer_step replace = {.kind = WHIT_STEP_REPLACE};
    builder->header.model = WHIT_TOKENIZER_SPM;
    builder->header.flags = WHIT_TOKENIZER_BYTE_FALLBACK | WHIT_TOKENIZER_FUSE_UNK;
    builder->header.unk = checked_id(v, v->unk);
    builder->has_scores = true;
    if (!v->scores)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tokenizer.ggml.scores is missing", v->name);
    WHIT_TRY(add_tokens(builder, v, error));
    WHIT_TRY(add_added(builder, v, error));
    if (prefix)
        WHIT_TRY(add_step(builder, &builder->normalize,
                          (whit_tokenizer_step){.kind = WHIT_STEP_PREPEND}, METASPACE, "", error));
    WHIT_TRY(add_step(builder, &builder->normalize, replace, " ", METASPACE, error));
    WHIT_TRY(add_step(builder, &builder->decode, replace, METASPACE, " ", error));
    WHIT_TRY(add_step(builder, &builder->decode,
                      (whit_tokenizer_step){.kind = WHIT_STEP_BYTE_FALLBACK}, "", "", error));
    WHIT_TRY(add_step(builder, &builder->decode, (whit_tokenizer_step){.kind = WHIT_STEP_FUSE}, "",
                      "", error));
    if (prefix)
        WHIT_TRY(add_step(builder, &builder->decode,
                          (whit_tokenizer_step){.kind = WHIT_STEP_STRIP_CHAR, .a = 1}, " ", "",
                          error));
    return add_ids(builder, v, true, error);
}

static whit_status add_merges(whit_tokenizer_builder *builder, const whit_gguf_vocabulary *v,
                              whit_error *error)
{
    for (size_t i = 0; i < v->n_merges; i++) {
        const whit_text *merge = &v->merges[i];
        const char *space =
            merge->n_bytes > 1 ? memchr(merge->data + 1, ' ', merge->n_bytes - 1) : NULL;
        if (!space)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: merge %zu has no two sides", v->name, i);
        size_t left = (size_t)(space - merge->data);
        WHIT_TRY(whit_tokenizer_builder_merge(builder, merge->data, left, space + 1,
                                              merge->n_bytes - left - 1, false, error));
    }
    return WHIT_OK;
}

static whit_status build_bpe(whit_tokenizer_builder *builder, const whit_gguf_vocabulary *v,
                             whit_error *error)
{
    whit_text pre = v->pre.data ? v->pre : (whit_text){"default", 7};
    const named_pattern *pattern = find_pattern(pre);
    if (!pattern)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: tokenizer.ggml.pre '%.*s' is not known; its pattern is missing",
                         v->name, (int)(pre.n_bytes < 80 ? pre.n_bytes : 80), pre.data);
    builder->header.model = WHIT_TOKENIZER_BPE;
    builder->header.flags = WHIT_TOKENIZER_BYTE_LEVEL;
    if (pattern->ignore_merges) builder->header.flags |= WHIT_TOKENIZER_IGNORE_MERGES;
    WHIT_TRY(add_tokens(builder, v, error));
    WHIT_TRY(add_merges(builder, v, error));
    WHIT_TRY(add_added(builder, v, error));
    for (int i = 0; i < 4 && pattern->patterns[i]; i++)
        WHIT_TRY(add_step(builder, &builder->split,
                          (whit_tokenizer_step){.kind = WHIT_STEP_SPLIT,
                                                .flags = WHIT_STEP_FLAG_REGEX,
                                                .a = WHIT_SPLIT_ISOLATED},
                          pattern->patterns[i], "", error));
    const whit_tokenizer_step bytes = {.kind = WHIT_STEP_BYTE_LEVEL};
    WHIT_TRY(add_step(builder, &builder->split, bytes, "", "", error));
    WHIT_TRY(add_step(builder, &builder->decode, bytes, "", "", error));
    return add_ids(builder, v, pattern->add_bos, error);
}

whit_status whit_tokenizer_from_vocabulary(const whit_gguf_vocabulary *v, whit_buf *image,
                                           whit_error *error)
{
    whit_tokenizer_builder builder;
    whit_tokenizer_builder_init(&builder, v->name, v->n_tokens, image->allocator);
    whit_status status;
    if (text_is(v->model, "llama"))
        status = build_spm(&builder, v, error);
    else if (text_is(v->model, "gpt2"))
        status = build_bpe(&builder, v, error);
    else
        status = whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                           "%s: tokenizer.ggml.model '%.*s' is not supported (llama and gpt2 are)",
                           v->name, (int)(v->model.n_bytes < 80 ? v->model.n_bytes : 80),
                           v->model.data ? v->model.data : "");
    if (status == WHIT_OK) status = whit_tokenizer_builder_finish(&builder, image, error);
    whit_tokenizer_builder_close(&builder);
    return status;
}

/* ---- from a file --------------------------------------------------------------------------- */

static whit_status read_texts(const whit_gguf *gguf, const char *key, whit_buf *texts, size_t *n,
                              whit_error *error)
{
    const whit_gguf_key *array;
    whit_text text;
    WHIT_TRY(whit_gguf_array(gguf, key, WHIT_GGUF_STRING, &array, error));
    whit_gguf_strings strings = whit_gguf_strings_of(array);
    while (whit_gguf_strings_next(&strings, &text.data, &text.n_bytes))
        if (!whit_buf_append(texts, &text, sizeof text))
            return whit_fail_memory(error, "vocabulary", texts->size_bytes);
    *n = texts->size_bytes / sizeof text;
    return WHIT_OK;
}

/* n numbers of an array into `values` as f32 or i32; *present is false where the key is absent. */
static whit_status read_numbers(const whit_gguf *gguf, const char *name, const char *key,
                                bool as_float, size_t n, whit_buf *values, bool *present,
                                whit_error *error)
{
    const whit_gguf_key *array = whit_gguf_find(gguf, key);
    *present = array != NULL;
    if (!array) return WHIT_OK;
    if (array->type != WHIT_GGUF_ARRAY || array->n_elems != n)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: %s does not have one number for each token",
                         name, key);
    for (size_t i = 0; i < n; i++) {
        double number = 0;
        int64_t integer = 0;
        bool ok = as_float ? whit_gguf_element_f64(array, i, &number)
                           : whit_gguf_element_i64(array, i, &integer);
        if (!ok || integer < INT32_MIN || integer > INT32_MAX)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: %s[%zu] is no number of its kind", name,
                             key, i);
        float narrow = (float)number;
        int32_t whole = (int32_t)integer;
        const void *value = as_float ? (const void *)&narrow : (const void *)&whole;
        if (!whit_buf_append(values, value, 4))
            return whit_fail_memory(error, "vocabulary", values->size_bytes);
    }
    return WHIT_OK;
}

static whit_status read_id(const whit_gguf *gguf, const char *key, int64_t *id, whit_error *error)
{
    *id = -1;
    WHIT_TRY(whit_gguf_i64(gguf, key, id, error));
    if (*id == UINT32_MAX) *id = -1; /* a signed -1, stored as unsigned */
    return WHIT_OK;
}

static whit_status read_flag(const whit_gguf *gguf, const char *key, int *flag, whit_error *error)
{
    bool value = false;
    *flag = -1;
    if (!whit_gguf_find(gguf, key)) return WHIT_OK;
    WHIT_TRY(whit_gguf_bool(gguf, key, &value, error));
    *flag = value;
    return WHIT_OK;
}

static whit_status read_vocabulary(const whit_gguf *gguf, whit_gguf_vocabulary *v,
                                   whit_buf buffers[4], whit_error *error)
{
    bool has_scores, has_types;
    WHIT_TRY(whit_gguf_string(gguf, "tokenizer.ggml.pre", &v->pre.data, &v->pre.n_bytes, error));
    WHIT_TRY(read_texts(gguf, "tokenizer.ggml.tokens", &buffers[0], &v->n_tokens, error));
    WHIT_TRY(read_texts(gguf, "tokenizer.ggml.merges", &buffers[1], &v->n_merges, error));
    WHIT_TRY(read_numbers(gguf, v->name, "tokenizer.ggml.scores", true, v->n_tokens, &buffers[2],
                          &has_scores, error));
    WHIT_TRY(read_numbers(gguf, v->name, "tokenizer.ggml.token_type", false, v->n_tokens,
                          &buffers[3], &has_types, error));
    v->tokens = (const whit_text *)(const void *)buffers[0].data;
    v->merges = (const whit_text *)(const void *)buffers[1].data;
    v->scores = has_scores ? (const float *)(const void *)buffers[2].data : NULL;
    v->types = has_types ? (const int32_t *)(const void *)buffers[3].data : NULL;
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.bos_token_id", &v->bos, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.eos_token_id", &v->eos, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.unknown_token_id", &v->unk, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.padding_token_id", &v->pad, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.eot_token_id", &v->eot, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.eom_token_id", &v->eom, error));
    WHIT_TRY(read_flag(gguf, "tokenizer.ggml.add_bos_token", &v->add_bos, error));
    WHIT_TRY(read_flag(gguf, "tokenizer.ggml.add_eos_token", &v->add_eos, error));
    return read_flag(gguf, "tokenizer.ggml.add_space_prefix", &v->add_space_prefix, error);
}

whit_status whit_tokenizer_from_gguf(const whit_gguf *gguf, const char *name, bool *found,
                                     whit_buf *image, whit_error *error)
{
    whit_gguf_vocabulary v = {.name = name};
    whit_buf buffers[4] = {{.allocator = image->allocator}, {.allocator = image->allocator},
                           {.allocator = image->allocator}, {.allocator = image->allocator}};
    *found = false;
    WHIT_TRY(whit_gguf_string(gguf, "tokenizer.ggml.model", &v.model.data, &v.model.n_bytes, error));
    if (!v.model.data || text_is(v.model, "no_vocab") || text_is(v.model, "none")) return WHIT_OK;
    *found = true;
    whit_status status = read_vocabulary(gguf, &v, buffers, error);
    if (status == WHIT_OK) status = whit_tokenizer_from_vocabulary(&v, image, error);
    for (size_t i = 0; i < 4; i++) whit_buf_free(&buffers[i]);
    return status;
}
