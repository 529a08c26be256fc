/* SPDX-License-Identifier: MIT
 * Checkpoints: everything that a run needs to resume with bit-identical results. The file is written under a temporary
 * name and renamed, and ends with a digest: a truncated or damaged file is refused.
 *
 *   magic "WHITRUN1" | whit_progress | n_floats u64 | run | moment1 | moment2 | digest (32 bytes) */
#ifndef WHIT_TRAIN_CHECKPOINT_H
#define WHIT_TRAIN_CHECKPOINT_H

#include "base/hash.h"
#include "train/params.h"

typedef struct whit_progress {
    uint8_t settings[WHIT_HASH_BYTES]; /* digest of the settings that a resumed run must share */
    uint64_t step;                     /* steps done */
    uint64_t elapsed_ns;               /* training time so far */
} whit_progress;

whit_status whit_checkpoint_write(const char *path, const whit_progress *progress, const whit_params *params,
                                  whit_error *error);
/* Reads a checkpoint. Refuses one of another run: the `settings` of *progress are compared. */
whit_status whit_checkpoint_read(const char *path, whit_progress *progress, whit_params *params, whit_error *error);

#endif
