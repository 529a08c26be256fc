/* SPDX-License-Identifier: MIT
 * Names of models on a hub: OWNER/NAME, with @REVISION and :FILE where they are wanted, and the
 * folder of the store that belongs to one.
 *
 * Parts of a repository's name are letters, digits, '-', '_' and '.'; "--" and ".." stand in none,
 * so that '/' can be written "--" in the name of a folder and read back. */
#ifndef WHIT_HUB_NAME_H
#define WHIT_HUB_NAME_H

#include "base/status.h"

#define WHIT_HUB_REPO_BYTES     200
#define WHIT_HUB_REVISION_BYTES 100
#define WHIT_HUB_PATH_BYTES     512 /* of a file inside a repository */
#define WHIT_HUB_FOLDER_BYTES   (WHIT_HUB_REPO_BYTES + WHIT_HUB_REVISION_BYTES + 32)
#define WHIT_HUB_MAIN           "main" /* the revision where none is named */

typedef struct whit_hub_name {
    char repo[WHIT_HUB_REPO_BYTES]; /* "OWNER/NAME", or "NAME" alone */
    char revision[WHIT_HUB_REVISION_BYTES];
    char file[WHIT_HUB_PATH_BYTES]; /* a path, pattern or tag; "" where none is named */
} whit_hub_name;

/* Reads a name, or the address that a browser shows for a repository, a branch or a file of the hub
 * ("https://HOST/OWNER/NAME/blob/main/FILE", or without "https://"). WHIT_ERROR_ARGUMENT, with the
 * reason, where the text is neither. */
whit_status whit_hub_name_parse(const char *text, whit_hub_name *name, whit_error *error);
/* Does it begin like an address, of whatever site? */
bool whit_hub_is_address(const char *text);
/* Takes another revision, checked the same way. */
whit_status whit_hub_name_revise(whit_hub_name *name, const char *revision, whit_error *error);
/* "OWNER/NAME", with "@REVISION" unless that is the main one; without the file. */
void whit_hub_name_print(const whit_hub_name *name, char text[WHIT_HUB_FOLDER_BYTES]);

/* The folder's name in the store ("OWNER--NAME@REVISION"), and back; false where no name gives that
 * folder. */
void whit_hub_name_folder(const whit_hub_name *name, char folder[WHIT_HUB_FOLDER_BYTES]);
bool whit_hub_name_from_folder(const char *folder, whit_hub_name *name);

/* May this path of a repository become a file below a folder of ours? Relative, made of plain parts
 * (none empty, "." or ".."), without control characters or backslashes, and not too long. */
bool whit_hub_path_is_safe(const char *path, size_t n_bytes);

#endif
