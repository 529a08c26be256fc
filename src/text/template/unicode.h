/* SPDX-License-Identifier: MIT
 * Classifies characters like Python's str, and maps them to other cases with all special cases. */
#ifndef WHIT_TEMPLATE_UNICODE_H
#define WHIT_TEMPLATE_UNICODE_H

#include "template/text.h"

bool whit_point_is_space(uint32_t point);   /* like str.isspace; strip and split use it too */
bool whit_point_is_newline(uint32_t point); /* a line end of str.splitlines; the caller treats "\r\n" as one */
bool whit_point_is_printable(uint32_t point);
bool whit_point_is_alpha(uint32_t point);
bool whit_point_is_decimal(uint32_t point);
bool whit_point_is_digit(uint32_t point);
bool whit_point_is_numeric(uint32_t point);
bool whit_point_is_lower(uint32_t point);
bool whit_point_is_upper(uint32_t point);
bool whit_point_is_title(uint32_t point); /* a title-case letter, such as U+01C5 */
bool whit_point_is_name_start(uint32_t point);
bool whit_point_is_name(uint32_t point); /* the character may continue an identifier */

typedef enum whit_case { WHIT_CASE_LOWER, WHIT_CASE_UPPER, WHIT_CASE_TITLE, WHIT_CASE_FOLD } whit_case;

/* Appends the code point at `offset` in another case. The surrounding text decides whether a lower-case sigma has its
 * final form. */
bool whit_builder_cased(whit_builder *b, const whit_text *text, size_t offset, whit_case to);

#endif
