/* SPDX-License-Identifier: MIT
 * Declares the operations of Python's str methods, which methods and filters share. Results keep the marks of the
 * user's text, and are Markup where Python's would be. */
#ifndef WHIT_TEMPLATE_STRINGS_H
#define WHIT_TEMPLATE_STRINGS_H

#include "template/machine.h"

enum { WHIT_SIDE_LEFT = 1, WHIT_SIDE_RIGHT = 2, WHIT_SIDE_BOTH = 3 };

/* Removes characters at the given sides. `characters` NULL: white space. */
whit_status whit_string_strip(whit_machine *m, const whit_text *text, const whit_text *characters, int sides,
                              whit_datum *result);
/* Splits a text into a list, at `separator` or, if that is NULL, at white space. At most `limit` splits are made
 * (negative: no limit), from the end if `from_right`. An empty separator is an error. */
whit_status whit_string_split(whit_machine *m, const whit_text *text, const whit_text *separator, int64_t limit,
                              bool from_right, whit_datum *result);
whit_status whit_string_split_lines(whit_machine *m, const whit_text *text, bool keep_ends, whit_datum *result);
whit_status whit_string_replace(whit_machine *m, const whit_text *text, const whit_text *from, const whit_text *to,
                                int64_t limit, whit_datum *result);
/* Joins the items. With `strict` an item that is not a str is an error, as in str.join; otherwise it is converted by
 * str(). */
whit_status whit_string_join(whit_machine *m, const whit_text *separator, const whit_list *list, bool strict,
                             whit_datum *result);

typedef enum whit_casing {
    WHIT_LOWER,
    WHIT_UPPER,
    WHIT_FOLD,
    WHIT_SWAP,
    WHIT_CAPITALIZE,
    WHIT_TITLE,        /* like str.title */
    WHIT_TITLE_FILTER, /* like the filter `title`: words begin after white space, hyphens and brackets */
} whit_casing;
whit_status whit_string_change_case(whit_machine *m, const whit_text *text, whit_casing casing, whit_datum *result);
/* Pads to `width` code points. With WHIT_SIDE_BOTH half of the padding is added on each side; of an odd number, the
 * larger half on the left if `width` is odd, else on the right. A text that is wide enough is returned unchanged. */
whit_status whit_string_pad(whit_machine *m, const whit_text *text, int64_t width, uint32_t fill, int sides,
                            whit_datum *result);

#endif
