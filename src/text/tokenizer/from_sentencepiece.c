/* SPDX-License-Identifier: MIT
 * Reads the relevant fields of sentencepiece_model.proto:
 *
 *    1 piece:           1 text, 2 score (f32), 3 type (as GGUF's token types; 1 by default)
 *    2 trainer_spec:    3 model type (1 Unigram, 2 BPE), 24 treat_whitespace_as_suffix, 40 to 43 unk, bos, eos, pad
 *    3 normalizer_spec: 2 character map, 3 add_dummy_prefix, 4 remove_extra_whitespaces, 5 escape_whitespaces
 *
 * A field in protobuf's format has a key (field number * 8 + wire type) as a varint, then a varint (wire type 0), 8
 * bytes (1), a length and bytes (2) or 4 bytes (5). Unknown fields are skipped. */
#include "tokenizer/from_sentencepiece.h"
#include "base/items.h"

#include "tokenizer/vocabulary.h"

typedef struct cursor {
    const uint8_t *data;
    size_t n, at;
    size_t base; /* position of `data` in the file, for messages */
    const char *name;
    whit_error *error;
} cursor;

typedef struct proto_field {
    uint32_t number, wire;
    uint64_t value;      /* the varint, or the bits of 4 or 8 bytes */
    const uint8_t *data; /* the bytes of a field with a length */
    size_t n;
} proto_field;

typedef struct sentencepiece {
    whit_vocabulary vocabulary;
    whit_buf tokens, scores, types;
    uint64_t model_type;
    bool spaces_behind, spaces_bare; /* spaces_behind: words end in U+2581; spaces_bare: spaces are not replaced by
                                      * U+2581 */
    whit_error *error;
} sentencepiece;

static whit_status damaged(const cursor *c, const char *what)
{
    return whit_fail(c->error, WHIT_ERROR_FORMAT, "%s: byte %zu: %s", c->name, c->base + c->at, what);
}

static whit_status read_varint(cursor *c, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (c->at >= c->n) return damaged(c, "the SentencePiece model is truncated");
        uint8_t byte = c->data[c->at++];
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return WHIT_OK;
    }
    return damaged(c, "a number has more than 64 bits");
}

static whit_status read_field(cursor *c, proto_field *field)
{
    uint64_t key;
    *field = (proto_field){0};
    WHIT_TRY(read_varint(c, &key));
    field->number = key >> 3 > UINT32_MAX ? UINT32_MAX : (uint32_t)(key >> 3);
    field->wire = key & 7;
    if (field->wire == 0) return read_varint(c, &field->value);
    uint64_t length = field->wire == 1 ? 8 : 4;
    if (field->wire == 2)
        WHIT_TRY(read_varint(c, &length));
    else if (field->wire != 1 && field->wire != 5)
        return damaged(c, "this is not a SentencePiece model (unknown wire type)");
    if (length > c->n - c->at) return damaged(c, "a field reaches beyond the end");
    field->data = c->data + c->at;
    field->n = (size_t)length;
    if (field->wire != 2) memcpy(&field->value, field->data, field->n);
    c->at += field->n;
    return WHIT_OK;
}

static cursor inside(const cursor *c, const proto_field *field)
{
    return (cursor){
        .data = field->data, .n = field->n, .name = c->name, .error = c->error, .base = c->base + c->at - field->n};
}

static whit_status read_piece(sentencepiece *model, cursor c)
{
    whit_text text = {"", 0};
    float score = 0;
    int32_t type = 1;
    while (c.at < c.n) {
        proto_field field;
        WHIT_TRY(read_field(&c, &field));
        if (field.number == 1 && field.wire == 2) text = (whit_text){(const char *)field.data, field.n};
        if (field.number == 2 && field.wire == 5) memcpy(&score, field.data, sizeof score);
        if (field.number == 3 && field.wire == 0) type = (int32_t)(field.value & 0xFF);
    }
    if (!whit_buf_append(&model->tokens, &text, sizeof text) ||
        !whit_buf_append(&model->scores, &score, sizeof score) || !whit_buf_append(&model->types, &type, sizeof type))
        return whit_fail_memory(model->error, "the tokenizer's vocabulary", model->tokens.size_bytes);
    return WHIT_OK;
}

