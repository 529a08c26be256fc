/* SPDX-License-Identifier: MIT
 * Declares the changes that vi's keys make: operators, selections, inserting, registers. */
#ifndef WHIT_EDITOR_VI_CHANGE_H
#define WHIT_EDITOR_VI_CHANGE_H

#include "editor/vi.h"

/* These functions are in vi_change.c. */
bool ed_vi_may_change(ed *e);
void ed_vi_operate(ed *e, uint32_t code, struct ed_vi_span span);
bool ed_vi_is_by_lines(uint32_t code); /* returns whether the operator always acts on whole lines */
void ed_vi_place(ed *e, uint64_t at);  /* moves the cursor to `at` */
/* Changes letters to upper case ('U'), to lower case ('u'), or to the opposite case ('~'). */
void ed_vi_turn_case(ed *e, uint64_t begin, uint64_t end, uint32_t how);
void ed_vi_hold(ed *e, bool on);
void ed_vi_join(ed *e, uint64_t first, uint32_t n_lines, bool with_space);
/* applies an operator to the lines from `begin` to the line that contains `end` */
void ed_vi_lines_do(ed *e, uint32_t code, uint64_t begin, uint64_t end);

/* These functions are in vi_visual.c. */
/* Writes up to `max` ranges of the visual selection and returns their number, which is 0 outside the visual modes. A
 * selection of characters or lines is one range; a block has a range for each of its lines between the offsets `from`
 * and `to` that is long enough to reach it. */
size_t ed_vi_selection(ed *e, uint64_t from, uint64_t to, whit_range *ranges, size_t max);
void ed_vi_leave_visual(ed *e);
void ed_vi_operate_visual(ed *e, uint32_t code);
/* For '.': selects from the cursor as much text as the repeated command had selected. */
void ed_vi_select_extent(ed *e, const struct ed_vi_extent *extent);
/* Ends a visual mode and converts its selection to the editor's cursors, for commands that are not vi's. */
void ed_vi_hand_over(ed *e);

/* These functions are in vi_insert.c. */
bool ed_vi_insert_key(ed *e, whit_key key); /* returns false if the key is not one of vi's */
void ed_vi_begin_insert(ed *e, ed_vi_mode mode, uint32_t key);
void ed_vi_end_insert(ed *e);
bool ed_vi_is_literal(const ed *e); /* returns whether C-v was typed, so that the next key is inserted literally */
void ed_vi_paste_typed(ed *e, const char *text, size_t n);

/* These functions are in vi_register.c. */
void ed_vi_registers_free(ed *e);
void ed_vi_register_keep(ed *e, whit_range range, bool lines, bool block, bool deleted);
bool ed_vi_register_read(ed *e, uint32_t name, struct ed_vi_register *reg);
bool ed_vi_register_is_name(uint32_t name);
/* puts a register's text at the cursor or, if `line` is not ED_NONE, as whole lines at that line */
void ed_vi_put(ed *e, bool before, bool cursor_behind, uint64_t line);

#endif
