"""Conformance tests for the system calls that a sandbox filters.

Part of `fairtrial.testing.sandboxes`.
"""

from __future__ import annotations

import errno
import os
import platform
import sys

import pytest

from fairtrial.testing.sandbox_commands import CommandRunner

needs_filter = pytest.mark.skipif(
    not sys.platform.startswith("linux")
    or platform.machine() not in ("x86_64", "aarch64", "riscv64"),
    reason="no filter of system calls here",
)
needs_x86 = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64", reason="needs x86-64"
)
LIBRARY = "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"


class SystemCallConformance:
    """The tests of filtered system calls."""

    @needs_x86
    def test_calls_of_the_32_bit_abi_fail(self, runner: CommandRunner) -> None:
        code = "\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3"  # mov eax, 20 (getpid); int 0x80; ret
        program = f"""
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"{code}")
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
"""
        assert int(runner.get_output(LIBRARY + program)) == -errno.ENOSYS

    @needs_x86
    def test_calls_of_the_x32_abi_fail(self, runner: CommandRunner) -> None:
        program = "print(libc.syscall(0x40000000 + 39), ctypes.get_errno())"
        assert runner.get_output(LIBRARY + program).split() == ["-1", str(errno.ENOSYS)]

    @needs_filter
    def test_no_file_can_be_leased(self, runner: CommandRunner) -> None:
        program = """
file = os.open("file", os.O_RDWR | os.O_CREAT)
print(tried(fcntl.fcntl, file, fcntl.F_SETLEASE, fcntl.F_WRLCK), fcntl.fcntl(file, fcntl.F_GETFD))
"""
        assert runner.get_output(program).split() == ["False", "1"]

    @needs_filter
    def test_io_uring_is_refused(self, runner: CommandRunner) -> None:
        program = "print(libc.syscall(425, 8, None), ctypes.get_errno())"
        assert runner.get_output(LIBRARY + program).split() == ["-1", str(errno.ENOSYS)]

    @needs_filter
    def test_page_faults_can_t_be_handled_by_a_program(self, runner: CommandRunner) -> None:
        program = """
number = 323 if os.uname().machine == "x86_64" else 282
print(libc.syscall(number, 1), ctypes.get_errno())
"""
        assert runner.get_output(LIBRARY + program).split() == ["-1", str(errno.ENOSYS)]

    @needs_filter
    def test_timed_commands_keep_their_core_and_priority(self, runner: CommandRunner) -> None:
        core = min(os.sched_getaffinity(0))
        program = """
os.sched_setaffinity(0, range(os.cpu_count()))
os.nice(3)
print(*os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0))
"""
        before = os.getpriority(os.PRIO_PROCESS, 0)
        assert runner.get_output(program, cores=(core,)).split() == [str(core), str(before)]

    @needs_filter
    def test_other_commands_may_lower_their_priority(self, runner: CommandRunner) -> None:
        lower = min(os.getpriority(os.PRIO_PROCESS, 0) + 1, 19)  # the kernel knows no lower one
        assert int(runner.get_output("print(os.nice(1))")) == lower

    @needs_filter
    def test_timed_commands_can_t_watch_files_or_arm_kernel_timers(
        self, runner: CommandRunner
    ) -> None:
        program = """
names = ["inotify_init", "timerfd_create", "fanotify_init"]
print(*(getattr(libc, name)(0, 0) for name in names), libc.timer_create(0, None, page))
"""
        page = "page = ctypes.create_string_buffer(64)\n"
        assert runner.get_output(LIBRARY + page + program, cores=(0,)).split() == ["-1"] * 4
