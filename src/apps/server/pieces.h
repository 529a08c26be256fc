/* SPDX-License-Identifier: MIT
 * Replies written as text, piece by piece: a large reply is sent while it is made and is never completely in memory. */
#ifndef WHIT_SERVER_PIECES_H
#define WHIT_SERVER_PIECES_H

#include "server/http.h"

/* Appends a piece of some kilobytes; returns false after the last one. */
typedef bool whit_piece_fn(void *user, whit_buf *out);

/* A reply of JSON with status 200. `end` (NULL: nothing to do) is called once, when no more pieces are asked for,
 * before this returns or after the reply was sent. */
void whit_reply_pieces(whit_web_reply *reply, whit_piece_fn *next, void (*end)(void *user), void *user);

#endif
