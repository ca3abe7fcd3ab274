"""
The limits of a target: seconds of a call, memory of its processes, its file, restarts, and printed bytes.

`supervisor.py` sets the limit of memory in the target's process. It imports the standard library alone, so its own
patience stands there.
"""

TIMEOUT = 30.0  # seconds for a call
START_GRACE = 10  # times the timeout of a call, to start
GOODBYE = 2.0  # seconds to end after stop
MEMORY = 8.0  # GiB that the processes of a target may hold together
SOURCE = 1 << 21  # bytes of a Python file, which Python compiles in 400 times its memory
RESTARTS = 10  # in one check; a target that needs more is not asked further
NOISE, LINE = 1 << 26, 1 << 8  # bytes of lines that are no messages, before one; and as how many more each line counts
REPEATED = 100_000  # bytes of standard error that are written on
TAIL = 4096  # bytes of standard error that are kept
START_REPLY = 1 << 20  # bytes of a line, besides tensors
BYTES_PER_VALUE = 24  # of a reply in JSON: twice what binary64 takes in base64
