/* SPDX-License-Identifier: MIT
 * Saves the tokens of each slot as a session file in the folder of --cache-dir, so that cached prefixes outlive the
 * server. */
#ifndef WHIT_SERVER_KEEP_H
#define WHIT_SERVER_KEEP_H

#include "base/mem.h"
#include "whit.h"

typedef struct whit_keep {
    char *prefix; /* beginning of the paths of all files; NULL: nothing is saved */
    bool failed;  /* a failure was reported already; later ones are not */
} whit_keep;

/* Chooses the smallest number, from 0 on, that no other running server uses in this folder, and locks it. *fd: the
 * lock, which is held until the descriptor is closed. If the folder cannot be locked, does not exist and cannot be
 * created, or 256 servers use it, *fd is -1 and the number is 0. */
uint32_t whit_keep_join(const char *folder, int *fd);

/* Prepares saving in `folder` (NULL: nothing is saved). The files' names depend on the model, on the KV and activation
 * types, on the server's number i_server, and on i_twin, which distinguishes engines with the same weights. */
whit_status whit_keep_open(const whit_model *model, const char *folder, uint32_t i_server, uint32_t i_twin,
                           const whit_session_options *session, whit_keep *keep, whit_error *error);
void whit_keep_close(whit_keep *keep);
/* Loads the saved file of slot `i` into sequence `i`. Returns its tokens, which the caller frees, and sets *n_ids; NULL
 * if there is no usable file. */
int32_t *whit_keep_load(whit_keep *keep, whit_session *session, uint32_t i, size_t *n_ids);
/* Saves sequence `i` to the file of its slot, replacing the previous content. Does nothing if saving is off or the
 * sequence has at most 64 tokens. Only the first failure is reported on stderr. */
void whit_keep_save(whit_keep *keep, whit_session *session, uint32_t i);
/* Saves sequence `i`, which must have more than 64 tokens, to a session file, replacing an existing one. *n_saved: the
 * number of saved tokens (whit_session_snapshot). */
whit_status whit_keep_write(whit_session *session, uint32_t i, const char *path, size_t *n_saved, whit_error *error);
/* Loads a session file into sequence `i`. *ids: its tokens, which the caller frees; NULL after a failure, if the file
 * has no tokens, or if memory runs out. */
whit_status whit_keep_read(whit_session *session, uint32_t i, const char *path, int32_t **ids, size_t *n_ids,
                           whit_error *error);

#endif
