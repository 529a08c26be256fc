/* SPDX-License-Identifier: MIT */
#include "editor/theme.h"

#include "base/system.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

#define NONE WHIT_COLOR_NONE
#define BOLD WHIT_LOOK_BOLD
#define DIM  WHIT_LOOK_DIM

/* clang-format off */
static const char *const style_names[WHIT_N_STYLES] = {
    [WHIT_STYLE_TEXT] = "text", [WHIT_STYLE_KEYWORD] = "keyword", [WHIT_STYLE_TYPE] = "type",
    [WHIT_STYLE_CONSTANT] = "constant", [WHIT_STYLE_STRING] = "string", [WHIT_STYLE_NUMBER] = "number",
    [WHIT_STYLE_COMMENT] = "comment", [WHIT_STYLE_FUNCTION] = "function", [WHIT_STYLE_DIRECTIVE] = "directive",
    [WHIT_STYLE_FOREIGN] = "foreign", [WHIT_STYLE_MARGIN] = "margin", [WHIT_STYLE_MARGIN_HERE] = "margin_here",
    [WHIT_STYLE_ADDED] = "added", [WHIT_STYLE_CHANGED] = "changed", [WHIT_STYLE_REMOVED] = "removed",
    [WHIT_STYLE_STATUS] = "status", [WHIT_STYLE_STATUS_OTHER] = "status_other", [WHIT_STYLE_PROMPT] = "prompt",
    [WHIT_STYLE_ERROR] = "error", [WHIT_STYLE_LIST] = "list", [WHIT_STYLE_LIST_HERE] = "list_here",
    [WHIT_STYLE_SUGGESTION] = "suggestion",
};

static const whit_theme dark = {
    .looks = {
        [WHIT_STYLE_TEXT]         = {NONE, NONE, 0},
        [WHIT_STYLE_KEYWORD]      = {0x5FAFFF, NONE, BOLD},
        [WHIT_STYLE_TYPE]         = {0x5FD7AF, NONE, 0},
        [WHIT_STYLE_CONSTANT]     = {0xD787D7, NONE, 0},
        [WHIT_STYLE_STRING]       = {0x87D75F, NONE, 0},
        [WHIT_STYLE_NUMBER]       = {0xD787D7, NONE, 0},
        [WHIT_STYLE_COMMENT]      = {0x8A8A8A, NONE, DIM},
        [WHIT_STYLE_FUNCTION]     = {0xD7AF5F, NONE, 0},
        [WHIT_STYLE_DIRECTIVE]    = {0xD78787, NONE, 0},
        [WHIT_STYLE_FOREIGN]      = {0xFF5F5F, NONE, 0},
        [WHIT_STYLE_MARGIN]       = {0x626262, NONE, DIM},
        [WHIT_STYLE_MARGIN_HERE]  = {0xBCBCBC, NONE, 0},
        [WHIT_STYLE_ADDED]        = {0x87D75F, NONE, 0},
        [WHIT_STYLE_CHANGED]      = {0xD7AF5F, NONE, 0},
        [WHIT_STYLE_REMOVED]      = {0xFF5F5F, NONE, 0},
        [WHIT_STYLE_STATUS]       = {0xD0D0D0, 0x444444, BOLD},
        [WHIT_STYLE_STATUS_OTHER] = {0x949494, 0x303030, 0},
        [WHIT_STYLE_PROMPT]       = {0x5FAFFF, NONE, BOLD},
        [WHIT_STYLE_ERROR]        = {0xFF5F5F, NONE, BOLD},
        [WHIT_STYLE_LIST]         = {0xD0D0D0, 0x303030, 0},
        [WHIT_STYLE_LIST_HERE]    = {0xE4E4E4, 0x585858, BOLD},
        [WHIT_STYLE_SUGGESTION]   = {0x87AFD7, NONE, DIM},
    },
    .match = {0x000000, 0xD7AF5F, 0},
    .colored = true,
};

