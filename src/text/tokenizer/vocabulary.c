/* SPDX-License-Identifier: MIT */
#include "tokenizer/vocabulary.h"
#include "base/items.h"

#include "tokenizer/normalize.h"
#include "tokenizer/scan.h"

#define METASPACE "\xE2\x96\x81"
/* Unigram: how much the score of an unknown character is below the lowest score, as in SentencePiece. */
#define UNKNOWN_PENALTY 10.0

/* Patterns for a name in tokenizer.ggml.pre; several patterns are applied one after the other. */
typedef struct named_pattern {
    const char *names; /* all names for these patterns, separated by spaces */
    const char *patterns[4];
    bool ignore_merges, add_bos;
} named_pattern;

static const named_pattern named_patterns[] = {
    {"gpt-2 gpt2 phi-2 mpt olmo jais roberta-bpe gigachat", {WHIT_PATTERN_GPT2}, false, false},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2 midm-2.0", {WHIT_PATTERN_LLAMA3}, true, true},
    {"dbrx smaug-bpe", {WHIT_PATTERN_LLAMA3}, false, false},
    {"qwen2 stablelm2 deepseek-r1-qwen hunyuan megrez kormo", {WHIT_PATTERN_QWEN2}, false, false},
    {"qwen35",
     {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
      "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
     false,
     false},
    {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", WHIT_PATTERN_GPT2, "[0-9][0-9][0-9]"}, false, false},
    {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", WHIT_PATTERN_GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, false, false},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b", {"\\p{N}", WHIT_PATTERN_GPT2}, false, false},
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

whit_vocabulary whit_vocabulary_init(const char *name, whit_vocabulary_kind kind)
{
    return (whit_vocabulary){.name = name,
                             .kind = kind,
                             .bos = -1,
                             .eos = -1,
                             .unk = -1,
                             .pad = -1,
                             .eot = -1,
                             .eom = -1,
                             .add_bos = -1,
                             .add_eos = -1,
                             .add_space_prefix = -1};
}

/* Returns a token's type, as in GGUF. A token that is known to end a turn is always a control token, as in llama.cpp:
 * many files call it user-defined or even normal. In tiktoken files (RANKS) all listed tokens are plain bytes. */
static int32_t type_of(const whit_vocabulary *v, size_t id)
{
    if (v->kind != WHIT_VOCABULARY_RANKS && whit_tokenizer_is_end_name(v->tokens[id].data, v->tokens[id].n_bytes))
        return WHIT_TOKEN_CONTROL;
    return v->types ? v->types[id] : WHIT_TOKEN_NORMAL;
}

static uint8_t flags_of(const whit_vocabulary *v, size_t id)
{
    int32_t type = type_of(v, id);
    /* Unigram never chooses an unused piece; in BPE it may be an intermediate result. */
    if (type == WHIT_TOKEN_UNUSED && v->kind == WHIT_VOCABULARY_UNIGRAM) return WHIT_TOKEN_UNUSED;
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

static whit_status add_tokens(whit_tokenizer_builder *builder, const whit_vocabulary *v, whit_error *error)
{
    for (size_t i = 0; i < v->n_tokens; i++)
        WHIT_TRY(whit_tokenizer_builder_token(builder, (int64_t)i, v->tokens[i].data, v->tokens[i].n_bytes,
                                              v->scores ? v->scores[i] : 0, flags_of(v, i), error));
    return whit_tokenizer_builder_index(builder, error);
}

static const whit_config_token *documented(const whit_buf *list, size_t *n)
{
    *n = list->size_bytes / sizeof(whit_config_token);
    return WHIT_ITEMS(const whit_config_token, list);
}

/* Applies the tokens of tokenizer_config.json and similar files (`list`) to copies of the vocabulary's texts and types.
 * A listed token is applied if the vocabulary has the same text for its id, or only reserves the id (as a control or
 * unused token): it gets its text, and becomes a control token if listed as special, else user-defined, so that it is
 * found before the text is divided. Control, unknown and byte tokens with the same text keep their type. */
static whit_status amend(whit_vocabulary *v, const whit_buf *list, whit_buf *texts, whit_buf *types, whit_error *error)
{
    size_t n;
    const whit_config_token *tokens = documented(list, &n);
    if (n == 0) return WHIT_OK;
    whit_buf_append(texts, v->tokens, v->n_tokens * sizeof *v->tokens);
    for (size_t i = 0; i < v->n_tokens; i++) {
        int32_t type = v->types ? v->types[i] : WHIT_TOKEN_NORMAL;
        whit_buf_append(types, &type, sizeof type);
    }
    if (texts->failed || types->failed)
        return whit_fail_memory(error, "the tokenizer's vocabulary", v->n_tokens * sizeof *v->tokens);
    v->tokens = WHIT_ITEMS(const whit_text, texts);
    v->types = WHIT_ITEMS(const int32_t, types);
    for (size_t i = 0; i < n; i++) {
        const whit_config_token *token = &tokens[i];
        if (token->id >= (int64_t)v->n_tokens) continue;
        whit_text *text = WHIT_ITEMS(whit_text, texts) + token->id;
        int32_t *type = WHIT_ITEMS(int32_t, types) + token->id;
        bool same = text->n_bytes == token->n_bytes && memcmp(text->data, token->text, token->n_bytes) == 0;
        bool is_own = *type == WHIT_TOKEN_CONTROL || *type == WHIT_TOKEN_UNKNOWN || *type == WHIT_TOKEN_BYTE;
        if (same ? is_own : *type != WHIT_TOKEN_CONTROL && *type != WHIT_TOKEN_UNUSED) continue;
        *text = (whit_text){token->text, token->n_bytes};
        *type = token->flags & WHIT_ADDED_SPECIAL ? WHIT_TOKEN_CONTROL : WHIT_TOKEN_USER;
    }
    return WHIT_OK;
}

/* Adds the tokens of `list` that the vocabulary lacks, and the flags that say how listed tokens are matched in
 * texts. */
static whit_status add_config_tokens(whit_tokenizer_builder *builder, const whit_vocabulary *v, const whit_buf *list,
                                     whit_error *error)
{
    size_t n;
    const whit_config_token *tokens = documented(list, &n);
    for (size_t i = 0; i < n; i++) {
        const whit_config_token *token = &tokens[i];
        uint32_t flags = token->flags;
        if (token->id < (int64_t)v->n_tokens) {
            const whit_text *own = &v->tokens[token->id];
            int32_t type = type_of(v, (size_t)token->id);
            bool same = own->n_bytes == token->n_bytes && memcmp(own->data, token->text, token->n_bytes) == 0;
            if (!same || type == WHIT_TOKEN_BYTE || !(flags & ~(uint32_t)WHIT_ADDED_SPECIAL)) continue;
            if (type == WHIT_TOKEN_CONTROL || type == WHIT_TOKEN_UNKNOWN) flags |= WHIT_ADDED_SPECIAL;
        } else {
            bool special = flags & WHIT_ADDED_SPECIAL;
            WHIT_TRY(whit_tokenizer_builder_token(builder, token->id, token->text, token->n_bytes, 0,
                                                  special ? WHIT_TOKEN_CONTROL | WHIT_TOKEN_SPECIAL : WHIT_TOKEN_USER,
                                                  error));
        }
        /* The last of several tokens with equal texts counts. */
        WHIT_TRY(whit_tokenizer_builder_added(builder, (int32_t)token->id, token->text, token->n_bytes, false, flags,
                                              error));
    }
    return WHIT_OK;
}

/* Adds the added tokens: control and unknown tokens as special ones, user-defined tokens, which are found in any text,
 * and the tokens of `list`. */
static whit_status add_added(whit_tokenizer_builder *builder, const whit_vocabulary *v, const whit_buf *list,
                             whit_error *error)
{
    for (size_t i = 0; i < v->n_tokens; i++) {
        int32_t type = type_of(v, i);
        bool special = type == WHIT_TOKEN_CONTROL || type == WHIT_TOKEN_UNKNOWN;
        if (!special && type != WHIT_TOKEN_USER) continue;
        WHIT_TRY(whit_tokenizer_builder_added(builder, (int32_t)i, v->tokens[i].data, v->tokens[i].n_bytes, false,
                                              special ? WHIT_ADDED_SPECIAL : 0, error));
    }
    return add_config_tokens(builder, v, list, error);
}

static int32_t checked_id(const whit_vocabulary *v, int64_t id)
{
    return id >= 0 && (uint64_t)id < v->n_tokens ? (int32_t)id : -1;
}

static whit_status add_ids(whit_tokenizer_builder *builder, const whit_vocabulary *v, bool add_bos, whit_error *error)
{
    whit_tokenizer_header *header = &builder->header;
    header->bos = checked_id(v, v->bos);
    header->eos = checked_id(v, v->eos);
    header->pad = checked_id(v, v->pad);
    WHIT_TRY(whit_tokenizer_builder_end(builder, checked_id(v, v->eot), error));
    WHIT_TRY(whit_tokenizer_builder_end(builder, checked_id(v, v->eom), error));
    /* The config is applied first, because it may name the tokens that are added around a text (bos, eos). */
    WHIT_TRY(whit_tokenizer_apply_config(builder, v->config, error));
    if (v->add_bos >= 0) add_bos = v->add_bos;
    if (add_bos && header->bos >= 0) WHIT_TRY(whit_tokenizer_builder_id(builder, &builder->before, header->bos, error));
    if (v->add_eos == 1 && header->eos >= 0)
        WHIT_TRY(whit_tokenizer_builder_id(builder, &builder->after, header->eos, error));
    return WHIT_OK;
}

static whit_status add_step(whit_tokenizer_builder *builder, whit_buf *steps, whit_tokenizer_step step,
                            const char *text, const char *content, whit_error *error)
{
    return whit_tokenizer_builder_step(builder, steps, step, text, strlen(text), content, strlen(content), error);
}

static whit_status add_plain(whit_tokenizer_builder *builder, whit_buf *steps, uint32_t kind, whit_error *error)
{
    return add_step(builder, steps, (whit_tokenizer_step){.kind = kind}, "", "", error);
}

/* Adds SentencePiece's normalizers in their order, and the decoder's steps that reverse them. */
static whit_status add_sentencepiece_steps(whit_tokenizer_builder *builder, const whit_vocabulary *v, whit_error *error)
{
    const whit_tokenizer_step replace = {.kind = WHIT_STEP_REPLACE};
    whit_buf *normalize = &builder->normalize, *decode = &builder->decode;
    if (v->charsmap.n_bytes) {
        if (!whit_charsmap_check((const uint8_t *)v->charsmap.data, v->charsmap.n_bytes))
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the character map is damaged: get the file again", v->name);
        WHIT_TRY(whit_tokenizer_builder_step(builder, normalize, (whit_tokenizer_step){.kind = WHIT_STEP_PRECOMPILED},
                                             v->charsmap.data, v->charsmap.n_bytes, "", 0, error));
    }
    if (v->collapse_spaces) WHIT_TRY(add_plain(builder, normalize, WHIT_STEP_COLLAPSE_SPACES, error));
    if (v->add_space_prefix)
        WHIT_TRY(add_step(builder, normalize, (whit_tokenizer_step){.kind = WHIT_STEP_PREPEND}, METASPACE, "", error));
    WHIT_TRY(add_step(builder, normalize, replace, " ", METASPACE, error));
    WHIT_TRY(add_step(builder, decode, replace, METASPACE, " ", error));
    WHIT_TRY(add_plain(builder, decode, WHIT_STEP_BYTE_FALLBACK, error));
    WHIT_TRY(add_plain(builder, decode, WHIT_STEP_FUSE, error));
    if (v->add_space_prefix)
        WHIT_TRY(
            add_step(builder, decode, (whit_tokenizer_step){.kind = WHIT_STEP_STRIP_CHAR, .a = 1}, " ", "", error));
    return WHIT_OK;
}

/* Returns the score of an unknown character. As in SentencePiece only normal pieces count: unused pieces that fill up a
 * vocabulary may have -10,000. */
static double unknown_score(const whit_vocabulary *v)
{
    double lowest = 0;
    bool seen = false;
    for (size_t i = 0; i < v->n_tokens; i++) {
        if (v->types && v->types[i] != WHIT_TOKEN_NORMAL) continue;
        if (!seen || v->scores[i] < lowest) lowest = v->scores[i];
        seen = true;
    }
    return lowest - UNKNOWN_PENALTY;
}

static whit_status build_sentencepiece(whit_tokenizer_builder *builder, const whit_vocabulary *v, const whit_buf *list,
                                       whit_error *error)
{
    bool unigram = v->kind == WHIT_VOCABULARY_UNIGRAM;
    whit_tokenizer_header *header = &builder->header;
    header->model = unigram ? WHIT_TOKENIZER_UNIGRAM : WHIT_TOKENIZER_SPM;
    header->flags = WHIT_TOKENIZER_BYTE_FALLBACK | WHIT_TOKENIZER_FUSE_UNK;
    header->unk = checked_id(v, v->unk);
    builder->has_scores = true;
    if (!v->scores)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the tokens have no scores, which this kind of tokenizer needs",
                         v->name);
    if (unigram) header->unk_score = unknown_score(v);
    WHIT_TRY(add_tokens(builder, v, error));
    WHIT_TRY(add_added(builder, v, list, error));
    WHIT_TRY(add_sentencepiece_steps(builder, v, error));
    return add_ids(builder, v, !unigram, error);
}

static whit_status add_merges(whit_tokenizer_builder *builder, const whit_vocabulary *v, whit_error *error)
{
    for (size_t i = 0; i < v->n_merges; i++) {
        const whit_text *merge = &v->merges[i];
        const char *space = merge->n_bytes > 1 ? memchr(merge->data + 1, ' ', merge->n_bytes - 1) : NULL;
        if (!space)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: merge %zu does not have two sides: the file is damaged",
                             v->name, i);
        size_t left = (size_t)(space - merge->data);
        WHIT_TRY(whit_tokenizer_builder_merge(builder, merge->data, left, space + 1, merge->n_bytes - left - 1, false,
                                              error));
    }
    return WHIT_OK;
}

static whit_status build_byte_level(whit_tokenizer_builder *builder, const whit_vocabulary *v, const whit_buf *list,
                                    whit_error *error)
{
    whit_text pre = v->pre.data ? v->pre : (whit_text){"default", 7};
    const named_pattern *pattern = find_pattern(pre);
    if (!pattern)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: the pre-tokenizer '%.*s' is not known, so that text cannot be split: use the Hugging Face folder",
            v->name, (int)(pre.n_bytes < 80 ? pre.n_bytes : 80), pre.data);
    builder->header.model = v->kind == WHIT_VOCABULARY_RANKS ? WHIT_TOKENIZER_SPM : WHIT_TOKENIZER_BPE;
    builder->header.flags = WHIT_TOKENIZER_BYTE_LEVEL;
    builder->first_merge_counts = true; /* as in llama.cpp; in `tokenizers` the last one counts */
    builder->has_scores = v->scores != NULL;
    if (pattern->ignore_merges || v->kind == WHIT_VOCABULARY_RANKS)
        builder->header.flags |= WHIT_TOKENIZER_IGNORE_MERGES;
    WHIT_TRY(add_tokens(builder, v, error));
    WHIT_TRY(add_merges(builder, v, error));
    WHIT_TRY(add_added(builder, v, list, error));
    if (v->nfc) WHIT_TRY(add_plain(builder, &builder->normalize, WHIT_STEP_NFC, error));
    for (int i = 0; i < 4 && pattern->patterns[i]; i++)
        WHIT_TRY(add_step(
            builder, &builder->split,
            (whit_tokenizer_step){.kind = WHIT_STEP_SPLIT, .flags = WHIT_STEP_FLAG_REGEX, .a = WHIT_SPLIT_ISOLATED},
            pattern->patterns[i], "", error));
    WHIT_TRY(add_plain(builder, &builder->split, WHIT_STEP_BYTE_LEVEL, error));
    WHIT_TRY(add_plain(builder, &builder->decode, WHIT_STEP_BYTE_LEVEL, error));
    return add_ids(builder, v, pattern->add_bos, error);
}

/* Restores the texts of WordPiece's tokens as tokenizer.json has them. GGUF files mark the tokens that begin a word
 * (U+2581); tokenizer.json marks the others ("##"), except tokens in brackets such as [CLS] and tokens whose type is
 * not normal. `texts` receives the texts, `list` the array of them. */
static whit_status spell_words(whit_vocabulary *v, whit_buf *texts, whit_buf *list, whit_error *error)
{
    size_t n_bytes = 0, at = 0;
    for (size_t i = 0; i < v->n_tokens; i++) n_bytes += v->tokens[i].n_bytes + 2;
    if (!whit_buf_append_zeros(texts, n_bytes)) return whit_fail_memory(error, "the tokenizer's vocabulary", n_bytes);
    for (size_t i = 0; i < v->n_tokens; i++) {
        whit_text text = v->tokens[i];
        const bool begins = text.n_bytes > 3 && memcmp(text.data, METASPACE, 3) == 0;
        const bool is_bracketed = text.n_bytes > 2 && text.data[0] == '[' && text.data[text.n_bytes - 1] == ']';
        const bool is_mark = is_bracketed || (v->types && v->types[i] != WHIT_TOKEN_NORMAL);
        char *spelled = WHIT_ITEMS(char, texts) + at;
        size_t n = 0;
        if (!begins && !is_mark) {
            memcpy(spelled, "##", 2);
            n = 2;
        }
        const size_t n_cut = begins ? 3 : 0;
        memcpy(spelled + n, text.data + n_cut, text.n_bytes - n_cut);
        const whit_text made = {spelled, n + text.n_bytes - n_cut};
        at += made.n_bytes;
        if (!whit_buf_append(list, &made, sizeof made))
            return whit_fail_memory(error, "the tokenizer's vocabulary", at);
    }
    v->tokens = WHIT_ITEMS(const whit_text, list);
    return WHIT_OK;
}

static whit_status build_wordpiece(whit_tokenizer_builder *builder, const whit_vocabulary *v, const whit_buf *list,
                                   whit_error *error)
{
    enum { WORD_CHARS_MAX = 100 }; /* as in BERT's own tokenizer */
    whit_buf *normalize = &builder->normalize;
    builder->header.model = WHIT_TOKENIZER_WORDPIECE;
    builder->header.max_word_chars = WORD_CHARS_MAX;
    builder->header.unk = checked_id(v, v->unk);
    WHIT_TRY(add_tokens(builder, v, error));
    WHIT_TRY(whit_tokenizer_builder_affixes(builder, "##", 2, NULL, 0, error));
    WHIT_TRY(add_added(builder, v, list, error));
    WHIT_TRY(add_plain(builder, normalize, WHIT_STEP_CLEAN, error));
    WHIT_TRY(add_plain(builder, normalize, WHIT_STEP_SPACE_HAN, error));
    if (!v->keeps_case) {
        WHIT_TRY(add_plain(builder, normalize, WHIT_STEP_NFD, error));
        WHIT_TRY(add_step(builder, normalize, (whit_tokenizer_step){.kind = WHIT_STEP_STRIP_ACCENTS, .a = 1}, "", "",
                          error));
        WHIT_TRY(add_plain(builder, normalize, WHIT_STEP_LOWERCASE, error));
    }
    WHIT_TRY(add_plain(builder, &builder->split, WHIT_STEP_BERT, error));
    WHIT_TRY(add_step(builder, &builder->decode, (whit_tokenizer_step){.kind = WHIT_STEP_WORDPIECE, .a = 1}, "##", "",
                      error));
    return add_ids(builder, v, true, error);
}

whit_status whit_tokenizer_from_vocabulary(const whit_vocabulary *vocabulary, whit_buf *image, whit_error *error)
{
    whit_tokenizer_builder builder;
    whit_vocabulary v = *vocabulary;
    whit_buf list = {.allocator = image->allocator}, texts = list, types = list, words = list, spelled = list;
    whit_tokenizer_builder_init(&builder, v.name, v.n_tokens, image->allocator);
    bool byte_level = v.kind == WHIT_VOCABULARY_BYTE_LEVEL || v.kind == WHIT_VOCABULARY_RANKS;
    const bool is_wordpiece = v.kind == WHIT_VOCABULARY_WORDPIECE;
    whit_status status = whit_tokenizer_config_tokens(v.config, &list, error);
    if (status == WHIT_OK && is_wordpiece) status = spell_words(&v, &spelled, &words, error);
    if (status == WHIT_OK) status = amend(&v, &list, &texts, &types, error);
    if (status == WHIT_OK && is_wordpiece)
        status = build_wordpiece(&builder, &v, &list, error);
    else if (status == WHIT_OK)
        status =
            byte_level ? build_byte_level(&builder, &v, &list, error) : build_sentencepiece(&builder, &v, &list, error);
    if (status == WHIT_OK) status = whit_tokenizer_builder_finish(&builder, image, error);
    whit_tokenizer_builder_close(&builder);
    whit_buf_free(&list);
    whit_buf_free(&texts);
    whit_buf_free(&types);
    whit_buf_free(&words);
    whit_buf_free(&spelled);
    return status;
}
