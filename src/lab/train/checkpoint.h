/* SPDX-License-Identifier: MIT
 * Checkpoints: everything that a run needs to go on with the same bits. A file of our own, written
 * beside its name and renamed, with a digest at its end: a cut or damaged one is refused.
 *
 *   magic "WHITRUN1" | whit_progress | n_floats u64 | run | moment1 | moment2 | digest (32 bytes) */
#ifndef WHIT_TRAIN_CHECKPOINT_H
#define WHIT_TRAIN_CHECKPOINT_H

#include "base/hash.h"
#include "train/params.h"

typedef struct whit_progress {
    uint8_t settings[WHIT_HASH_BYTES]; /* digest of what must be the same in the run that goes on */
    uint64_t step;                     /* steps done */
    uint64_t elapsed_ns;               /* of training */
} whit_progress;

whit_status whit_checkpoint_write(const char *path, const whit_progress *progress, const whit_params *params,
                                  whit_error *error);
/* Refuses another run's checkpoint: `settings` of *progress are compared. */
whit_status whit_checkpoint_read(const char *path, whit_progress *progress, whit_params *params, whit_error *error);

#endif