static const whit_theme light = {
    .looks = {
        [WHIT_STYLE_TEXT]         = {NONE, NONE, 0},
        [WHIT_STYLE_KEYWORD]      = {0x005FAF, NONE, BOLD},
        [WHIT_STYLE_TYPE]         = {0x00875F, NONE, 0},
        [WHIT_STYLE_CONSTANT]     = {0x870087, NONE, 0},
        [WHIT_STYLE_STRING]       = {0x5F8700, NONE, 0},
        [WHIT_STYLE_NUMBER]       = {0x870087, NONE, 0},
        [WHIT_STYLE_COMMENT]      = {0x767676, NONE, 0},
        [WHIT_STYLE_FUNCTION]     = {0x875F00, NONE, 0},
        [WHIT_STYLE_DIRECTIVE]    = {0xAF0000, NONE, 0},
        [WHIT_STYLE_FOREIGN]      = {0xD70000, NONE, 0},
        [WHIT_STYLE_MARGIN]       = {0x9E9E9E, NONE, 0},
        [WHIT_STYLE_MARGIN_HERE]  = {0x444444, NONE, 0},
        [WHIT_STYLE_ADDED]        = {0x5F8700, NONE, 0},
        [WHIT_STYLE_CHANGED]      = {0xAF8700, NONE, 0},
        [WHIT_STYLE_REMOVED]      = {0xD70000, NONE, 0},
        [WHIT_STYLE_STATUS]       = {0x303030, 0xD0D0D0, BOLD},
        [WHIT_STYLE_STATUS_OTHER] = {0x767676, 0xE4E4E4, 0},
        [WHIT_STYLE_PROMPT]       = {0x005FAF, NONE, BOLD},
        [WHIT_STYLE_ERROR]        = {0xD70000, NONE, BOLD},
        [WHIT_STYLE_LIST]         = {0x303030, 0xE4E4E4, 0},
        [WHIT_STYLE_LIST_HERE]    = {0x1C1C1C, 0xBCBCBC, BOLD},
        [WHIT_STYLE_SUGGESTION]   = {0x5F87AF, NONE, 0},
    },
    .match = {0x000000, 0xFFD75F, 0},
    .colored = true,
};

static const struct { const char *name; int32_t color; } color_names[] = {
    {"default", NONE}, {"black", 0x000000}, {"red", 0xD70000}, {"green", 0x5FAF00}, {"yellow", 0xD7AF00},
    {"blue", 0x5F87FF}, {"magenta", 0xD75FD7}, {"cyan", 0x00AFAF}, {"grey", 0x8A8A8A}, {"white", 0xFFFFFF},
};
static const struct { const char *name; uint8_t attribute; } attribute_names[] = {
    {"bold", BOLD}, {"dim", DIM}, {"italic", WHIT_LOOK_ITALIC}, {"underline", WHIT_LOOK_UNDERLINE},
    {"reverse", WHIT_LOOK_REVERSE},
};
/* clang-format on */
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Returns the name of style i, "match" for i = WHIT_N_STYLES, and NULL for a larger i. */
static const char *style_name(size_t i)
{
    if (i < WHIT_N_STYLES) return style_names[i];
    return i == WHIT_N_STYLES ? "match" : NULL;
}

/* Sets the theme without colours: attributes such as bold stay, and bars are shown in reverse video. */
static void make_plain(whit_theme *theme)
{
    *theme = dark;
    theme->colored = false;
    for (int i = 0; i < WHIT_N_STYLES; i++) {
        whit_look *look = &theme->looks[i];
        bool bar = i == WHIT_STYLE_STATUS || i == WHIT_STYLE_STATUS_OTHER || i == WHIT_STYLE_LIST_HERE;
        *look = (whit_look){NONE, NONE, (uint8_t)(look->attributes | (bar ? WHIT_LOOK_REVERSE : 0))};
    }
    theme->match = (whit_look){NONE, NONE, WHIT_LOOK_UNDERLINE};
}

/* Returns whether the terminal's background is light. rxvt, Konsole and others set COLORFGBG to "ink;paper", as numbers
 * of the 16 colours, of which 7 and 9 to 15 are light. */
static bool is_terminal_light(void)
{
    const char *colors = getenv("COLORFGBG"), *paper = colors ? strrchr(colors, ';') : NULL;
    char *behind;
    long number = paper ? strtol(paper + 1, &behind, 10) : 0;
    return paper && behind != paper + 1 && !*behind && (number == 7 || (number >= 9 && number <= 15));
}

bool whit_theme_named(const char *name, whit_theme *theme)
{
    if (!strcmp(name, "auto")) name = is_terminal_light() ? "light" : "dark";
    if (!strcmp(name, "dark"))
        *theme = dark;
    else if (!strcmp(name, "light"))
        *theme = light;
    else if (!strcmp(name, "plain"))
        make_plain(theme);
    else
        return false;
    return true;
}

