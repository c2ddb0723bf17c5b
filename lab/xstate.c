/* Lets user-mode Linux run on processors with AMX.
 *
 * It keeps 2,696 bytes of a process's extended registers, and the host takes none but all of them (11,008 with AMX): the
 * first write fails with EFAULT, and init dies. Loaded with LD_PRELOAD, this writes the rest back as it was.
 * (arch/x86/kernel/fpu/regset.c, xstateregs_set: "A whole standard-format XSAVE buffer is needed".)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NT_X86_XSTATE 0x202
#define LARGEST 65536

long ptrace(enum __ptrace_request request, ...) {
    va_list arguments;
    va_start(arguments, request);
    pid_t pid = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);

    /* The system call returns what it peeked at by a pointer, as glibc's own wrapper hides. */
    if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
        long word = 0;
        errno = 0;
        return syscall(SYS_ptrace, request, pid, address, &word) < 0 ? -1 : word;
    }
    if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
        static __thread char whole[LARGEST];
        struct iovec asked = *(struct iovec *)data, all = {whole, sizeof whole};
        if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, address, &all) == 0 && asked.iov_len < all.iov_len) {
            memcpy(whole, asked.iov_base, asked.iov_len);
            return syscall(SYS_ptrace, request, pid, address, &all);
        }
    }
    return syscall(SYS_ptrace, request, pid, address, data);
}
