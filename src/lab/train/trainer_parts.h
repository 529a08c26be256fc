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
    const whit_model *start, *teacher_model; /* the models given: the student's start; the teacher or NULL */
    whit_trainee teacher, student;
    whit_tape teacher_tape, student_tape;
    whit_corpus text, held_out;
    whit_loss loss;
    whit_pool *pool;
    whit_progress progress;
    uint32_t n_rows;
    int32_t *ids, *targets; /* (n_rows) */
    uint64_t begun_ns;
    uint32_t n_windows;    /* windows of a measurement; 0: all */
    uint32_t n_batch;      /* sequences of a pass: those of a batch, or of a unit if ranks share a step */
    uint32_t n_passes;     /* passes of a step, of all ranks */
    uint64_t n_operations; /* number of operations that the current step has completed */
    whit_tree tree;        /* gradients of the units that ranks share */
    double measured_s;     /* time of the last measurement, if the run's length is a time */
};

#endif
