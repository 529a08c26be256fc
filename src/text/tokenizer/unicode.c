/* SPDX-License-Identifier: MIT */
#include "tokenizer/unicode.h"

#include <stddef.h>

#include <utf8proc.h>

bool whit_is_space(uint32_t code)
{
    if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
        code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

/* Bit sets of general categories. utf8proc numbers the categories from 0 (Cn) to 29 (Co). */
#define LETTERS                                                                                                        \
    (1u << UTF8PROC_CATEGORY_LU | 1u << UTF8PROC_CATEGORY_LL | 1u << UTF8PROC_CATEGORY_LT |                            \
     1u << UTF8PROC_CATEGORY_LM | 1u << UTF8PROC_CATEGORY_LO)
#define MARKS   (1u << UTF8PROC_CATEGORY_MN | 1u << UTF8PROC_CATEGORY_MC | 1u << UTF8PROC_CATEGORY_ME)
#define NUMBERS (1u << UTF8PROC_CATEGORY_ND | 1u << UTF8PROC_CATEGORY_NL | 1u << UTF8PROC_CATEGORY_NO)
#define PUNCTUATION                                                                                                    \
    (1u << UTF8PROC_CATEGORY_PC | 1u << UTF8PROC_CATEGORY_PD | 1u << UTF8PROC_CATEGORY_PS |                            \
     1u << UTF8PROC_CATEGORY_PE | 1u << UTF8PROC_CATEGORY_PI | 1u << UTF8PROC_CATEGORY_PF |                            \
     1u << UTF8PROC_CATEGORY_PO)
#define SYMBOLS                                                                                                        \
    (1u << UTF8PROC_CATEGORY_SM | 1u << UTF8PROC_CATEGORY_SC | 1u << UTF8PROC_CATEGORY_SK | 1u << UTF8PROC_CATEGORY_SO)
#define WORDS (LETTERS | MARKS | 1u << UTF8PROC_CATEGORY_ND | 1u << UTF8PROC_CATEGORY_NL | 1u << UTF8PROC_CATEGORY_PC)

static bool in_categories(uint32_t code, uint32_t categories)
{
    return categories >> utf8proc_category((utf8proc_int32_t)code) & 1;
}

bool whit_is_letter(uint32_t code)
{
    if (code < 0x80) return (code | 0x20) - 'a' < 26;
    return in_categories(code, LETTERS);
}

bool whit_is_number(uint32_t code)
{
    if (code < 0x80) return code - '0' < 10;
    return in_categories(code, NUMBERS);
}

bool whit_is_mark(uint32_t code)
{
    return code >= 0x80 && in_categories(code, MARKS);
}

/* Returns whether the character is punctuation (\p{P}). */
static bool is_punctuation(uint32_t code)
{
    return in_categories(code, PUNCTUATION);
}

bool whit_is_punctuation_unicode8(uint32_t code)
{
    /* Characters that are punctuation only since later versions of Unicode. */
    static const uint32_t later[][2] = {
        {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},     {0xC84, 0xC84},
        {0x1B7D, 0x1B7E},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},   {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59},
        {0x10F86, 0x10F89}, {0x1144B, 0x1144F}, {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C},
        {0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46},
        {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71},
        {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A},
        {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F},
    };
    if (code == 0x166D) return true; /* punctuation in Unicode 8, but a symbol since Unicode 12 */
    if (!is_punctuation(code)) return false;
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (code >= later[i][0] && code <= later[i][1]) return false;
    return true;
}

bool whit_is_word(uint32_t code)
{
    if (in_categories(code, WORDS)) return true;
    /* The symbols with Other_Alphabetic (circled and squared letters) and the two joiners also count. */
    return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
        (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189) || code == 0x200C ||
        code == 0x200D;
}

/* The bytes 0-32, 127-160 and 173, which are 68 in total, are mapped to U+0100 and above, in this order. */
uint32_t whit_byte_symbol(uint8_t byte)
{
    if (byte <= 0x20) return 0x100u + byte;
    if (byte >= 0x7F && byte <= 0xA0) return 0x100u + 33 + (byte - 0x7Fu);
    if (byte == 0xAD) return 0x100u + 67;
    return byte;
}

int whit_byte_of_symbol(uint32_t code)
{
    if (code < 0x100) return whit_byte_symbol((uint8_t)code) == code ? (int)code : -1;
    uint32_t i = code - 0x100;
    if (i < 33) return (int)i;
    if (i < 67) return (int)(i - 33 + 0x7F);
    return i == 67 ? 0xAD : -1;
}
