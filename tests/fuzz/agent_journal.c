/* SPDX-License-Identifier: MIT
 * Reads a journal of turns, of any bytes and then with its checksums made right; turns are listed and undone. */
#include "agent/folders.h"
#include "agent/turns.h"
#include "base/file.h"
#include "ndf_reseal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/whit-fuzz-XXXXXX", project[100], state[100];

static void clean(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    (void)!system(command);
}

static void play(const void *data, size_t n_bytes)
{
    char path[PATH_MAX];
    whit_error error;
    whit_turns *journal;
    uint32_t recovered, number = 0;
    if (whit_agent_state_path(project, state, "agent", ".ndf", path, &error) != WHIT_OK ||
        whit_write_file(path, data, n_bytes, &error) != WHIT_OK)
        return;
    if (whit_turns_open(project, state, &journal, &recovered, &error) == WHIT_OK) {
        for (uint32_t i = 0; i < whit_turns_count(journal); i++) (void)whit_turns_at(journal, i)->note[0];
        (void)whit_turns_undo(journal, &number, false, NULL, NULL, &error);
        number = 0;
        (void)whit_turns_redo(journal, &number, true, NULL, NULL, &error);
        whit_turns_close(journal);
    }
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (!*project) {
        if (!mkdtemp(folder)) return 0;
        atexit(clean);
        snprintf(project, sizeof project, "%s/project", folder);
        snprintf(state, sizeof state, "%s/state", folder);
        if (mkdir(project, 0700) != 0) return 0;
    }
    play(data, n_bytes);
    uint8_t *copy = malloc(n_bytes ? n_bytes : 1);
    if (!copy) return 0;
    memcpy(copy, data, n_bytes);
    ndf_reseal(copy, n_bytes);
    play(copy, n_bytes);
    free(copy);
    return 0;
}
