"""Is ended by a signal."""

import os
import signal

import right

right.main(lambda request: os.kill(os.getpid(), signal.SIGSEGV))
