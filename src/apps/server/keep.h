/* SPDX-License-Identifier: MIT
 * A prefix cache that outlives the server: each slot's tokens as a session file in the folder of --cache-dir. */
#ifndef WHIT_SERVER_KEEP_H
#define WHIT_SERVER_KEEP_H

#include "base/mem.h"
#include "whit.h"

typedef struct whit_keep {
    char *prefix; /* prefix of the files' paths; NULL: nothing is saved */
    bool failed;  /* the failure was reported */
} whit_keep;

/* Numbers the servers that use the folder at the same time, from 0 on. *fd keeps the number taken until it is closed;
 * -1 with number 0 if the folder cannot be locked, or does not exist and cannot be made. */
uint32_t whit_keep_join(const char *folder, int *fd);

/* Opens the cache; `folder` NULL: nothing is saved. The names of the files are made of everything that their blocks
 * depend on, of the server's number in the folder, and of `i_twin`: engines with the same weights, in one process or in
 * several, have their own files. */
whit_status whit_keep_open(const whit_model *model, const char *folder, uint32_t i_server, uint32_t i_twin,
                           const whit_session_options *session, whit_keep *keep, whit_error *error);
void whit_keep_close(whit_keep *keep);
/* Loads the file of slot `i` into the sequence. Returns its tokens, freed by the caller, or NULL if there is no
 * file. */
int32_t *whit_keep_load(whit_keep *keep, whit_session *session, uint32_t i, size_t *n_ids);
/* Saves a sequence to its file, replacing the previous content. A failure is reported on stderr, once. */
void whit_keep_save(whit_keep *keep, whit_session *session, uint32_t i);
/* Writes the sequence to a session file, replacing an existing one: *n_saved tokens (whit_session_snapshot). */
whit_status whit_keep_write(whit_session *session, uint32_t i, const char *path, size_t *n_saved, whit_error *error);
/* Loads a session file into the sequence; *ids: its tokens, freed by the caller, or NULL. */
whit_status whit_keep_read(whit_session *session, uint32_t i, const char *path, int32_t **ids, size_t *n_ids,
                           whit_error *error);

#endif
