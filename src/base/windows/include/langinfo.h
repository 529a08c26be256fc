/* SPDX-License-Identifier: MIT
 * Names of the locale's texts: nothing of it is used where libedit is absent. */
