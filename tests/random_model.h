/* SPDX-License-Identifier: MIT
 * Makes small models of random weights, written as .ndf files in memory: with every codec, kind of scales and switch
 * of the decoder, in sizes that are no multiples of block sizes. They are fast; their text is meaningless. */
#ifndef WHIT_TESTS_RANDOM_MODEL_H
#define WHIT_TESTS_RANDOM_MODEL_H

#include "format/ndf_write.h"
#include "model/config.h"
#include "model/source.h"

/* Returns the number of listed models. Greater numbers give models that are drawn at random, each different. */
uint32_t random_model_count(void);

/* Builds model i. It can be opened as "/proc/self/fd/N" with N = whit_ndf_writer_fd(). The caller closes the model and
 * then the writer. */
whit_status random_model_make(uint32_t i, whit_ndf_writer **writer, whit_config *config, whit_error *error);

/* Builds a draft model that reads the keys and values of the random model of family gemma4. is_uneven: its two layers
 * with a window have different numbers of queries, so that no cache can serve both. */
whit_status random_model_make_drafter(bool is_uneven, whit_ndf_writer **writer, whit_error *error);

/* Builds model i and opens it as a source at `path`. The caller closes the source and then the writer. Returns
 * WHIT_ERROR_UNSUPPORTED, with nothing left open, if its matrices have corrections, since such models cannot be
 * sources. */
whit_status random_model_open_source(uint32_t i, whit_ndf_writer **writer, char path[64], whit_source *source,
                                     whit_error *error);

#endif
