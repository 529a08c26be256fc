/* SPDX-License-Identifier: MIT
 * A model hub on this machine, for tests: one repository, served as hubs do, with the faults that a test requests.
 * It uses plain sockets and one connection at a time, in its own thread. Large files may be on a second port, as on
 * a content delivery network. */
#ifndef WHIT_TESTS_HUB_SERVER_H
#define WHIT_TESTS_HUB_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUB_COMMIT "0123456789abcdef0123456789abcdef01234567"

struct hub_file {
    const char *path;
    const void *data;
    size_t size_bytes;
    bool is_large; /* listed with its SHA-256; otherwise with git's digest */
    /* wrong values in the listing */
    const char *listed_digest; /* digest in the listing; NULL: the true one; "": no digest */
    int64_t listed_bytes;      /* size in the listing; 0: the true one */
    /* faults when the file is sent */
    long status; /* HTTP status instead of 200 */
    const char *error_code;
    const char *etag;       /* ETag instead of the digest; "": no ETag */
    size_t cut_after_bytes; /* the connection is closed after this number of bytes of a body */
    unsigned n_cuts;        /* number of times that cut_after_bytes applies */
    unsigned bytes_per_s;   /* maximum rate in bytes per second; 0: no limit */
    unsigned pause_s;       /* seconds of silence before the body */
    bool no_ranges, no_length, no_linked_etag, is_elsewhere, redirects_for_ever;
};

struct hub_repository {
    const char *name;    /* "owner/name" */
    const char *token;   /* token that requests must contain; NULL: none is required */
    const char *licence; /* licence in the description; NULL: none is stated */
    struct hub_file *files;
    size_t n_files;
    size_t page_files;  /* number of entries per page of the file listing; 0: all on one page */
    const char *tree;   /* listing to send instead of the true one */
    const char *commit; /* commit; NULL: HUB_COMMIT */
    unsigned n_busy;    /* number of requests that are answered with 503 first */
    bool no_tree, no_info, endless_pages;
};

typedef struct hub_server hub_server;

/* Starts a server. The caller keeps the repository, and may change it after hub_server_rest(). With `verbose` each
 * request is printed on stderr. Returns NULL if no port is free. */
hub_server *hub_server_start(struct hub_repository *repository, bool verbose);
void hub_server_stop(hub_server *server);
/* Waits until no request is being answered, which may be later than its client has received the answer. */
void hub_server_rest(hub_server *server);
/* Returns the server's address, "http://127.0.0.1:PORT". */
const char *hub_server_address(const hub_server *server);
/* Returns the log of requests since the last call, one line each: "PORT METHOD TARGET range=... if-range=... auth=...",
 * where PORT is 1 or 2. It is valid until the next call. */
const char *hub_server_log(hub_server *server);

#endif
