/* SPDX-License-Identifier: MIT
 * Parses and prints names of models on a hub: OWNER/NAME, optionally with @REVISION and :FILE. Converts them to the
 * names of their folders in the store.
 *
 * OWNER and NAME consist of letters, digits, '-', '_' and '.'. They do not begin or end with '-' or '.', and contain no
 * "--" and no "..", so that a folder's name can have "--" for '/' and be converted back. */
#ifndef WHIT_HUB_NAME_H
#define WHIT_HUB_NAME_H

#include "base/status.h"

#define WHIT_HUB_REPO_BYTES     200
#define WHIT_HUB_REVISION_BYTES 100
#define WHIT_HUB_PATH_BYTES     512 /* limit of a file's path in a repository, with the terminating zero */
#define WHIT_HUB_FOLDER_BYTES   (WHIT_HUB_REPO_BYTES + WHIT_HUB_REVISION_BYTES + 32)
#define WHIT_HUB_MAIN           "main" /* the default revision */

typedef struct whit_hub_name {
    char repo[WHIT_HUB_REPO_BYTES]; /* "OWNER/NAME", or "NAME" alone */
    char revision[WHIT_HUB_REVISION_BYTES];
    char file[WHIT_HUB_PATH_BYTES]; /* a path, pattern or tag (choose.h); "": not given */
} whit_hub_name;

/* Parses a name, or the address that a browser shows for a repository, a branch or a file of the hub
 * ("https://HOST/OWNER/NAME/blob/main/FILE", also without "https://"). The error is WHIT_ERROR_ARGUMENT, with the
 * reason, if the text is neither. */
whit_status whit_hub_name_parse(const char *text, whit_hub_name *name, whit_error *error);
/* Returns whether `text` begins with "http://", "https://" or the name of one of the hub's hosts. */
bool whit_hub_is_address(const char *text);
/* Replaces the revision. The new one is checked as in whit_hub_name_parse. */
whit_status whit_hub_name_revise(whit_hub_name *name, const char *revision, whit_error *error);
/* Prints "OWNER/NAME", followed by "@REVISION" unless that is the default. The file is not printed. */
void whit_hub_name_print(const whit_hub_name *name, char text[WHIT_HUB_FOLDER_BYTES]);

/* Convert a name to its folder's name in the store ("OWNER--NAME@REVISION") and back. The latter returns false if the
 * folder's name has no such form. */
void whit_hub_name_folder(const whit_hub_name *name, char folder[WHIT_HUB_FOLDER_BYTES]);
bool whit_hub_name_from_folder(const char *folder, whit_hub_name *name);

/* Returns whether a file of this path in a repository may be created below a folder of the store. The path must be
 * relative and UTF-8, its parts not empty, "." or "..", and it must not be too long or have control characters or
 * backslashes. */
bool whit_hub_path_is_safe(const char *path, size_t n_bytes);

#endif
