/* SPDX-License-Identifier: MIT
 * Keeps undo as a tree of steps. One undo reverts a step; typing after an undo creates a new branch, and the old branch
 * stays. Steps contain pieces of the text, not copies. */
#ifndef WHIT_EDITOR_UNDO_H
#define WHIT_EDITOR_UNDO_H

#include "editor/text.h"

typedef struct whit_undo whit_undo;

/* Opens the history of a text; the text must outlive the history. */
whit_status whit_undo_open(whit_text *text, whit_undo **history, whit_error *error);
void whit_undo_close(whit_undo *history);

/* Changes the text and remembers how. The change joins the open step if there is one. */
whit_status whit_undo_edit(whit_undo *history, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                           whit_error *error);
/* Closes the open step, so that the next edit begins a new one. */
void whit_undo_seal(whit_undo *history);
bool whit_undo_is_open(const whit_undo *history);

/* These functions make one step back, or forward along the branch that was left last. They return false if there is no
 * such step, or if memory runs out (then *error is set, and its status is not WHIT_OK). *changed is the range that
 * the step changed, in the present text. */
bool whit_undo_back(whit_undo *history, whit_range *changed, whit_error *error);
bool whit_undo_forward(whit_undo *history, whit_range *changed, whit_error *error);
/* Chooses the branch of the next redo, if the current step has several; false otherwise. */
bool whit_undo_next_branch(whit_undo *history);
size_t whit_undo_n_branches(const whit_undo *history);

/* Returns a number that identifies a state of the text: it is equal after undo and redo have returned to the state. */
uint32_t whit_undo_state(const whit_undo *history);

/* The callback is told every change of the text, also by undo and redo, as (offset, removed, inserted). */
typedef void whit_undo_fn(void *user, uint64_t offset, uint64_t n_removed, uint64_t n_inserted);
void whit_undo_watch(whit_undo *history, whit_undo_fn *watch, void *user);

#endif
