"""
The process between posref and a program that it runs: sets the limits, and leaves no process of the program behind.

A script, ``python -I -S supervisor.py LIFELINE BYTES PROGRAM [ARGS]``, that imports the standard library alone.
LIFELINE is a pipe whose other end only posref holds: when it closes, because posref let go or died of whatever, the program and
all that it started are killed, also what left its session. BYTES limits the private memory of every process, the memory of all
together, and the size of every file; 0 is no limit. When the program ends, what it started is killed too, and this process ends
as the program did.
"""

import atexit
import ctypes
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable

try:
    import resource
except ImportError:  # not on Windows, where this is imported and never run
    resource = None  # type: ignore[assignment]

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PATIENCE = 2.0  # seconds for killed processes to end; one in an uninterruptible call may take for ever
LOOK = 500  # milliseconds between two looks at the memory of all processes
MEMORY_FILES = ("/memfd:", "/dev/shm/")  # where a process has files that take memory and no disk
LINUX = sys.platform == "linux"


def main(lifeline: int, limit: int, command: list[str] | Callable[[], object]) -> None:
    """Run the program until it ends or the lifeline closes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGTERM, signal.SIGHUP):  # a copy of posref has its handlers
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans of the program become children of this process
    os.set_inheritable(lifeline, False)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    program = os.fork()
    if not program:
        become(limit, command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # posref is interrupted, and then lets go
    let_go_of_pipes()
    events = select.poll()
    for end in (lifeline, wake):
        events.register(end, select.POLLIN)
    status = None
    wait = LOOK if limit and LINUX else None
    while status is None:
        ready = [end for end, _ in events.poll(wait)]
        if lifeline in ready:
            break
        if wake in ready:
            os.read(wake, 512)
            status = reap(program)
        elif limit and memory() > limit:
            status = signal.SIGKILL  # as the system ends what takes too much
    sweep(program)
    end_as(status)


def become(limit: int, command: list[str] | Callable[[], object]) -> None:
    """Turn this new process into the program."""
    try:
        os.setsid()
        if LINUX:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # should the program kill its supervisor
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program would inherit that
        if limit:
            # private writable memory: RLIMIT_AS also counts address space that is only reserved, and stops WebAssembly and CUDA
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
            most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]  # a limit that the user set stays
            most = limit if most == resource.RLIM_INFINITY else min(limit, most)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))  # the file of replies is in memory
        if not isinstance(command, list):
            signal.signal(signal.SIGINT, signal.default_int_handler)
            work(command)
        else:
            os.execvp(command[0], command)
    except BaseException as error:
        what = repr(command[0]) if isinstance(command, list) else "the target"
        os.write(2, f"posref: cannot run {what}: {error}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(127)


def work(command: Callable[[], object]) -> None:
    """Call a function in place of a program, and end as Python does."""
    code = 1
    try:
        command()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        os._exit(code)


def let_go_of_pipes() -> None:
    """Put a pipe that nobody uses in the place of the program's pipes, so that posref sees their end when the program ends."""
    reader, writer = os.pipe()
    for standard, nothing in enumerate((reader, writer, writer)):
        os.dup2(nothing, standard)


def reap(program: int) -> int | None:
    """Collect processes that have ended; return the program's status if it is among them."""
    status = None
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == program:
            status = how
        if not pid:
            return status


def sweep(program: int) -> None:
    """Kill everything that descends from the program."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for pid in descendants() if LINUX else [-program]:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        reap(program)
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        time.sleep(0.002)


def memory() -> int:
    """Return the bytes that all processes below this one hold; of one alone what it could share, since the rest has a limit."""
    processes = below(os.getpid())
    private = mapped = 0
    for pid in processes:
        if len(processes) > 1:  # its part of what it shares with its copies, which takes longer to have
            anonymous, shared = in_lines(pid, "smaps_rollup", b"Pss_Anon:", b"Pss_Shmem:")
        else:
            anonymous, [shared] = 0, in_lines(pid, "status", b"RssShmem:")
        private, mapped = private + anonymous, mapped + shared
    return private + max(mapped, in_files(processes))


def in_lines(pid: int, name: str, *heads: bytes) -> list[int]:
    """Return the bytes that lines of a process's file in /proc state, by how the lines begin."""
    sums = dict.fromkeys(heads, 0)
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            for line in file:
                head, *rest = line.split()
                if head in sums:
                    sums[head] = int(rest[0]) << 10
    except OSError:  # it has ended
        pass
    return list(sums.values())


def in_files(pids: list[int]) -> int:
    """Return the bytes of the files in memory that processes have open."""
    sizes = {}
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                place = f"/proc/{pid}/fd/{name}"
                if os.readlink(place).startswith(MEMORY_FILES):
                    status = os.stat(place)
                    sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
        except OSError:  # it has ended, or closed one
            continue
    return sum(sizes.values())


def below(pid: int) -> list[int]:
    """Return the processes that descend from one, by the system's lists of children."""
    processes = [pid]
    for one in processes:  # grows while it is read
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children", "rb") as file:
                    processes += map(int, file.read().split())
        except OSError:  # it has ended, or the system has no such lists
            continue
    return processes[1:]


def descendants() -> list[int]:
    """Return the processes that descend from this one."""
    parent_of = parents()
    processes = [os.getpid()]
    for pid in processes:  # grows while it is read
        processes += [child for child, parent in parent_of.items() if parent == pid]
    return processes[1:]


def parents() -> dict[int, int]:
    """Return the parent of every process."""
    parent_of = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent_of[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):  # it has ended
                continue
    return parent_of


def end_as(status: int | None) -> None:
    """End with the program's exit code, or by the signal that ended it."""
    if status is not None and os.WIFSIGNALED(status):
        if os.WTERMSIG(status) not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status) if status is not None else 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
