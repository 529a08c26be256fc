/* SPDX-License-Identifier: MIT
 * Converts the pipeline objects of a tokenizer.json (normalizer, pre_tokenizer, post_processor, decoder) into a
 * builder's steps. Unknown parts are refused by name. */
#ifndef WHIT_TOKENIZER_JSON_PIPELINE_H
#define WHIT_TOKENIZER_JSON_PIPELINE_H

#include "base/json.h"
#include "tokenizer/builder.h"

whit_status whit_json_normalizer(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at,
                                 whit_error *error);
whit_status whit_json_pre_tokenizer(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at,
                                    whit_error *error);
/* Adds the ids of the post-processor, which are the file's own numbers: the vocabulary is not looked up. */
whit_status whit_json_post_processor(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at,
                                     whit_error *error);
/* Adds the decoder's steps. A missing decoder joins tokens with spaces. */
whit_status whit_json_decoder(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at, whit_error *error);

#endif
