/* SPDX-License-Identifier: MIT
 * Loads libgit2 on first use, so that programs that do not use git neither need nor load it. Only builds that have
 * libgit2's own header, git2.h, can include this one. */
#ifndef WHIT_CODE_LIBGIT2_H
#define WHIT_CODE_LIBGIT2_H

#include <git2.h>
#include <stdbool.h>

/* Lists the functions of libgit2 that this program calls. */
#define WHIT_LIBGIT2(X)                                                                                                \
    X(git_libgit2_init)                                                                                                \
    X(git_error_last)                                                                                                  \
    X(git_repository_open_ext)                                                                                         \
    X(git_repository_free)                                                                                             \
    X(git_repository_workdir)                                                                                          \
    X(git_repository_path)                                                                                             \
    X(git_repository_commondir)                                                                                        \
    X(git_repository_config_snapshot)                                                                                  \
    X(git_config_get_string)                                                                                           \
    X(git_config_free)                                                                                                 \
    X(git_ignore_path_is_ignored)                                                                                      \
    X(git_revparse_single)                                                                                             \
    X(git_object_type)                                                                                                 \
    X(git_blob_rawsize)                                                                                                \
    X(git_blob_rawcontent)                                                                                             \
    X(git_blob_is_binary)                                                                                              \
    X(git_blob_create_from_buffer)                                                                                     \
    X(git_tree_create_updated)                                                                                         \
    X(git_tree_lookup)                                                                                                 \
    X(git_tree_free)                                                                                                   \
    X(git_tree_entry_bypath)                                                                                           \
    X(git_tree_entry_free)                                                                                             \
    X(git_tree_entry_type)                                                                                             \
    X(git_reference_name_to_id)                                                                                        \
    X(git_reference_create)                                                                                            \
    X(git_reference_create_matching)                                                                                   \
    X(git_reference_free)                                                                                              \
    X(git_commit_lookup)                                                                                               \
    X(git_commit_free)                                                                                                 \
    X(git_commit_tree)                                                                                                 \
    X(git_commit_create)                                                                                               \
    X(git_signature_now)                                                                                               \
    X(git_signature_free)

typedef struct whit_libgit2 {
#define WHIT_LIBGIT2_MEMBER(name) __typeof__(&name) name;
    WHIT_LIBGIT2(WHIT_LIBGIT2_MEMBER)
#undef WHIT_LIBGIT2_MEMBER
} whit_libgit2;

/* Loads and initialises the library, which then stays loaded. Returns false if it is not installed or lacks a
 * function. */
bool whit_libgit2_load(whit_libgit2 *api);

#endif
