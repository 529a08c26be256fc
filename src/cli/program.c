/* SPDX-License-Identifier: MIT */
#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "format/ndf.h"
#include "lang/core/binary.h"
#include "lang/jit/jit.h"

#define AT(member) offsetof(cli_program_flags, member)
const cli_option cli_program_options[] = {
    {"--limit-ms", CLI_COUNT, AT(limit_ms), "N", "Stop after N ms of processor time; 0, the default, is no limit.", 0,
     4000000000},
    {"--limit-mb", CLI_COUNT, AT(limit_mb), "N",
     "Megabytes that the program's arrays may take together; 64 by default.", 1, 1 << 20},
    {"--every-round", CLI_FLAG, AT(every_round), NULL, "Execute every round of a loop that has a closed form, too.", 0,
     0},
    {0},
};

static bool print(void *user, const char *text, size_t n_bytes)
{
    return cli_write_data(user, text, n_bytes);
}

int cli_program_tier(const cli_call *call, int *tier)
{
    const char *given = getenv("WHIT_TIER");
    *tier = WHIT_LANG_NATIVE;
    if (!given || !*given) return CLI_OK;
    if (strlen(given) != 1 || *given < '0' || *given > '2')
        return cli_fail(call, CLI_USAGE, "WHIT_TIER is 0 (tree walker), 1 (closures) or 2 (machine code), not '%s'",
                        given);
    *tier = *given - '0';
    return CLI_OK;
}

