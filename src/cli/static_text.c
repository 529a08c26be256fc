/* SPDX-License-Identifier: MIT
 * Converts and classifies characters in the static program. The C library reads its rules for UTF-8 from locale files,
 * which may be missing on a system (Alpine, NixOS, containers). The linker's --wrap redirects the functions by which
 * libedit and ncurses convert and classify characters to the functions below, which always use UTF-8 and the classes of
 * utf8proc. The functions keep no state: both libraries pass whole characters, or pass the beginning of a character
 * again. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>
#include <wchar.h>
#include <wctype.h>

#define INVALID    ((size_t)-1)
#define INCOMPLETE ((size_t)-2)

char *__real_nl_langinfo(nl_item item);
char *__wrap_setlocale(int category, const char *name);
char *__wrap_nl_langinfo(nl_item item);
size_t __wrap___ctype_get_mb_cur_max(void);
size_t __wrap_mbrtowc(wchar_t *wide, const char *text, size_t n, mbstate_t *state);
int __wrap_mbtowc(wchar_t *wide, const char *text, size_t n);
int __wrap_mblen(const char *text, size_t n);
size_t __wrap_mbstowcs(wchar_t *wide, const char *text, size_t n);
size_t __wrap_wcrtomb(char *text, wchar_t wide, mbstate_t *state);
int __wrap_wctomb(char *text, wchar_t wide);
size_t __wrap_wcsrtombs(char *text, const wchar_t **wide, size_t n, mbstate_t *state);
size_t __wrap_wcstombs(char *text, const wchar_t *wide, size_t n);
wint_t __wrap_btowc(int byte);
int __wrap_wctob(wint_t wide);
int __wrap_wcwidth(wchar_t wide);
int __wrap_iswprint(wint_t wide);
int __wrap_iswgraph(wint_t wide);
int __wrap_iswalpha(wint_t wide);
int __wrap_iswalnum(wint_t wide);
int __wrap_iswlower(wint_t wide);
int __wrap_iswupper(wint_t wide);
int __wrap_iswspace(wint_t wide);
int __wrap_iswcntrl(wint_t wide);
wint_t __wrap_towlower(wint_t wide);
wint_t __wrap_towupper(wint_t wide);

char *__wrap_setlocale(int category, const char *name)
{
    static char utf8[] = "C.UTF-8";
    (void)category, (void)name;
    return utf8;
}

char *__wrap_nl_langinfo(nl_item item)
{
    static char utf8[] = "UTF-8";
    return item == CODESET ? utf8 : __real_nl_langinfo(item);
}

size_t __wrap___ctype_get_mb_cur_max(void)
{
    return 4;
}

/* ---- conversion ---------------------------------------------------------------------------------- */

/* Returns whether text[0..n), n > 0, can be the beginning of a UTF-8 character that has more than n bytes. */
static bool is_beginning(const char *text, size_t n)
{
    const unsigned char first = (unsigned char)text[0];
    size_t n_bytes = 1;
    if (first >= 0xF0 && first < 0xF5)
        n_bytes = 4;
    else if (first >= 0xE0 && first < 0xF0)
        n_bytes = 3;
    else if (first >= 0xC2)
        n_bytes = 2;
    if (first >= 0xF5 || n >= n_bytes) return false;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80) return false;
    return true;
}

size_t __wrap_mbrtowc(wchar_t *wide, const char *text, size_t n, mbstate_t *state)
{
    utf8proc_int32_t code;
    (void)state;
    if (!text) return 0;
    if (!n) return INCOMPLETE;
    utf8proc_ssize_t taken = utf8proc_iterate((const utf8proc_uint8_t *)text, n < 4 ? (utf8proc_ssize_t)n : 4, &code);
    if (taken <= 0) {
        if (is_beginning(text, n)) return INCOMPLETE;
        errno = EILSEQ;
        return INVALID;
    }
    if (wide) *wide = code;
    return code ? (size_t)taken : 0;
}

int __wrap_mbtowc(wchar_t *wide, const char *text, size_t n)
{
    size_t taken = __wrap_mbrtowc(wide, text, n, NULL);
    return taken >= INCOMPLETE ? -1 : (int)taken;
}

int __wrap_mblen(const char *text, size_t n)
{
    return __wrap_mbtowc(NULL, text, n);
}

