/* SPDX-License-Identifier: MIT
 * Finds places of a text as vi counts them: characters, lines, columns, sentences. */
#ifndef WHIT_EDITOR_VI_MOTION_H
#define WHIT_EDITOR_VI_MOTION_H

#include "editor/vi.h"

/* These functions are in vi_motion.c. */
bool ed_vi_search(ed *e, bool back, uint64_t at, struct ed_vi_span *span);
uint64_t ed_vi_end(ed *e); /* returns the end of the last line: the offset of its LF or CR LF, or of the text's end */
uint64_t ed_vi_line_begin(ed *e, uint64_t at);
uint64_t ed_vi_line_end(ed *e, uint64_t at);  /* returns the end of the line: the offset of its CR LF or LF */
uint64_t ed_vi_next_line(ed *e, uint64_t at); /* returns the beginning of the next line; ED_NONE in the last line */
/* returns the beginning of line n, counted from 1, or of the last line if there are fewer */
uint64_t ed_vi_nth_line(ed *e, uint64_t n);
/* returns the first character of the line that is not blank; in a blank line its last character, in an empty line its
 * beginning */
uint64_t ed_vi_first(ed *e, uint64_t at);
uint64_t ed_vi_at_column(ed *e, uint64_t line, int column);
int ed_vi_column(ed *e, uint64_t at);
uint64_t ed_vi_before(ed *e, uint64_t at);
uint64_t ed_vi_behind(ed *e, uint64_t at);
/* returns the class of a character: 0 blank or line end, 1 word, 2 other sign; `big`: only 0 and 1 */
int ed_vi_class(ed *e, uint64_t at, bool big);
bool ed_vi_is_empty_line(ed *e, uint64_t at);
uint64_t ed_vi_sentence(ed *e, uint64_t at, bool back);

#endif
