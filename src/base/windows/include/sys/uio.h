/* SPDX-License-Identifier: MIT
 * Adds declarations to those of base/windows/posix.h. */
#ifndef WHIT_WINDOWS_SYS_UIO_H
#define WHIT_WINDOWS_SYS_UIO_H
struct iovec {
    void *iov_base;
    size_t iov_len;
};
ssize_t writev(int fd, const struct iovec *parts, int n_parts);
#endif
