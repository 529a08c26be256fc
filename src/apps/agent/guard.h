/* SPDX-License-Identifier: MIT
 * Recognises names and texts that are kept from an agent: secrets, which neither a model nor a command may read, and
 * configuration, which other programs obey when they find it. Tools, scratch copies, questions and completions use this
 * one list. */
#ifndef WHIT_AGENT_GUARD_H
#define WHIT_AGENT_GUARD_H

#include "base/hash.h"
#include "base/mem.h"

/* Returns whether a part of the path names keys, credentials, a history of commands, or version control's own files.
 * Parts are compared as by file systems that ignore case, ignorable characters, dots and blanks at the end, streams
 * (NAME:STREAM) and short names (GIT~1). */
bool whit_guard_is_secret(const char *path);
/* Returns whether the path, relative to the project, names a file that programs obey unasked: a dot file that is not
 * known to be harmless, a name on a list, or a file in a folder that git takes for a repository. */
bool whit_guard_is_configuration(const char *project, const char *path);

/* Adds an endpoint's key, which is then found in texts whatever its form, as $WHIT_API_KEY always is; a key of fewer
 * than 8 characters or without a digit is not added. Returns false if there is no room for one more key, or if memory
 * runs out. */
bool whit_guard_know_key(const char *key);
/* Finds a private key, a token of a published form or an endpoint's key in a text: bytes *begin to *end. Returns false
 * if the text contains no key. */
bool whit_guard_find_key(const char *text, size_t n, size_t *begin, size_t *end);
/* Writes a digest of all that whit_guard_find_key looks for. If it has changed, a text without a key may have one. */
void whit_guard_hash(uint8_t digest[WHIT_HASH_BYTES]);
/* Replaces each key by a note. */
void whit_guard_hide_keys(whit_buf *text);

typedef enum whit_guard_folder {
    WHIT_GUARD_ELSEWHERE,
    WHIT_GUARD_CONFIG, /* the user's configuration of this program, which names programs that it runs */
    WHIT_GUARD_STATE,  /* journals, lists of runs, caches and copies, which an agent may neither read nor write */
} whit_guard_folder;
/* Returns which of the guarded folders contains a path. `real`: absolute and without links; for a file that does not
 * exist, its existing parents are resolved. */
whit_guard_folder whit_guard_folder_of(const char *real);

#endif
