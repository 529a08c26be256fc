/* SPDX-License-Identifier: MIT
 * Makes small tokenizers for tests and fuzz targets. */
#ifndef WHIT_TESTS_TOKENIZER_SAMPLE_H
#define WHIT_TESTS_TOKENIZER_SAMPLE_H

#include <stdio.h>

#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

/* Appends {"text": id} with the 256 byte symbols, then with the words in `more`, which are separated by spaces. */
static inline void sample_byte_vocabulary(whit_buf *out, const char *more)
{
    whit_buf_append_str(out, "{");
    for (int byte = 0; byte < 256; byte++) {
        uint8_t symbol[4];
        size_t n = whit_utf8_encode(whit_byte_symbol((uint8_t)byte), symbol);
        whit_json_write_string(out, (const char *)symbol, n);
        whit_buf_printf(out, ": %d, ", byte);
    }
    for (int id = 256; *more; id++) {
        size_t n = strcspn(more, " ");
        whit_json_write_string(out, more, n);
        more += n + (more[n] == ' ');
        whit_buf_printf(out, ": %d%s", id, *more ? ", " : "}");
    }
}

/* Appends a tokenizer.json of byte-level BPE with the given pre-tokenizer pattern (a JSON string). */
static inline void sample_byte_level_json(whit_buf *out, const char *pattern)
{
    whit_buf_append_str(out,
                        "{\"version\": \"1.0\", \"added_tokens\": ["
                        "{\"id\": 262, \"content\": \"<s>\", \"special\": true, \"normalized\": false},"
                        "{\"id\": 263, \"content\": \"</s>\", \"special\": true, \"normalized\": false},"
                        "{\"id\": 264, \"content\": \"tool\", \"special\": false, \"normalized\": true,"
                        " \"single_word\": true}],"
                        "\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": ["
                        "{\"type\": \"Split\", \"pattern\": {\"Regex\": ");
    whit_buf_append_str(out, pattern);
    whit_buf_append_str(out,
                        "}, \"behavior\": \"Isolated\", \"invert\": false},"
                        "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]},"
                        "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": ["
                        "{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", "
                        "\"type_id\": 0}}],"
                        "\"special_tokens\": {\"<s>\": {\"id\": \"<s>\", \"ids\": [262], \"tokens\": [\"<s>\"]}}},"
                        "\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\": ");
    sample_byte_vocabulary(out, "th the \xC4\xA0the aa aaaa er");
    whit_buf_append_str(out,
                        ", \"merges\": [\"t h\", [\"th\", \"e\"], \"\xC4\xA0 the\", \"a a\", "
                        "\"aa aa\", \"e r\"]}}");
}

/* Appends a length-delimited field in protobuf's wire format. */
static inline void sample_proto_bytes(whit_buf *out, int field, const void *data, size_t n)
{
    uint8_t head[4] = {(uint8_t)(field << 3 | 2), (uint8_t)(n & 0x7F), 0};
    if (n >= 0x80) {
        head[1] |= 0x80;
        head[2] = (uint8_t)(n >> 7);
    }
    whit_buf_append(out, head, n >= 0x80 ? 3 : 2);
    whit_buf_append(out, data, n);
}

static inline void sample_proto_piece(whit_buf *out, const char *text, float score, int type)
{
    whit_buf piece = {0};
    uint8_t score_key = 2 << 3 | 5, type_field[2] = {3 << 3, (uint8_t)type};
    sample_proto_bytes(&piece, 1, text, strlen(text));
    whit_buf_append(&piece, &score_key, 1);
    whit_buf_append(&piece, &score, sizeof score);
    whit_buf_append(&piece, type_field, 2);
    sample_proto_bytes(out, 1, piece.data, piece.size_bytes);
    whit_buf_free(&piece);
}

/* Appends a SentencePiece model: three special tokens, the byte tokens, a few words. model_type: 1 Unigram, 2 BPE. */
static inline void sample_sentencepiece(whit_buf *out, uint8_t model_type)
{
    static const struct {
        const char *text;
        float score;
    } words[] = {{"\xE2\x96\x81", -9},
                 {"h", -8},
                 {"e", -7.5f},
                 {"l", -7},
                 {"o", -6.5f},
                 {"he", -4},
                 {"ll", -5},
                 {"hell", -3},
                 {"hello", -2},
                 {"\xE2\x96\x81hello", -1},
                 {"lo", -6}};
    sample_proto_piece(out, "<unk>", 0, 2);
    sample_proto_piece(out, "<s>", 0, 3);
    sample_proto_piece(out, "</s>", 0, 3);
    for (int byte = 0; byte < 256; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", byte);
        sample_proto_piece(out, text, 0, 6);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        sample_proto_piece(out, words[i].text, words[i].score, 1);
    const uint8_t trainer[] = {3 << 3, model_type};
    const uint8_t normalizer[] = {3 << 3, 1, 4 << 3, 0};
    sample_proto_bytes(out, 2, trainer, sizeof trainer);
    sample_proto_bytes(out, 3, normalizer, sizeof normalizer);
}

#endif
