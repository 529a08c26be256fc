/* SPDX-License-Identifier: MIT
 * The page at /: one file, within the program. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "server/endpoints.h"

/* The assembler puts the file's bytes among the constants, on every architecture alike. */
__asm__(".pushsection .rodata\n"
        ".globl whit_page_begin\n"
        ".hidden whit_page_begin\n"
        "whit_page_begin:\n"
        ".incbin \"" WHIT_PAGE_FILE "\"\n"
        ".globl whit_page_end\n"
        ".hidden whit_page_end\n"
        "whit_page_end:\n"
        ".byte 0\n"
        ".popsection\n");
extern const char whit_page_begin[], whit_page_end[];

/* Writes 'sha256-...' of the text between the tags, so that a browser runs this script and no other. */
static void hash_between(const char *open, const char *close, char text[sodium_base64_ENCODED_LEN(32, 1)])
{
    uint8_t hash[crypto_hash_sha256_BYTES] = {0};
    const char *begin = strstr(whit_page_begin, open), *end = begin ? strstr(begin, close) : NULL;
    if (end) {
        begin += strlen(open);
        crypto_hash_sha256(hash, (const uint8_t *)begin, (size_t)(end - begin));
    }
    sodium_bin2base64(text, sodium_base64_ENCODED_LEN(32, 1), hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
}

void whit_page_open(whit_site *site)
{
    char script[sodium_base64_ENCODED_LEN(32, 1)], style[sodium_base64_ENCODED_LEN(32, 1)];
    hash_between("<script>", "</script>", script);
    hash_between("<style>", "</style>", style);
    snprintf(site->page_policy, sizeof site->page_policy,
             "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; img-src data:; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             script, style);
}

void whit_page_get(whit_call *call)
{
    const whit_site *site = call->site;
    whit_web_reply *reply = call->reply;
    const char *const headers[] = {"Content-Security-Policy", site->page_policy, "X-Content-Type-Options", "nosniff",
                                   "Referrer-Policy",         "no-referrer"};
    memcpy(reply->headers + 2 * reply->n_headers, headers, sizeof headers);
    reply->n_headers += sizeof headers / sizeof headers[0] / 2;
    bool ok = whit_buf_append(&reply->body, whit_page_begin, (size_t)(whit_page_end - whit_page_begin));
    reply->status = ok ? 200 : 500;
    reply->type = "text/html; charset=utf-8";
}
