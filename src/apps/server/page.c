/* SPDX-License-Identifier: MIT
 * Serves the web page at /, its manifest and its icon, three files that are part of the program. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "server/endpoints.h"
#include "server/replies.h"

WHIT_EMBED_FILE("whit_page", WHIT_PAGE_FILE);
WHIT_EMBED_FILE("whit_manifest", WHIT_MANIFEST_FILE);
WHIT_EMBED_FILE("whit_icon", WHIT_ICON_FILE);
extern const char whit_page_begin[], whit_page_end[], whit_manifest_begin[], whit_manifest_end[], whit_icon_begin[],
    whit_icon_end[];

/* Writes the SHA-256 hash, in base64, of the page's text between two tags. The page's policy contains it, so that a
 * browser runs only this script and uses only this style. */
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
             "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; img-src 'self'; "
             "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             script, style);
}

/* Replies with the bytes [begin, end) as a file of this content type. */
static void reply_file(whit_web_reply *reply, const char *begin, const char *end, const char *type)
{
    whit_reply_header(reply, "X-Content-Type-Options", "nosniff");
    reply->status = whit_buf_append(&reply->body, begin, (size_t)(end - begin)) ? 200 : 500;
    reply->type = type;
}

void whit_page_get(whit_call *call)
{
    whit_reply_header(call->reply, "Content-Security-Policy", call->site->page_policy);
    whit_reply_header(call->reply, "Referrer-Policy", "no-referrer");
    reply_file(call->reply, whit_page_begin, whit_page_end, "text/html; charset=utf-8");
}

void whit_manifest_get(whit_call *call)
{
    reply_file(call->reply, whit_manifest_begin, whit_manifest_end, "application/manifest+json");
}

void whit_icon_get(whit_call *call)
{
    reply_file(call->reply, whit_icon_begin, whit_icon_end, "image/svg+xml");
}
