/* SPDX-License-Identifier: MIT
 * Declares functions of the operating system beyond POSIX: system_linux.c, macos, wasm and windows implement them, and
 * the build chooses one. A missing feature is reported by the result; nothing here is fatal. */
#ifndef WHIT_BASE_SYSTEM_H
#define WHIT_BASE_SYSTEM_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/cpu.h"

/* ---- process, memory, terminal -------------------------------------------------------------- */

/* Prepares the process and is called first in main. On Windows *argv is replaced by the arguments in UTF-8, standard
 * streams become binary, and a console shows UTF-8 and colours. On other systems no file can then get the number of a
 * standard stream that is closed. */
void whit_system_begin(int *argc, char ***argv);
/* Allocates size_bytes, a multiple of alignment_bytes (a power of two), with this alignment; NULL if memory runs
 * out. */
void *whit_system_alloc(size_t size_bytes, size_t alignment_bytes);
void whit_system_free(void *memory);
/* Distributes the pages of the range that are not in use yet over all NUMA nodes in turn, for memory that threads of
 * every node read. The result is false, and nothing changes, on a machine with one node or if the system refuses. */
bool whit_system_interleave(void *memory, size_t size_bytes);

/* Returns a number that differs from run to run: random, or derived from the time if the system has no random
 * numbers. */
uint64_t whit_system_draw(void);
/* Opens a pipe for waking a thread that polls: reading and writing never block, and no child process inherits it. The
 * result is false on failure, with errno. */
bool whit_system_pipe(int ends[2]);
/* Returns the number of terminal columns of a character; -1 if it is not printable. On POSIX systems this depends on
 * the locale. */
int whit_system_columns(uint32_t code);
/* Returns whether this system can replace, rename and truncate a file while it is mapped. */
bool whit_system_replaces_mapped(void);

/* ---- threads -------------------------------------------------------------------------------- */

#define WHIT_NO_TIMEOUT UINT64_MAX

/* Waits until another thread wakes this one through `word`, or timeout_ns have passed; returns at once if *word is not
 * `expected`, and may return spuriously. */
void whit_word_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
/* Wakes at least n of the threads that wait on the word, or all if there are fewer; it may wake more. */
void whit_word_wake(_Atomic uint32_t *word, uint32_t n);

/* Names the calling thread, for debuggers. */
void whit_thread_name(const char *name);
/* Returns the logical processor that the calling thread runs on; 0 if that is unknown. */
unsigned whit_thread_processor(void);
/* Binds a thread to a logical processor; a hint that may have no effect. */
void whit_thread_pin(pthread_t thread, unsigned processor);
/* Moves the calling thread to a logical processor, where it stays until the scheduler moves it again; a hint that may
 * have no effect. The thread's affinity is unchanged afterwards, and a processor that the affinity excludes is not
 * used. */
void whit_thread_move(unsigned processor);

/* ---- the machine ---------------------------------------------------------------------------- */

/* Returns the lowest logical processor of the physical core that `processor` belongs to; `processor` if that is
 * unknown. */
unsigned whit_processor_core(unsigned processor);
/* Sets n_logical, n_cores and core_cpu, which must be 0, from the processors that this process may use. */
void whit_system_cores(whit_cpu *cpu);
/* Returns the CPU quota of this process in processors; 0: no quota. */
double whit_system_quota(void);
/* Asks the system for permission to use the tile registers (AMX); false if it refuses. */
bool whit_system_tiles(void);
/* Return whether the processor has Arm's optional dot product or int8 matrix instructions. */
bool whit_system_has_dotprod(void);
bool whit_system_has_i8mm(void);
/* Returns whether programs can use RISC-V's vector extension, version 1.0, with vectors of at least 128 bits. */
bool whit_system_has_vectors(void);

#endif