static bool read_color(const char *word, int32_t *color)
{
    if (*word == '#') {
        size_t n = strspn(word + 1, "0123456789abcdefABCDEF");
        if (n != 6 || word[7]) return false;
        *color = (int32_t)strtol(word + 1, NULL, 16);
        return true;
    }
    for (size_t i = 0; i < COUNT(color_names); i++)
        if (!strcmp(word, color_names[i].name)) {
            *color = color_names[i].color;
            return true;
        }
    return false;
}

bool whit_theme_set(whit_theme *theme, const char *style, const char *look, char *why, size_t why_bytes)
{
    size_t number = 0;
    const char *name;
    while ((name = style_name(number)) && strcmp(name, style)) number++;
    if (!name) {
        snprintf(why, why_bytes, "there is no style '%.40s'; docs/use/editor.md lists them", style);
        return false;
    }
    whit_look taken = {NONE, NONE, 0};
    bool paper = false, has_ink = false, has_paper = false;
    for (const char *at = look + strspn(look, " \t"); *at;) {
        char word[32];
        size_t n = strcspn(at, " \t");
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), at);
        at += n;
        at += strspn(at, " \t");
        uint8_t attribute = 0;
        for (size_t i = 0; i < COUNT(attribute_names); i++)
            if (!strcmp(word, attribute_names[i].name)) attribute = attribute_names[i].attribute;
        int32_t color = NONE;
        bool is_color = !attribute && read_color(word, &color);
        if (attribute)
            taken.attributes |= attribute;
        else if (!strcmp(word, "on") && !paper && *at)
            paper = true;
        else if (is_color && paper && !has_paper) {
            taken.paper = color;
            has_paper = true;
        } else if (is_color && !paper && !has_ink) {
            taken.ink = color;
            has_ink = true;
        } else {
            snprintf(why, why_bytes,
                     "'%.30s' is not known in a style, which is written as '#808080 on black bold italic'", word);
            return false;
        }
    }
    if (number == WHIT_N_STYLES)
        theme->match = taken;
    else
        theme->looks[number] = taken;
    theme->colored = theme->colored || taken.ink != NONE || taken.paper != NONE;
    return true;
}

whit_look whit_theme_look(const whit_theme *theme, const whit_cell *cell)
{
    whit_look look = theme->looks[cell->style];
    if (cell->flags & WHIT_CELL_MATCH) look = theme->match;
    if (cell->flags & (WHIT_CELL_SELECTED | WHIT_CELL_CURSOR)) look.attributes ^= WHIT_LOOK_REVERSE;
    if (cell->flags & WHIT_CELL_WRONG) look.attributes |= WHIT_LOOK_UNDERLINE;
    if (cell->flags & WHIT_CELL_BRACKET) look.attributes |= BOLD | WHIT_LOOK_UNDERLINE;
    return look;
}

/* ---- fewer colours ------------------------------------------------------------------------- */

static int square(int n)
{
    return n * n;
}

int whit_color_256(int32_t color)
{
    static const int levels[] = {0, 0x5F, 0x87, 0xAF, 0xD7, 0xFF};
    int parts[3] = {color >> 16 & 255, color >> 8 & 255, color & 255}, near[3], cube = 16, distance = 0;
    if (color < 0) return NONE;
    for (int i = 0; i < 3; i++) {
        near[i] = 0;
        for (int k = 1; k < 6; k++)
            if (abs(levels[k] - parts[i]) < abs(levels[near[i]] - parts[i])) near[i] = k;
        distance += square(levels[near[i]] - parts[i]);
    }
    cube += 36 * near[0] + 6 * near[1] + near[2];
    int grey = ((parts[0] + parts[1] + parts[2]) / 3 - 3) / 10; /* the 24 greys of the palette are 8, 18 ... 238 */
    if (grey < 0)
        grey = 0;
    else if (grey > 23)
        grey = 23;
    int level = 8 + 10 * grey, grey_distance = 0;
    for (int i = 0; i < 3; i++) grey_distance += square(level - parts[i]);
    return grey_distance < distance ? 232 + grey : cube;
}

