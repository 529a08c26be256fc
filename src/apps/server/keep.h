/* SPDX-License-Identifier: MIT
 * Keeps a prefix cache that outlives the server: saves the tokens of each slot as a session file in the folder of
 * --cache-dir. */
#ifndef WHIT_SERVER_KEEP_H
#define WHIT_SERVER_KEEP_H

#include "base/mem.h"
#include "whit.h"

typedef struct whit_keep {
    char *prefix; /* prefix of the files' paths; NULL: nothing is saved */
    bool failed;  /* a failure was already reported */
} whit_keep;

/* Assigns a number, from 0 on, to each of the servers that use the folder at the same time. The number stays taken
 * until *fd is closed; *fd is -1, with number 0, if the folder cannot be locked, or does not exist and cannot be
 * made. */
uint32_t whit_keep_join(const char *folder, int *fd);

/* Opens the cache; `folder` NULL: nothing is saved. The names of the files depend on everything that the blocks depend
 * on, on the server's number in the folder, and on `i_twin`: engines with the same weights, in one process or in
 * several, have their own files. */
whit_status whit_keep_open(const whit_model *model, const char *folder, uint32_t i_server, uint32_t i_twin,
                           const whit_session_options *session, whit_keep *keep, whit_error *error);
void whit_keep_close(whit_keep *keep);
/* Loads the file of slot `i` into the sequence. Returns its tokens, freed by the caller, or NULL if there is no
 * file. */
int32_t *whit_keep_load(whit_keep *keep, whit_session *session, uint32_t i, size_t *n_ids);
/* Saves a sequence to its file, replacing the previous content. A failure is reported on stderr, once. */
void whit_keep_save(whit_keep *keep, whit_session *session, uint32_t i);
/* Writes the sequence to a session file, replacing an existing one, and sets *n_saved to the number of saved tokens
 * (whit_session_snapshot). */
whit_status whit_keep_write(whit_session *session, uint32_t i, const char *path, size_t *n_saved, whit_error *error);
/* Loads a session file into the sequence; sets *ids to its tokens, which the caller frees, or to NULL. */
whit_status whit_keep_read(whit_session *session, uint32_t i, const char *path, int32_t **ids, size_t *n_ids,
                           whit_error *error);

#endif
