/* SPDX-License-Identifier: MIT
 * Keeps undo as a tree of steps. One undo reverts a step; typing after an undo creates a new branch, and the old branch
 * stays. Steps contain pieces of the text, not copies. */
#ifndef WHIT_EDITOR_UNDO_H
#define WHIT_EDITOR_UNDO_H

#include "editor/text.h"

typedef struct whit_undo whit_undo;

/* Creates an empty history for a text, which must outlive it. */
whit_status whit_undo_open(whit_text *text, whit_undo **history, whit_error *error);
void whit_undo_close(whit_undo *history);

/* Edits the text and records the edit: removes n_remove bytes at `offset`, then inserts `data`. The edit joins the open
 * step, or begins one. */
whit_status whit_undo_edit(whit_undo *history, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                           whit_error *error);
/* Closes the open step, so that the next edit begins a new one. */
void whit_undo_seal(whit_undo *history);
bool whit_undo_is_open(const whit_undo *history);

/* Undo one step, or redo one step along the selected branch: the branch that was undone or edited last, unless
 * whit_undo_next_branch() has selected another. Return false if there is no such step, or if memory runs out (then
 * error->status is not WHIT_OK). *changed gets the changed range in the resulting text. */
bool whit_undo_back(whit_undo *history, whit_range *changed, whit_error *error);
bool whit_undo_forward(whit_undo *history, whit_range *changed, whit_error *error);
/* Selects the next of several branches for the next redo. Returns false if the current step has fewer than two
 * branches. */
bool whit_undo_next_branch(whit_undo *history);
size_t whit_undo_n_branches(const whit_undo *history);

/* Returns the number of the current state of the text. Returning to a state by undo or redo gives the same number. */
uint32_t whit_undo_state(const whit_undo *history);

/* Callback for every change of the text, also by undo and redo. */
typedef void whit_undo_fn(void *user, uint64_t offset, uint64_t n_removed, uint64_t n_inserted);
void whit_undo_watch(whit_undo *history, whit_undo_fn *watch, void *user);

#endif
