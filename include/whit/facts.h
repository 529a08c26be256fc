/* SPDX-License-Identifier: MIT
 * Gives numbers of an open model to programs that describe it. whit.h does not include this header. */
#ifndef WHIT_FACTS_H
#define WHIT_FACTS_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a number of the model by its name; -1 for an unknown name. Sizes that differ between layers are given for the
 * first layer; "window", "experts" and "experts_used" are 0 for a model without them. Names: "parameters", "bits" (of a
 * weight in the layers, scales included), "layers", "width", "feed_forward", "heads", "kv_heads", "head_width",
 * "rope_theta", "norm_epsilon", "window", "experts", "experts_used". */
WHIT_API double whit_model_number(const whit_model *model, const char *name);
/* Returns the name of the type of most weights in the model's matrices, such as "t2"; a constant string. */
WHIT_API const char *whit_model_weight_type(const whit_model *model);

#ifdef __cplusplus
}
#endif
#endif
