/* SPDX-License-Identifier: MIT
 * Recognises two kinds of files by their names, and keys in texts. Secrets must not be read by a model or a command.
 * Configuration, which other programs obey when they find it, must not be changed without approval. Tools, scratch
 * copies, questions and completions all use these functions. */
#ifndef WHIT_AGENT_GUARD_H
#define WHIT_AGENT_GUARD_H

#include "base/hash.h"
#include "base/mem.h"

#include <limits.h>

/* Returns whether a part of the path names keys, credentials, a command history, or version control's own files. Names
 * are compared as the most lenient file systems compare them: without regard to case, ignorable characters, trailing
 * dots and spaces, streams (NAME:STREAM) and short names (GIT~1). */
bool whit_guard_is_secret(const char *path);
/* Returns whether the path, relative to the project, names a file that programs obey without being asked to: a dot file
 * that is not known to be harmless, a listed name, a file HEAD or a file in a folder that git treats as a repository,
 * or a new "makefile" next to a Makefile. */
bool whit_guard_is_configuration(const char *project, const char *path);

/* Returns whether a path of the project lies in a repository of git whose folder has another name than .git: one to
 * which a file .git leads, or a bare one. Its settings may have passwords. */
bool whit_guard_is_repository(const char *project, const char *path);

/* Adds an endpoint's key to the keys that whit_guard_find_key() finds whatever their form; $WHIT_API_KEY is always one
 * of them. A key of fewer than 8 characters or without a digit is ignored. Returns false if all slots are used, or if
 * memory runs out. */
bool whit_guard_know_key(const char *key);
/* Finds the first private key, token of a published form or endpoint's key in a text, at or after *begin. On success
 * *begin and *end are the range of its bytes; returns false if there is no key. */
bool whit_guard_find_key(const char *text, size_t n, size_t *begin, size_t *end);
/* Returns whether a text has a key, also one that escape sequences of terminals divide or that is in UTF-16; true if
 * memory runs out. */
bool whit_guard_has_key(const char *text, size_t n);
/* Writes a digest of all that whit_guard_find_key looks for. If it has changed, a text without a key may have one. */
void whit_guard_hash(uint8_t digest[WHIT_HASH_BYTES]);
/* Replaces each key by a note, and a whole text with a key in UTF-16. A text must not be cut before: the rest of a key
 * has no form by which it is found. */
void whit_guard_hide_keys(whit_buf *text);
/* Appends at most n_most bytes of a text, in which each key is replaced by a note before it is cut. Returns false if
 * memory runs out. */
bool whit_guard_append_cut(whit_buf *out, const char *text, size_t n, size_t n_most);
/* Removes the last word of a text that had to be cut: it may be the beginning of a key. */
void whit_guard_drop_last_word(whit_buf *text);

/* The folders of this program's own files. */
typedef enum whit_guard_own {
    WHIT_GUARD_OWN_STATE,
    WHIT_GUARD_OWN_CACHE,
    WHIT_GUARD_OWN_CONFIG,
    WHIT_GUARD_N_OWN,
} whit_guard_own;
/* Writes the path of one of these folders, which may not exist. Returns false if neither its variable nor HOME is
 * set. */
bool whit_guard_own_folder(whit_guard_own which, char path[PATH_MAX]);

typedef enum whit_guard_folder {
    WHIT_GUARD_ELSEWHERE,
    WHIT_GUARD_CONFIG, /* the user's configuration of this program, which names programs that it runs */
    /* journals, lists of runs, caches and scratch copies, which an agent may neither read nor write */
    WHIT_GUARD_STATE,
} whit_guard_folder;
/* Returns which of the guarded folders contains a path. `real`: absolute path without symbolic links; if the file does
 * not exist, only its existing parents need to be resolved. */
whit_guard_folder whit_guard_folder_of(const char *real);
/* Returns whether a name leads to a path as for whit_guard_folder_of(): by links, even if the file does not exist yet,
 * or by a hard link. */
bool whit_guard_leads_to(const char *name, const char *real);
/* Returns whether a path, as for whit_guard_folder_of(), is the file `name` of the user's configuration, or the file to
 * which it leads by a link: configurations are often kept in a project of their own. */
bool whit_guard_is_settings(const char *real, const char *name);
/* Returns whether a file must not be shown to a model or a command: because its path as it was given or `below`, its
 * path in the project with links followed, is that of a secret, or because `real`, as for whit_guard_folder_of(), is a
 * file of this program. The user's settings are one: they have environment variables of MCP servers, which may be keys.
 * `opened` describes the file if it is open; else NULL. */
struct stat;
bool whit_guard_is_hidden(const char *path, const char *below, const char *real, const struct stat *opened);
/* Adds a folder of the project whose files are a part of a program that is started outside the sandbox. Returns false
 * if all slots are used, or if memory runs out. */
bool whit_guard_know_program(const char *folder);
/* Returns whether a path, as for whit_guard_folder_of(), is in a folder of whit_guard_know_program(). */
bool whit_guard_is_program(const char *real);
/* Adds a folder, which a person has named, to those in which this program keeps journals, lists of runs and
 * conversations. Returns false if the folder does not exist, if all slots are used, or if memory runs out. */
bool whit_guard_know_folder(const char *folder);
/* Returns whether a path, as for whit_guard_folder_of(), is a file that this program keeps in a folder of
 * whit_guard_know_folder(): it has the form NAME-HASH.SUFFIX. Other files of such a folder are the person's. */
bool whit_guard_is_own_file(const char *real);

#endif
