/* SPDX-License-Identifier: MIT
 * Finds the links of a project through which a file has another name: programs obey AGENTS.md also if it is a link to a
 * document, and a .env file is secret also if it is a link to a file of another name. */
#ifndef WHIT_AGENT_LINKS_H
#define WHIT_AGENT_LINKS_H

#include "base/mem.h"

enum whit_links_kind {
    WHIT_LINKS_OBEYED = 1, /* whit_guard_is_configuration() */
    WHIT_LINKS_SECRET = 2, /* whit_guard_is_secret() */
};

/* The project's symbolic links whose names are obeyed or secret. */
typedef struct whit_links {
    const char *project;
    whit_buf names; /* for each link its kinds in a byte, and its path, ended by a zero byte */
} whit_links;

/* Lists the links of the project except those in node_modules and .git. Links that a walk does not reach (whit_walk())
 * are left out. */
void whit_links_list(whit_links *links, const char *project);
/* Returns the kinds, with "or" between them, of the links that lead to a path as for whit_guard_folder_of(), or to a
 * folder of the project above it. */
unsigned whit_links_to(const whit_links *links, const char *real);
void whit_links_free(whit_links *links);

/* Returns whether a hook of the project's repository, or of one that contains the project, is a link to such a path. */
bool whit_links_hook(const char *project, const char *real);
/* Returns whether a link in the project's folder itself has a secret name and leads to such a path. */
bool whit_links_secret(const char *project, const char *real);
/* Returns whether a link or hard link of the project to a file has a secret name, anywhere but in the folders that
 * whit_links_list() leaves out. The list of these names may be a second old, or ten times as old as a walk through the
 * project takes. */
struct stat;
bool whit_links_secret_name(const char *project, const struct stat *file);

#endif
