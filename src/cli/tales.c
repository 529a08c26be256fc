/* SPDX-License-Identifier: MIT */
#include "cli/tales.h"

/* The assembler includes the file's bytes as constants, on every architecture. */
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".globl cli_tales_begin\n"
        ".hidden cli_tales_begin\n"
        "cli_tales_begin:\n"
        ".incbin \"" CLI_TALES_FILE "\"\n"
        ".globl cli_tales_end\n"
        ".hidden cli_tales_end\n"
        "cli_tales_end:\n"
        ".popsection\n");
extern const uint8_t cli_tales_begin[], cli_tales_end[];

whit_status cli_tales_open(whit_model **model, whit_error *error)
{
    size_t size_bytes = (uintptr_t)cli_tales_end - (uintptr_t)cli_tales_begin;
    return whit_model_open_memory(cli_tales_begin, size_bytes, CLI_TALES_NAME, NULL, model, error);
}