size_t __wrap_mbstowcs(wchar_t *wide, const char *text, size_t n)
{
    size_t n_written = 0;
    for (wchar_t one; !wide || n_written < n; n_written++) {
        size_t taken = __wrap_mbrtowc(&one, text, strnlen(text, 4) + 1, NULL);
        if (taken >= INCOMPLETE) return INVALID;
        if (wide) wide[n_written] = one;
        if (!taken) break;
        text += taken;
    }
    return n_written;
}

size_t __wrap_wcrtomb(char *text, wchar_t wide, mbstate_t *state)
{
    (void)state;
    if (!text) return 1;
    utf8proc_ssize_t n = utf8proc_encode_char((utf8proc_int32_t)wide, (utf8proc_uint8_t *)text);
    if (n > 0 && utf8proc_codepoint_valid(wide)) return (size_t)n;
    errno = EILSEQ;
    return INVALID;
}

int __wrap_wctomb(char *text, wchar_t wide)
{
    return text ? (int)__wrap_wcrtomb(text, wide, NULL) : 0;
}

size_t __wrap_wcsrtombs(char *text, const wchar_t **wide, size_t n, mbstate_t *state)
{
    const wchar_t *at = *wide;
    size_t n_written = 0;
    (void)state;
    for (char one[4];; at++) {
        size_t n_bytes = __wrap_wcrtomb(one, *at, NULL);
        if (n_bytes == INVALID) return INVALID;
        if (text && n_written + n_bytes > n) break;
        if (text) memcpy(text + n_written, one, n_bytes);
        if (!*at) {
            at = NULL;
            break;
        }
        n_written += n_bytes;
    }
    if (text) *wide = at;
    return n_written;
}

size_t __wrap_wcstombs(char *text, const wchar_t *wide, size_t n)
{
    return __wrap_wcsrtombs(text, &wide, n, NULL);
}

wint_t __wrap_btowc(int byte)
{
    return byte >= 0 && byte < 0x80 ? (wint_t)byte : WEOF;
}

int __wrap_wctob(wint_t wide)
{
    return wide < 0x80 ? (int)wide : -1;
}

/* ---- classes ------------------------------------------------------------------------------------- */

static utf8proc_category_t category_of(wint_t wide)
{
    return wide <= 0x10FFFF ? utf8proc_category((utf8proc_int32_t)wide) : UTF8PROC_CATEGORY_CN;
}

int __wrap_iswcntrl(wint_t wide)
{
    utf8proc_category_t category = category_of(wide);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

int __wrap_iswprint(wint_t wide)
{
    utf8proc_category_t category = category_of(wide);
    return category != UTF8PROC_CATEGORY_CN && category != UTF8PROC_CATEGORY_CS && !__wrap_iswcntrl(wide);
}

int __wrap_wcwidth(wchar_t wide)
{
    if (!wide) return 0;
    return wide > 0 && __wrap_iswprint((wint_t)wide) ? utf8proc_charwidth(wide) : -1;
}

int __wrap_iswspace(wint_t wide)
{
    return (wide >= '\t' && wide <= '\r') || wide == 0x85 ||
        (category_of(wide) == UTF8PROC_CATEGORY_ZS && wide != 0xA0) || category_of(wide) == UTF8PROC_CATEGORY_ZL ||
        category_of(wide) == UTF8PROC_CATEGORY_ZP;
}

int __wrap_iswgraph(wint_t wide)
{
    return __wrap_iswprint(wide) && !__wrap_iswspace(wide);
}

int __wrap_iswalpha(wint_t wide)
{
    utf8proc_category_t category = category_of(wide);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

int __wrap_iswalnum(wint_t wide)
{
    utf8proc_category_t category = category_of(wide);
    return __wrap_iswalpha(wide) || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

int __wrap_iswlower(wint_t wide)
{
    return category_of(wide) == UTF8PROC_CATEGORY_LL;
}

int __wrap_iswupper(wint_t wide)
{
    return category_of(wide) == UTF8PROC_CATEGORY_LU;
}

wint_t __wrap_towlower(wint_t wide)
{
    return wide <= 0x10FFFF ? (wint_t)utf8proc_tolower((utf8proc_int32_t)wide) : wide;
}

wint_t __wrap_towupper(wint_t wide)
{
    return wide <= 0x10FFFF ? (wint_t)utf8proc_toupper((utf8proc_int32_t)wide) : wide;
}