int whit_color_8(int32_t color)
{
    int parts[3] = {color >> 16 & 255, color >> 8 & 255, color & 255}, low = 255, high = 0;
    if (color < 0) return NONE;
    for (int i = 0; i < 3; i++) {
        low = parts[i] < low ? parts[i] : low;
        high = parts[i] > high ? parts[i] : high;
    }
    if (high < 32) return 0;
    if (high - low < 48) return high > 240 ? 7 : NONE;
    int middle = (low + high) / 2;
    return (parts[0] > middle) | (parts[1] > middle) << 1 | (parts[2] > middle) << 2;
}

/* ---- 24 bits ------------------------------------------------------------------------------- */

static bool is_same_look(whit_look a, whit_look b)
{
    return a.ink == b.ink && a.paper == b.paper && a.attributes == b.attributes;
}

static void put_color(whit_buf *out, int kind, int32_t color)
{
    if (color >= 0) whit_buf_printf(out, ";%d;2;%d;%d;%d", kind, color >> 16 & 255, color >> 8 & 255, color & 255);
}

static void put_look(whit_buf *out, whit_look look)
{
    static const char *const codes[] = {";1", ";2", ";3", ";4", ";7"};
    whit_buf_append_str(out, "\033[0");
    for (int i = 0; i < 5; i++)
        if (look.attributes & 1 << i) whit_buf_append_str(out, codes[i]);
    put_color(out, 38, look.ink);
    put_color(out, 48, look.paper);
    whit_buf_append_str(out, "m");
}

/* Appends a cell's character. Terminals use the system's tables of widths, so a character whose width there differs
 * from its cell's is replaced by U+FFFD. */
static void put_cell(whit_buf *out, const whit_cell *cell, bool wide)
{
    bool fits = whit_system_columns(cell->codes[0]) == (wide ? 2 : 1);
    for (int i = 0; i < WHIT_CELL_CODES && cell->codes[i]; i++) {
        uint8_t text[4];
        if (i && (!fits || whit_system_columns(cell->codes[i]) != 0)) break;
        size_t n = whit_utf8_encode(fits ? cell->codes[i] : 0xFFFD, text);
        whit_buf_append(out, text, n);
    }
    if (!fits && wide) whit_buf_append_str(out, " ");
}

static bool is_same_cell(const whit_cell *a, const whit_cell *b)
{
    return !memcmp(a->codes, b->codes, sizeof a->codes) && a->style == b->style && a->flags == b->flags;
}

bool whit_theme_paint(const whit_theme *theme, const whit_screen *before, const whit_screen *after, whit_buf *out)
{
    whit_look look = {NONE, NONE, 0};
    bool clear = !before || before->n_columns != after->n_columns || before->n_rows != after->n_rows;
    bool looked = false;
    size_t begin = out->size_bytes;
    whit_buf_append_str(out, "\033[?25l\033[0m");
    if (clear) whit_buf_append_str(out, "\033[2J");
    size_t empty = out->size_bytes;
    for (int y = 0; y < after->n_rows; y++) {
        int at = -1; /* column of the terminal's cursor in this row, or -1 if it is not known */
        for (int x = 0; x < after->n_columns; x++) {
            size_t i = (size_t)(y * after->n_columns + x);
            const whit_cell *cell = &after->cells[i];
            bool wide = x + 1 < after->n_columns && !cell[1].codes[0];
            if (!cell->codes[0]) continue; /* right half of a wide character */
            bool same = !clear && is_same_cell(cell, &before->cells[i]) &&
                (!wide || is_same_cell(cell + 1, &before->cells[i + 1]));
            if (same) continue;
            if (at != x) whit_buf_printf(out, "\033[%d;%dH", y + 1, x + 1);
            whit_look wanted = whit_theme_look(theme, cell);
            if (!looked || !is_same_look(look, wanted)) put_look(out, wanted);
            looked = true;
            look = wanted;
            put_cell(out, cell, wide);
            at = x + 1 + wide;
            /* terminals disagree about the cursor's position after a non-ASCII character and after the last column, so
             * it will be set explicitly */
            if (cell->codes[0] > 126 || at >= after->n_columns) at = -1;
        }
    }
    bool moved = !before || before->cursor_x != after->cursor_x || before->cursor_y != after->cursor_y;
    if (out->size_bytes == empty && !clear && !moved) {
        out->size_bytes = begin;
        return !out->failed;
    }
    if (looked) whit_buf_append_str(out, "\033[0m");
    if (after->cursor_x >= 0) whit_buf_printf(out, "\033[%d;%dH\033[?25h", after->cursor_y + 1, after->cursor_x + 1);
    return !out->failed;
}
