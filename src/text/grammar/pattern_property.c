/* SPDX-License-Identifier: MIT
 * Implements Unicode properties of patterns: \p{...} with general categories, and the properties that patterns of emoji
 * use. */
#include "grammar/pattern_property.h"

#include <utf8proc.h>

/* General categories with their long and short names, as in Unicode's PropertyValueAliases.txt, to which ECMA-262
 * refers. The first letter of a short name is the name of the category's group. */
static const struct {
    const char *name, *category;
} categories[] = {{"Letter", "L"},
                  {"Cased_Letter", "LC"},
                  {"Uppercase_Letter", "Lu"},
                  {"Lowercase_Letter", "Ll"},
                  {"Titlecase_Letter", "Lt"},
                  {"Modifier_Letter", "Lm"},
                  {"Other_Letter", "Lo"},
                  {"Mark", "M"},
                  {"Combining_Mark", "M"},
                  {"Nonspacing_Mark", "Mn"},
                  {"Spacing_Mark", "Mc"},
                  {"Enclosing_Mark", "Me"},
                  {"Number", "N"},
                  {"Decimal_Number", "Nd"},
                  {"digit", "Nd"},
                  {"Letter_Number", "Nl"},
                  {"Other_Number", "No"},
                  {"Punctuation", "P"},
                  {"punct", "P"},
                  {"Connector_Punctuation", "Pc"},
                  {"Dash_Punctuation", "Pd"},
                  {"Open_Punctuation", "Ps"},
                  {"Close_Punctuation", "Pe"},
                  {"Initial_Punctuation", "Pi"},
                  {"Final_Punctuation", "Pf"},
                  {"Other_Punctuation", "Po"},
                  {"Symbol", "S"},
                  {"Math_Symbol", "Sm"},
                  {"Currency_Symbol", "Sc"},
                  {"Modifier_Symbol", "Sk"},
                  {"Other_Symbol", "So"},
                  {"Separator", "Z"},
                  {"Space_Separator", "Zs"},
                  {"Line_Separator", "Zl"},
                  {"Paragraph_Separator", "Zp"},
                  {"Other", "C"},
                  {"Control", "Cc"},
                  {"cntrl", "Cc"},
                  {"Format", "Cf"},
                  {"Private_Use", "Co"},
                  {"Unassigned", "Cn"}};

/* The property Emoji_Component of Unicode's emoji-data.txt. */
static const whit_code_range components[] = {
    {'#', '#'},       {'*', '*'},         {'0', '9'},         {0x200D, 0x200D},   {0x20E3, 0x20E3},
    {0xFE0F, 0xFE0F}, {0x1F1E6, 0x1F1FF}, {0x1F3FB, 0x1F3FF}, {0x1F9B0, 0x1F9B3}, {0xE0020, 0xE007F}};

static bool is_text(const char *name, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(name, text, n) == 0;
}

/* Returns the short name of the category with this long or short name; NULL if not found. */
static const char *category_of(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++)
        if (is_text(name, n, categories[i].name) || is_text(name, n, categories[i].category))
            return categories[i].category;
    return NULL;
}

static bool has_category(uint32_t code, const char *category)
{
    const char *own = utf8proc_category_string((utf8proc_int32_t)code);
    if (category[0] == 'L' && category[1] == 'C') return own[0] == 'L' && strchr("ult", own[1]);
    return own[0] == category[0] && (!category[1] || own[1] == category[1]);
}

bool whit_pattern_property(const char *name, size_t n, whit_buf *ranges)
{
    static const char general[] = "General_Category=", gc[] = "gc=";
    bool emoji = is_text(name, n, "Extended_Pictographic");
    if (is_text(name, n, "Emoji_Component")) return whit_buf_append(ranges, components, sizeof components);
    if (is_text(name, n, "Regional_Indicator") || is_text(name, n, "RI")) {
        whit_code_range range = {0x1F1E6, 0x1F1FF};
        return whit_buf_append(ranges, &range, sizeof range);
    }
    const char *const prefixes[] = {general, gc};
    for (int i = 0; i < 2; i++)
        if (n > strlen(prefixes[i]) && memcmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            name += strlen(prefixes[i]);
            n -= strlen(prefixes[i]);
        }
    const char *category = emoji ? NULL : category_of(name, n);
    if (!emoji && !category) return false;
    whit_code_range range = {1, 0};
    for (uint32_t code = 0; code <= 0x110000; code++) {
        bool has = code < 0x110000 &&
            (emoji ? utf8proc_get_property((utf8proc_int32_t)code)->boundclass ==
                     UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC
                   : has_category(code, category));
        if (has && range.first > range.last) range.first = code;
        if (has) range.last = code;
        if (has || range.first > range.last) continue;
        if (!whit_buf_append(ranges, &range, sizeof range)) return false;
        range = (whit_code_range){1, 0};
    }
    return true;
}
