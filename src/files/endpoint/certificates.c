/* SPDX-License-Identifier: MIT */
#include "endpoint/certificates.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool whit_certificates_find(const char *root, char *path, size_t path_bytes, bool *is_chosen)
{
    static const char *const variables[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE"};
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* path on Debian, Ubuntu, Arch, Gentoo, NixOS */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* path on Fedora, RHEL, openSUSE */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* path on older Fedora and RHEL */
        "/etc/ssl/ca-bundle.pem",                            /* path on older openSUSE */
        "/etc/ssl/cert.pem",                                 /* path on Alpine, macOS, BSD */
        "/var/lib/ca-certificates/ca-bundle.pem",            /* path on openSUSE */
    };
    *is_chosen = false;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *chosen = getenv(variables[i]);
        if (!chosen || !*chosen) continue;
        *is_chosen = true;
        if (snprintf(path, path_bytes, "%s", chosen) < (int)path_bytes) return true;
        path[0] = 0;
        return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (snprintf(path, path_bytes, "%s%s", root, places[i]) < (int)path_bytes && access(path, R_OK) == 0)
            return true;
    path[0] = 0;
    return false;
}
