/* SPDX-License-Identifier: MIT */
#ifndef WHIT_KERNELS_PREFETCH_DISTANCES_H
#define WHIT_KERNELS_PREFETCH_DISTANCES_H

/* Distances in bytes at which the lines of a sequential read are prefetched, into L2 and then into L1. */
typedef struct prefetch_distances {
    unsigned l2_bytes, l1_bytes;
} prefetch_distances;

/* Distances for several streams, and for one stream on processors where no others were measured to be faster. */
#define PREFETCH_USUAL ((prefetch_distances){8192, 4096})

#endif
