/* SPDX-License-Identifier: MIT
 * Runs the hub of hub_server.h as a program, for scripts: serves the regular files of a folder as one repository and
 * prints its address. Ends when its standard input ends.
 *
 *     hub_serve OWNER/NAME FOLDER [BYTES_PER_SECOND] */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "hub_server.h"

#define N_FILES_MAX 64

int main(int argc, char **argv)
{
    static struct hub_file files[N_FILES_MAX];
    static char paths[N_FILES_MAX][256];
    struct hub_repository repository = {
        .name = argc > 1 ? argv[1] : "", .files = files, .token = getenv("WANTED_TOKEN"), .licence = getenv("LICENCE")};
    DIR *folder = argc > 2 ? opendir(argv[2]) : NULL;
    const struct dirent *item;
    if (!folder) return 2;
    while ((item = readdir(folder)) && repository.n_files < N_FILES_MAX) {
        char path[1024];
        whit_buf text = {0};
        struct hub_file *file = &files[repository.n_files];
        snprintf(path, sizeof path, "%s/%s", argv[2], item->d_name);
        if (item->d_name[0] == '.' || whit_read_file(path, (size_t)256 << 20, &text, NULL) != WHIT_OK) continue;
        snprintf(paths[repository.n_files], sizeof paths[0], "%s", item->d_name);
        *file =
            (struct hub_file){.path = paths[repository.n_files++], .data = text.data, .size_bytes = text.size_bytes};
        file->is_large = file->is_elsewhere = text.size_bytes > 10000;
        file->bytes_per_s = argc > 3 && file->is_large ? (unsigned)atoi(argv[3]) : 0;
    }
    closedir(folder);
    hub_server *server = hub_server_start(&repository, true);
    if (!server) return 1;
    printf("%s\n", hub_server_address(server));
    fflush(stdout);
    for (char byte; read(STDIN_FILENO, &byte, 1) > 0;) continue;
    hub_server_stop(server);
    for (size_t i = 0; i < repository.n_files; i++)
        whit_free(NULL, (void *)(uintptr_t)files[i].data, files[i].size_bytes);
    return 0;
}
