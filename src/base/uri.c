/* SPDX-License-Identifier: MIT */
#include "base/uri.h"

#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool whit_uri_to_path(const char *uri, char *path, size_t path_bytes)
{
    size_t n = 0;
    if (strncasecmp(uri, "file://", 7)) return false;
    uri += 7;
    if (!strncasecmp(uri, "localhost/", 10)) uri += 9;
    if (*uri != '/') return false;
    for (; *uri; uri++) {
        int byte = (uint8_t)*uri;
        if (byte == '%') {
            int high = whit_hex_digit((uint8_t)uri[1]), low = high < 0 ? -1 : whit_hex_digit((uint8_t)uri[2]);
            if (low < 0) return false;
            byte = high << 4 | low;
            uri += 2;
        }
        if (!byte || n + 1 >= path_bytes) return false;
        path[n++] = (char)byte;
    }
    path[n] = 0;
    return true;
}

bool whit_uri_of_path(const char *path, char *uri, size_t uri_bytes)
{
    size_t n = (size_t)snprintf(uri, uri_bytes, "file://");
    for (; *path; path++) {
        bool plain = (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') || strchr("/-._~", *path) ||
            (*path >= '0' && *path <= '9');
        if (n + 4 > uri_bytes) return false;
        n += (size_t)snprintf(uri + n, uri_bytes - n, plain ? "%c" : "%%%02X", (uint8_t)*path);
    }
    return true;
}
