/* SPDX-License-Identifier: MIT
 * Declares the parts of a trainer for trainer.c and its tests. */
#ifndef WHIT_TRAIN_TRAINER_PARTS_H
#define WHIT_TRAIN_TRAINER_PARTS_H

#include "train/loss.h"
#include "train/tape.h"
#include "train/trainer.h"

struct whit_trainer {
    whit_trainer_options options;
    const whit_allocator *allocator;
    const whit_model *start, *teacher_model; /* models that were given: the student's start; the teacher, or NULL */
    whit_trainee teacher, student;
    whit_tape teacher_tape, student_tape;
    whit_corpus text, held_out;
    whit_loss loss;
    whit_pool *pool;
    whit_progress progress;
    uint32_t n_rows;
    int32_t *ids, *targets; /* (n_rows) */
    uint64_t begun_ns;
    uint32_t n_windows;    /* number of windows in a measurement; 0: all */
    uint32_t n_batch;      /* number of sequences in a pass: in a batch, or in a unit if ranks share a step (tree.h) */
    uint32_t n_passes;     /* number of passes in a step, on all ranks together */
    uint64_t n_operations; /* number of operations that the current step has completed */
    whit_tree tree;        /* gradients of this rank's units; unused without ranks */
    double measured_s;     /* estimated time of the last measurement, in a run of limited time; otherwise 0 */
};

#endif
