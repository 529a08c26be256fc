/* SPDX-License-Identifier: MIT
 * Declares functions of the operating system beyond POSIX: system_linux.c, macos, wasm and windows implement them, and
 * the build chooses one. A missing feature is reported by the result; nothing here is fatal. */
#ifndef WHIT_BASE_SYSTEM_H
#define WHIT_BASE_SYSTEM_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/cpu.h"

/* ---- the program ---------------------------------------------------------------------------- */

/* Prepares the process and is called first in main: arguments become UTF-8, standard streams binary, a console shows
 * UTF-8 and colours, and no file can get the number of a standard stream that is closed. *argv is replaced where the
 * system gives another form. */
void whit_system_begin(int *argc, char ***argv);
/* Allocates memory aligned to a power of two, of a multiple of that size; NULL if out of memory. */
void *whit_system_alloc(size_t size_bytes, size_t alignment_bytes);
void whit_system_free(void *memory);
/* Spreads the pages of the range that are not in use yet over all NUMA nodes, in turn: for memory that threads of every
 * node read. The result is false, and nothing changes, on a machine with one node or if the system refuses. */
bool whit_system_interleave(void *memory, size_t size_bytes);

/* Returns a number that differs from run to run: random, or derived from the time if the system has no random
 * numbers. */
uint64_t whit_system_draw(void);
/* Opens a pipe for waking a thread that polls: reading and writing never wait, no child inherits it. The result is
 * false on failure, with errno. */
bool whit_system_pipe(int ends[2]);
/* Returns the number of columns that a character takes in this system's terminals; -1 if it is not shown. On POSIX
 * systems this depends on the locale. */
int whit_system_columns(uint32_t code);
/* Returns whether a file can be replaced, renamed and cut while it is mapped. */
bool whit_system_replaces_mapped(void);

/* ---- threads -------------------------------------------------------------------------------- */

#define WHIT_NO_TIMEOUT UINT64_MAX

/* Waits until the thread is woken, *word is not `expected`, or timeout_ns have passed; it may also return
 * spuriously. */
void whit_word_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
/* Wakes up to n threads that wait on the word. */
void whit_word_wake(_Atomic uint32_t *word, uint32_t n);

/* Names the calling thread, for debuggers. */
void whit_thread_name(const char *name);
/* Returns the logical processor that the calling thread runs on. */
unsigned whit_thread_processor(void);
/* Binds a thread to a logical processor; only a hint. */
void whit_thread_pin(pthread_t thread, unsigned processor);
/* Moves the calling thread to a logical processor, where it stays until the scheduler moves it again; only a hint. Its
 * affinity is as before afterwards, and it is not moved to a processor that this excludes. */
void whit_thread_move(unsigned processor);

/* ---- the machine ---------------------------------------------------------------------------- */

/* Returns the lowest logical processor of the physical core that `processor` belongs to; itself if unknown. */
unsigned whit_processor_core(unsigned processor);
/* Fills n_logical, n_cores and core_cpu: the processors that this process may use. */
void whit_system_cores(whit_cpu *cpu);
/* Returns the number of processors whose time the system's limits leave to this process; 0: no limit. */
double whit_system_quota(void);
/* Asks for the state of the tile registers (AMX); false if it is refused. */
bool whit_system_tiles(void);
/* Return whether the processor has one of Arm's optional instructions. */
bool whit_system_has_dotprod(void);
bool whit_system_has_i8mm(void);
/* Returns whether the kernel lets programs use RISC-V's vectors of version 1.0. */
bool whit_system_has_vectors(void);

#endif
