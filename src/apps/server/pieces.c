/* SPDX-License-Identifier: MIT */
#include "server/pieces.h"

#include <stdlib.h>
#include <string.h>

enum { WHOLE_BYTES = 256 << 10 }; /* longer replies are sent in pieces, without a Content-Length */

struct pieces {
    whit_piece_fn *next;
    void (*end)(void *user);
    void *user;
    whit_buf out; /* text of the reply; the bytes before n_sent were sent */
    size_t n_sent;
    bool is_over;
};

static void end_pieces(void *user)
{
    struct pieces *p = user;
    if (p->end) p->end(p->user);
    whit_buf_free(&p->out);
    free(p);
}

static long send_pieces(void *user, char *data, size_t room)
{
    struct pieces *p = user;
    while (p->n_sent == p->out.size_bytes) {
        if (p->is_over) return 0;
        p->n_sent = p->out.size_bytes = 0;
        p->is_over = !p->next(p->user, &p->out);
        if (p->out.failed) return -1;
    }
    size_t left = p->out.size_bytes - p->n_sent, n = left < room ? left : room;
    memcpy(data, p->out.data + p->n_sent, n);
    p->n_sent += n;
    return (long)n;
}

void whit_reply_pieces(whit_web_reply *reply, whit_piece_fn *next, void (*end)(void *user), void *user)
{
    struct pieces *p = calloc(1, sizeof *p);
    whit_buf_free(&reply->body);
    reply->body = (whit_buf){0};
    reply->status = 500;
    reply->type = "application/json";
    if (!p) {
        if (end) end(user);
        return;
    }
    *p = (struct pieces){.next = next, .end = end, .user = user};
    while (!p->is_over && p->out.size_bytes < WHOLE_BYTES && !p->out.failed) p->is_over = !next(user, &p->out);
    if (!p->out.failed) reply->status = 200;
    if (p->is_over || p->out.failed) {
        if (!p->out.failed) {
            reply->body = p->out;
            p->out = (whit_buf){0};
        }
        end_pieces(p);
        return;
    }
    reply->stream = send_pieces;
    reply->end_stream = end_pieces;
    reply->stream_user = p;
}
