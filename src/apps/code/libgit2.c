/* SPDX-License-Identifier: MIT */
#include "code/libgit2.h"

#include "whit_config.h"

#include <dlfcn.h>

bool whit_libgit2_load(whit_libgit2 *api)
{
    void *library = dlopen(WHIT_GIT2_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool whole = library != NULL;
#define LOAD(name) whole = whole && (*(void **)&api->name = dlsym(library, #name));
    WHIT_LIBGIT2(LOAD)
#undef LOAD
    return whole && api->git_libgit2_init() > 0;
}