int cli_program_open(cli_call *call, const cli_program_flags *flags, bool echo, cli_program *program)
{
    whit_cpu cpu;
    whit_error error;
    int tier;
    *program = (cli_program){0};
    int status = cli_program_tier(call, &tier);
    if (status != CLI_OK) return status;
    whit_cpu_detect(&cpu);
    if (whit_quat_select(&cpu, getenv("WHIT_CPU"), &program->kernels, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    whit_lang_options options = {.max_ms = flags->limit_ms,
                                 .max_bytes = (size_t)flags->limit_mb << 20,
                                 .tier = tier,
                                 .jit = whit_lang_jit_native(),
                                 .no_closed_forms = flags->every_round,
                                 .echo = echo,
                                 .quat = &program->kernels,
                                 .print = print,
                                 .user = call,
                                 .cancel = cli_cancelled()};
    if (whit_lang_open(&options, &program->lang, &error) != WHIT_OK) return cli_fail_error(call, &error);
    return CLI_OK;
}

void cli_program_close(cli_program *program)
{
    whit_lang_close(program->lang);
}

enum { SHOWN_MAX = 200 };

/* Prints on stderr the line of a program's text in which `place` is, and a caret under it. Prints nothing if the place
 * is unknown or the line has more than SHOWN_MAX bytes. */
static void show_place(const char *text, size_t n_bytes, whit_lang_place place)
{
    size_t at = 0;
    for (uint32_t line = 1; line < place.line && at < n_bytes; at++) line += text[at] == '\n';
    size_t end = at;
    while (end < n_bytes && text[end] != '\n') end++;
    if (!place.line || !place.column || place.column > end - at + 1 || end - at > SHOWN_MAX) return;
    char shown[SHOWN_MAX + 1], caret[SHOWN_MAX + 2]; /* the place may be after the end of the line */
    size_t n = 0;
    for (; at < end; at++) {
        bool is_plain = text[at] >= 32 && text[at] < 127;
        shown[n] = is_plain ? text[at] : '?';
        if (text[at] == '\t') shown[n] = ' ';
        n++;
    }
    memset(caret, ' ', place.column);
    shown[n] = 0;
    caret[place.column - 1] = '^';
    caret[place.column] = 0;
    fprintf(stderr, "    %s\n    %s\n", shown, caret);
}

int cli_program_fail(cli_call *call, const cli_program *program, const char *text, size_t n_bytes,
                     const whit_error *error)
{
    whit_error told = *error; /* a copy to which the option's name is added; the language's messages do not mention
                               * options */
    bool limited = error->status == WHIT_ERROR_LIMIT;
    const char *option = "";
    if (limited && strstr(error->message, " bytes together, which is the limit"))
        option = " (--limit-mb)";
    else if (limited && strstr(error->message, " ms of processor time; that is the limit"))
        option = " (--limit-ms)";
    strncat(told.message, option, sizeof told.message - strlen(told.message) - 1);
    cli_flush(call);
    int status = cli_fail_error(call, &told);
    show_place(text, n_bytes, whit_lang_failed_at(program->lang));
    return status;
}

/* Reads the last PROGRAM frame of an .ndf, which is a program in binary form. */
static whit_status read_frame(const char *path, whit_buf *bytes, whit_error *error)
{
    whit_ndf *ndf;
    whit_ndf_appended frame = {0}, last = {0};
    WHIT_TRY(whit_ndf_begins_loose(path) ? whit_ndf_open_loose(path, NULL, &ndf, error)
                                         : whit_ndf_open(path, NULL, &ndf, error));
    whit_status status = WHIT_OK;
    for (uint32_t i = 0; i < whit_ndf_n_appended(ndf) && status == WHIT_OK; i++) {
        if (whit_ndf_appended_type(ndf, i) != WHIT_NDF_PROGRAM) continue;
        status = whit_ndf_appended_at(ndf, i, &frame, error);
        last = frame;
    }
    if (status == WHIT_OK && !last.data) status = whit_fail(error, WHIT_ERROR_FORMAT, "%s: contains no program", path);
    if (status == WHIT_OK && !whit_buf_append(bytes, last.data, last.size_bytes))
        status = whit_fail_memory(error, path, last.size_bytes);
    whit_ndf_close(ndf);
    return status;
}

static bool is_binary(const char *data, size_t n)
{
    size_t n_magic = strlen(WHIT_LANG_BINARY_MAGIC);
    return n >= n_magic && memcmp(data, WHIT_LANG_BINARY_MAGIC, n_magic) == 0;
}

/* Returns whether reading should continue. It stops at the magic of an .ndf, and beyond the maximum size of a
 * program. */
static bool wants_more(const char *data, size_t n)
{
    enum { BINARY_MAX_BYTES = 192 << 20 };
    if (whit_ndf_has_magic(data, n)) return false;
    return n <= (is_binary(data, n) ? BINARY_MAX_BYTES : WHIT_LANG_MAX_TEXT_BYTES);
}

int cli_read_program(cli_call *call, const char *path, cli_text *text)
{
    whit_buf bytes = {0}, decoded = {0};
    whit_error error;
    uint8_t root[WHIT_HASH_BYTES];
    int status = cli_read_text_while(call, path, wants_more, text);
    if (status != CLI_OK) return status;
    bool is_ndf = whit_ndf_has_magic(text->data, text->size_bytes);
    const bool is_stdin = !strcmp(path, "-");
    if (!is_ndf && !is_binary(text->data, text->size_bytes)) return CLI_OK;
    whit_status done = WHIT_OK;
    if (is_ndf && is_stdin)
        done = whit_fail(&error, WHIT_ERROR_ARGUMENT,
                         "stdin: an .ndf cannot be read from standard input: give the file's path");
    else if (is_ndf)
        done = read_frame(path, &bytes, &error);
    else if (!whit_buf_append(&bytes, text->data, text->size_bytes))
        done = whit_fail_memory(&error, path, text->size_bytes);
    const char *name = is_stdin ? "stdin" : path;
    if (done == WHIT_OK) done = whit_lang_decode(name, bytes.data, bytes.size_bytes, &decoded, root, &error);
    free(text->data);
    *text =
        (cli_text){.data = done == WHIT_OK ? malloc(decoded.size_bytes + 1) : NULL, .size_bytes = decoded.size_bytes};
    if (done == WHIT_OK && !text->data) done = whit_fail_memory(&error, path, decoded.size_bytes);
    if (done == WHIT_OK) {
        if (decoded.size_bytes) memcpy(text->data, decoded.data, decoded.size_bytes);
        text->data[decoded.size_bytes] = 0;
    }
    whit_buf_free(&bytes);
    whit_buf_free(&decoded);
    return done == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

int cli_read_family(cli_call *call, const char *path, cli_text *text)
{
    int status = cli_read_program(call, path, text);
    if (status != CLI_OK) return status;
    if (!memchr(text->data, 0, text->size_bytes)) return CLI_OK;
    free(text->data);
    text->data = NULL;
    return cli_fail(call, CLI_REFUSED, "%s: contains a zero byte, so it is not a program's text", path);
}

int cli_family_fail(cli_call *call, const char *path, const cli_text *text, const whit_error *error)
{
    size_t n = strlen(path);
    whit_lang_place place = {0, 0};
    int status = cli_fail_error(call, error);
    if (strncmp(error->message, path, n) == 0 &&
        sscanf(error->message + n, ":%u:%u: ", &place.line, &place.column) == 2)
        show_place(text->data, text->size_bytes, place);
    return status;
}
