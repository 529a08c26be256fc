/* SPDX-License-Identifier: MIT
 * Embeds files in the program: the assembler puts a file's bytes among the constants, on every architecture alike. */
#ifndef WHIT_BASE_EMBED_H
#define WHIT_BASE_EMBED_H

#define WHIT_EMBED_TEXT_(text) #text
#define WHIT_EMBED_TEXT(text)  WHIT_EMBED_TEXT_(text)
#define WHIT_EMBED_PREFIX      WHIT_EMBED_TEXT(__USER_LABEL_PREFIX__)

#if defined(_WIN32)
#define WHIT_EMBED_BEGIN      ".section .rdata,\"dr\"\n"
#define WHIT_EMBED_HIDE(name) ""
#define WHIT_EMBED_END        ".text\n"
#elif defined(__APPLE__)
#define WHIT_EMBED_BEGIN      ".section __TEXT,__const\n"
#define WHIT_EMBED_HIDE(name) ".private_extern " WHIT_EMBED_PREFIX name "\n"
#define WHIT_EMBED_END        ".text\n"
#else
#define WHIT_EMBED_BEGIN      ".pushsection .rodata\n"
#define WHIT_EMBED_HIDE(name) ".hidden " name "\n"
#define WHIT_EMBED_END        ".popsection\n"
#endif

#define WHIT_EMBED_LABEL(name) ".globl " WHIT_EMBED_PREFIX name "\n" WHIT_EMBED_HIDE(name) WHIT_EMBED_PREFIX name ":\n"

/* Defines NAME_begin and NAME_end around the bytes of the file `file` (both arguments are string constants; use the
 * macro at file scope). The including source declares NAME_begin and NAME_end as const arrays. NAME_begin is aligned to
 * 64 bytes, and a zero byte follows the file's last byte. */
#define WHIT_EMBED_FILE(name, file)                                                                                    \
    __asm__(WHIT_EMBED_BEGIN ".balign 64\n" WHIT_EMBED_LABEL(name "_begin") ".incbin \"" file "\"\n" WHIT_EMBED_LABEL( \
        name "_end") ".byte 0\n" WHIT_EMBED_END)

#endif
