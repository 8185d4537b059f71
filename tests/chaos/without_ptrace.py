"""Runs a command under a seccomp filter that refuses what looks into another process, as container runtimes do:

    without_ptrace.py COMMAND ARGUMENTS…

ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd and perf_event_open then fail with EPERM, for the
command and for all that it starts.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

# The numbers of these calls, and the name of the architecture in struct seccomp_data.
ARCHITECTURES = {
    "x86_64": (0xC000003E, (101, 310, 311, 312, 438, 298)),
    "aarch64": (0xC00000B7, (117, 270, 271, 272, 438, 241)),
}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def program():
    architecture, numbers = ARCHITECTURES[platform.machine()]
    lines = [instruction(LOAD, 4), instruction(JUMP_IF_EQUAL, architecture, 1, 0), instruction(RETURN, ALLOW),
             instruction(LOAD, 0)]
    for left, number in zip(range(len(numbers), 0, -1), numbers):
        lines.append(instruction(JUMP_IF_EQUAL, number, left, 0))
    return b"".join(lines + [instruction(RETURN, ALLOW), instruction(RETURN, FAIL | errno.EPERM)])


def main():
    code = program()
    text = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0):
        sys.exit(f"without_ptrace.py: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


main()