static whit_status read_trainer(sentencepiece *model, cursor c)
{
    while (c.at < c.n) {
        proto_field field;
        WHIT_TRY(read_field(&c, &field));
        if (field.wire != 0) continue;
        if (field.number == 3) model->model_type = field.value;
        if (field.number == 24) model->spaces_behind = field.value != 0;
        if (field.number == 40) model->vocabulary.unk = (int64_t)field.value;
        if (field.number == 41) model->vocabulary.bos = (int64_t)field.value;
        if (field.number == 42) model->vocabulary.eos = (int64_t)field.value;
        if (field.number == 43) model->vocabulary.pad = (int64_t)field.value;
    }
    return WHIT_OK;
}

static whit_status read_normalizer(sentencepiece *model, cursor c)
{
    while (c.at < c.n) {
        proto_field field;
        WHIT_TRY(read_field(&c, &field));
        if (field.number == 2 && field.wire == 2)
            model->vocabulary.charsmap = (whit_text){(const char *)field.data, field.n};
        if (field.number == 3 && field.wire == 0) model->vocabulary.add_space_prefix = field.value != 0;
        if (field.number == 4 && field.wire == 0) model->vocabulary.collapse_spaces = field.value != 0;
        if (field.number == 5 && field.wire == 0) model->spaces_bare = field.value == 0;
    }
    return WHIT_OK;
}

static whit_status read_model(sentencepiece *model, cursor c)
{
    model->vocabulary.collapse_spaces = true; /* the format's default */
    while (c.at < c.n) {
        proto_field field;
        WHIT_TRY(read_field(&c, &field));
        if (field.wire != 2) continue;
        if (field.number == 1) WHIT_TRY(read_piece(model, inside(&c, &field)));
        if (field.number == 2) WHIT_TRY(read_trainer(model, inside(&c, &field)));
        if (field.number == 3) WHIT_TRY(read_normalizer(model, inside(&c, &field)));
    }
    return WHIT_OK;
}

static whit_status build_image(sentencepiece *model, const whit_tokenizer_config *config, whit_buf *image)
{
    whit_vocabulary *v = &model->vocabulary;
    if (model->model_type != 1 && model->model_type != 2)
        return whit_fail(model->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the SentencePiece model type %llu is not supported (Unigram and BPE are)", v->name,
                         (unsigned long long)model->model_type);
    /* Both settings change the ids of every text. */
    if (model->spaces_behind || model->spaces_bare)
        return whit_fail(model->error, WHIT_ERROR_UNSUPPORTED, "%s: SentencePiece models with %s are not supported",
                         v->name, model->spaces_behind ? "treat_whitespace_as_suffix" : "escape_whitespaces off");
    v->kind = model->model_type == 2 ? WHIT_VOCABULARY_SPM : WHIT_VOCABULARY_UNIGRAM;
    v->tokens = WHIT_ITEMS(const whit_text, &model->tokens);
    v->scores = WHIT_ITEMS(const float, &model->scores);
    v->types = WHIT_ITEMS(const int32_t, &model->types);
    v->n_tokens = model->tokens.size_bytes / sizeof *v->tokens;
    v->config = config;
    v->add_bos = whit_tokenizer_config_flag(config, "add_bos_token");
    v->add_eos = whit_tokenizer_config_flag(config, "add_eos_token");
    return whit_tokenizer_from_vocabulary(v, image, model->error);
}

whit_status whit_tokenizer_from_sentencepiece(const char *name, const uint8_t *data, size_t n_bytes,
                                              const whit_tokenizer_config *config, whit_buf *image, whit_error *error)
{
    sentencepiece model = {.vocabulary = whit_vocabulary_init(name, WHIT_VOCABULARY_SPM),
                           .tokens = {.allocator = image->allocator},
                           .scores = {.allocator = image->allocator},
                           .types = {.allocator = image->allocator},
                           .model_type = 1,
                           .error = error};
    /* The format's defaults for absent ids. */
    model.vocabulary.unk = 0;
    model.vocabulary.bos = 1;
    model.vocabulary.eos = 2;
    whit_status status = read_model(&model, (cursor){.data = data, .n = n_bytes, .name = name, .error = error});
    if (status == WHIT_OK) status = build_image(&model, config, image);
    whit_buf_free(&model.tokens);
    whit_buf_free(&model.scores);
    whit_buf_free(&model.types);
    return status;
}
