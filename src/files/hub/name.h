/* SPDX-License-Identifier: MIT
 * Handles names of models on a hub: OWNER/NAME, optionally with @REVISION and :FILE, and the name of their folder in
 * the store.
 *
 * Parts of a repository's name are letters, digits, '-', '_' and '.'; they contain no "--" and no "..", so that '/'
 * can be written "--" in the name of a folder and read back. */
#ifndef WHIT_HUB_NAME_H
#define WHIT_HUB_NAME_H

#include "base/status.h"

#define WHIT_HUB_REPO_BYTES     200
#define WHIT_HUB_REVISION_BYTES 100
#define WHIT_HUB_PATH_BYTES     512 /* longest path of a file in a repository */
#define WHIT_HUB_FOLDER_BYTES   (WHIT_HUB_REPO_BYTES + WHIT_HUB_REVISION_BYTES + 32)
#define WHIT_HUB_MAIN           "main" /* the default revision */

typedef struct whit_hub_name {
    char repo[WHIT_HUB_REPO_BYTES]; /* "OWNER/NAME", or "NAME" alone */
    char revision[WHIT_HUB_REVISION_BYTES];
    char file[WHIT_HUB_PATH_BYTES]; /* a path, pattern or tag; "": not given */
} whit_hub_name;

/* Reads a name, or the address that a browser shows for a repository, a branch or a file of the hub
 * ("https://HOST/OWNER/NAME/blob/main/FILE", or without "https://"). The error is WHIT_ERROR_ARGUMENT, with the reason,
 * if the text is neither. */
whit_status whit_hub_name_parse(const char *text, whit_hub_name *name, whit_error *error);
/* Returns whether `text` begins like an address, of any site. */
bool whit_hub_is_address(const char *text);
/* Replaces the revision; the new one is checked like that of whit_hub_name_parse. */
whit_status whit_hub_name_revise(whit_hub_name *name, const char *revision, whit_error *error);
/* Prints "OWNER/NAME", with "@REVISION" unless it is the default one; without the file. */
void whit_hub_name_print(const whit_hub_name *name, char text[WHIT_HUB_FOLDER_BYTES]);

/* Converts a name to its folder's name in the store ("OWNER--NAME@REVISION"), and back; false if no name has that
 * folder. */
void whit_hub_name_folder(const whit_hub_name *name, char folder[WHIT_HUB_FOLDER_BYTES]);
bool whit_hub_name_from_folder(const char *folder, whit_hub_name *name);

/* Returns whether this path of a repository may become a file below a folder of the store: it is relative, made of
 * plain parts (none empty, "." or ".."), without control characters or backslashes, and not too long. */
bool whit_hub_path_is_safe(const char *path, size_t n_bytes);

#endif
