/* SPDX-License-Identifier: MIT
 * Checkpoints: everything that a run needs to resume with bit-identical results. The file is written under a temporary
 * name and then renamed. It ends with a digest of everything before, so that a truncated or damaged file is refused.
 *
 *   magic "WHITRUN1" | whit_progress | n_floats u64 | run | moment1 | moment2 | digest (32 bytes)
 *
 * run, moment1 and moment2 are arrays of whit_params, each with n_floats floats. */
#ifndef WHIT_TRAIN_CHECKPOINT_H
#define WHIT_TRAIN_CHECKPOINT_H

#include "base/hash.h"
#include "train/params.h"

typedef struct whit_progress {
    uint8_t settings[WHIT_HASH_BYTES]; /* digest of the models, the text and the settings; a run resumes only with the
                                        * same digest */
    uint64_t step;                     /* number of finished steps */
    uint64_t elapsed_ns;               /* duration of the run so far, including the time before it was resumed */
} whit_progress;

whit_status whit_checkpoint_write(const char *path, const whit_progress *progress, const whit_params *params,
                                  whit_error *error);
/* Reads a checkpoint into *progress and *params. progress->settings is also an input: a checkpoint of a run with
 * another digest is refused. */
whit_status whit_checkpoint_read(const char *path, whit_progress *progress, whit_params *params, whit_error *error);

#endif
