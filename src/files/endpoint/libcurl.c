/* SPDX-License-Identifier: MIT */
#include "endpoint/libcurl.h"

#include <dlfcn.h>

bool whit_libcurl_load(whit_libcurl *api)
{
    /* The library stays loaded: the exit handlers that it has registered must exist until the process ends. */
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return false;
    /* POSIX lets a pointer from dlsym be used as a function pointer; ISO C allows this conversion only. */
    *(void **)&api->global_init = dlsym(library, "curl_global_init");
    *(void **)&api->version = dlsym(library, "curl_version");
    *(void **)&api->easy_init = dlsym(library, "curl_easy_init");
    *(void **)&api->easy_cleanup = dlsym(library, "curl_easy_cleanup");
    *(void **)&api->easy_reset = dlsym(library, "curl_easy_reset");
    *(void **)&api->setopt = dlsym(library, "curl_easy_setopt");
    *(void **)&api->getinfo = dlsym(library, "curl_easy_getinfo");
    *(void **)&api->perform = dlsym(library, "curl_easy_perform");
    *(void **)&api->slist_append = dlsym(library, "curl_slist_append");
    *(void **)&api->slist_free = dlsym(library, "curl_slist_free_all");
    bool whole = api->global_init && api->version && api->easy_init && api->easy_cleanup && api->easy_reset &&
        api->setopt && api->getinfo && api->perform && api->slist_append && api->slist_free;
    dlclose(library);
    return whole;
}

bool whit_libcurl_open(whit_libcurl *api)
{
    return whit_libcurl_load(api) && api->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}
