/* SPDX-License-Identifier: MIT
 * Replies that are written as text, piece by piece: a large reply is sent while it is generated and is never completely
 * in memory. */
#ifndef WHIT_SERVER_PIECES_H
#define WHIT_SERVER_PIECES_H

#include "server/http.h"

/* Appends a piece of some kilobytes; returns false after the last one. */
typedef bool whit_piece_fn(void *user, whit_buf *out);

/* Makes a JSON reply with status 200. `end` (NULL: nothing to do) is called once, after the last piece was requested:
 * before this function returns, or after the reply was sent. */
void whit_reply_pieces(whit_web_reply *reply, whit_piece_fn *next, void (*end)(void *user), void *user);

#endif
