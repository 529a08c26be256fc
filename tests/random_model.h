/* SPDX-License-Identifier: MIT
 * Small models of random weights, written as .ndf files in memory: every codec, kind of scales and switch of
 * the decoder, in sizes that are no multiples of anything. They say nothing; they run fast. */
#ifndef WHIT_TESTS_RANDOM_MODEL_H
#define WHIT_TESTS_RANDOM_MODEL_H

#include "format/ndf_write.h"
#include "model/config.h"
#include "model/source.h"

/* How many there are of chosen shapes; those of further numbers are drawn, all of them another. */
uint32_t random_model_count(void);

/* Builds model `i`, for whit_model_open of "/proc/self/fd/N" with N = whit_ndf_writer_fd. The caller closes
 * the writer after the model. */
whit_status random_model_make(uint32_t i, whit_ndf_writer **writer, whit_config *config, whit_error *error);

/* Builds a draft model that reads keys and values of the random model of family gemma4. is_uneven: its two layers with
 * a window differ in their numbers of queries, so that no cache serves both. */
whit_status random_model_make_drafter(bool is_uneven, whit_ndf_writer **writer, whit_error *error);

/* The same as a source, at `path`; the caller closes it and then the writer. WHIT_ERROR_UNSUPPORTED, with nothing left
 * open, where matrices have corrections beside their codes: those are no source. */
whit_status random_model_open_source(uint32_t i, whit_ndf_writer **writer, char path[64], whit_source *source,
                                     whit_error *error);

#endif
