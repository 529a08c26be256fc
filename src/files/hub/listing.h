/* SPDX-License-Identifier: MIT
 * Represents the list of a repository's files. It is read from a hub's responses, or from the store's record, which has
 * the same form. Responses are not trusted: paths that could leave a folder are refused, the number of files is
 * limited, and digest.h compares the sizes with those of the downloaded files. */
#ifndef WHIT_HUB_LISTING_H
#define WHIT_HUB_LISTING_H

#include "base/json.h"
#include "hub/name.h"

#define WHIT_HUB_FILES_MAX        100000u
#define WHIT_HUB_ANSWER_BYTES_MAX ((size_t)16 << 20) /* size limit of one page of a listing */
#define WHIT_HUB_COMMIT_BYTES     65
#define WHIT_HUB_SIZE_UNKNOWN     UINT64_MAX

typedef enum whit_hub_digest_kind {
    WHIT_HUB_NO_DIGEST = 0,
    WHIT_HUB_SHA256,   /* SHA-256 of the content: large files */
    WHIT_HUB_GIT_SHA1, /* SHA-1 of "blob SIZE\0" and the content: small files, as in git */
} whit_hub_digest_kind;

typedef struct whit_hub_file {
    char *path;          /* path in the repository; safe to create below a folder (whit_hub_path_is_safe) */
    uint64_t size_bytes; /* or WHIT_HUB_SIZE_UNKNOWN */
    whit_hub_digest_kind digest_kind;
    char digest[65]; /* lower-case hexadecimal */
} whit_hub_file;

/* A list of files. A zero-initialised list is empty. */
typedef struct whit_hub_listing {
    whit_hub_file *files; /* sorted by path once whit_hub_listing_sort has run */
    size_t n_files, n_places;
    char commit[WHIT_HUB_COMMIT_BYTES]; /* "" if the hub did not state it */
    char licence[64];                   /* name of the licence: letters, digits, '.', '_', '-'; "" if not stated in this
                                         * form */
} whit_hub_listing;

/* Adds the files of a page of a hub's "tree" response: an array of {"type", "path", "size", "oid", "lfs": {"oid",
 * "size"}}. `what` names the response in messages. */
whit_status whit_hub_listing_add_tree(whit_hub_listing *listing, const char *what, const char *text, size_t n_bytes,
                                      whit_error *error);
/* Reads a hub's description of a repository: the commit ("sha"), the licence (in "cardData"), and with `want_files` the
 * files ("siblings"): {"rfilename", "size", "blobId", "lfs": {"sha256"}}. Hubs may state a file's name only. */
whit_status whit_hub_listing_add_info(whit_hub_listing *listing, const char *what, const char *text, size_t n_bytes,
                                      bool want_files, whit_error *error);
/* Adds one file. Its path is copied. */
whit_status whit_hub_listing_add(whit_hub_listing *listing, const whit_hub_file *file, whit_error *error);
/* Sorts by path. A path that occurs twice is a format error. */
whit_status whit_hub_listing_sort(whit_hub_listing *listing, const char *what, whit_error *error);
/* Returns a file of a sorted listing, or NULL if absent. */
whit_hub_file *whit_hub_listing_find(const whit_hub_listing *listing, const char *path);
void whit_hub_listing_free(whit_hub_listing *listing);

/* Writes the listing in the form that whit_hub_listing_add_tree reads. Returns false if memory is exhausted. */
bool whit_hub_listing_write(const whit_hub_listing *listing, whit_buf *out);

/* Returns whether a text consists of exactly `n_digits` lower-case hexadecimal digits. */
bool whit_hub_is_hex(const char *text, size_t n_bytes, size_t n_digits);
/* Copies the address of the next page from a Link header ('<URL>; rel="next"'). Returns false if the header has no such
 * address or it does not fit. */
bool whit_hub_next_page(const char *link, char *url, size_t url_bytes);
/* Returns whether the next page of a listing may be read from `url`. An http address is refused if the hub's `endpoint`
 * is https. */
bool whit_hub_page_is_safe(const char *endpoint, const char *url);

#endif
