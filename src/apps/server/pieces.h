/* SPDX-License-Identifier: MIT
 * Makes replies whose text is written in pieces: a large reply is sent while it is written, and is never completely in
 * memory. */
#ifndef WHIT_SERVER_PIECES_H
#define WHIT_SERVER_PIECES_H

#include "server/http.h"

/* Appends a piece of a few kilobytes to the reply's text; returns false if it was the last one. */
typedef bool whit_piece_fn(void *user, whit_buf *out);

/* Makes a JSON reply from the pieces that `next` writes, with status 200, or 500 if memory runs out before it is sent;
 * later the connection is closed. `end` (may be NULL) is called once, after the last piece or when sending was
 * abandoned: before this function returns, or after the reply was sent. */
void whit_reply_pieces(whit_web_reply *reply, whit_piece_fn *next, void (*end)(void *user), void *user);

#endif
