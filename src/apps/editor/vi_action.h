/* SPDX-License-Identifier: MIT
 * Declares the actions of vi's keys, which the rows of the table name (vi_table.h). */
#ifndef WHIT_EDITOR_VI_ACTION_H
#define WHIT_EDITOR_VI_ACTION_H

#include "editor/vi_table.h"

/* These actions are in vi.c. */
extern ed_vi_action_fn ed_vi_choose_register, ed_vi_repeat, ed_vi_record_macro, ed_vi_play_macro,
    ed_vi_open_line_prompt, ed_vi_open_search, ed_vi_show_buffer;

/* These actions are in vi_change.c. */
extern ed_vi_action_fn ed_vi_insert_here, ed_vi_open_line, ed_vi_delete_chars, ed_vi_substitute_chars,
    ed_vi_operate_lines, ed_vi_operate_to_end, ed_vi_put_text, ed_vi_join_lines, ed_vi_undo, ed_vi_toggle_case,
    ed_vi_replace_mode, ed_vi_replace_char, ed_vi_change_number, ed_vi_set_mark;

/* These actions are in vi_visual.c. */
extern ed_vi_action_fn ed_vi_select, ed_vi_select_again, ed_vi_visual_lines, ed_vi_visual_join, ed_vi_visual_put,
    ed_vi_visual_turn, ed_vi_visual_insert, ed_vi_visual_replace;

/* These actions are in vi_view.c. */
extern ed_vi_action_fn ed_vi_scroll, ed_vi_show_row, ed_vi_choose_window;

/* These actions are in vi_insert.c. */
extern ed_vi_action_fn ed_vi_typed_delete, ed_vi_typed_indent, ed_vi_typed_register, ed_vi_typed_once;

#endif
