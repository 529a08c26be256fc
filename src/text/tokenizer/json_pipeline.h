/* SPDX-License-Identifier: MIT
 * Converts the objects normalizer, pre_tokenizer, post_processor and decoder of a tokenizer.json to steps of a builder.
 * The error for an unknown part names it. */
#ifndef WHIT_TOKENIZER_JSON_PIPELINE_H
#define WHIT_TOKENIZER_JSON_PIPELINE_H

#include "base/json.h"
#include "tokenizer/builder.h"

whit_status whit_json_normalizer(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at,
                                 whit_error *error);
whit_status whit_json_pre_tokenizer(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at,
                                    whit_error *error);
/* Adds the ids that the post-processor puts around a text. The file states ids, so the vocabulary is not needed. */
whit_status whit_json_post_processor(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at,
                                     whit_error *error);
/* Adds the decoder's steps. A file without a decoder gets a step that puts spaces between tokens. */
whit_status whit_json_decoder(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at, whit_error *error);

#endif
