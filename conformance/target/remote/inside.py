"""The process in which a Python target is worked with: its main thread is the target's, another one asks and judges."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from json import dumps
from typing import Any, BinaryIO

import numpy as np

from ...errors import Stopped
from ...model import Call, LoadedCase
from ..base import Target
from .apart import packed

BEAT = 0.5  # seconds
HANDED = ("has", "has_gradients", "begin", "run", "refuse", "remarks", "close")  # what of a target runs its code


class Inside:
    """What the process tells of its work, and its main thread, which makes every call of the target."""

    def __init__(self, secret: str, stream: BinaryIO) -> None:
        self._secret, self._stream, self._process = secret, stream, os.getpid()
        self._one_at_a_time = threading.Lock()
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._busy = self.interrupted = False

    def tell(self, word: str, value: Any = None) -> None:
        """Tell the process that waits; a copy of this process, which a target may make, ends instead."""
        if os.getpid() != self._process:
            os._exit(1)
        message = dumps({"secret": self._secret, "word": word, "value": packed(value)}).encode() + b"\n"
        with self._one_at_a_time:
            self._stream.write(message)
            self._stream.flush()

    def hand(self, function: Callable[..., Any], *arguments: Any, word: str = "enter", **options: Any) -> Any:
        """Return what a function gives in the main thread, on whose stack nothing stands that is expected."""
        if self.interrupted:
            raise KeyboardInterrupt
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.tell(word)
        self._jobs.put((answer, function, arguments, options))
        result, error = answer.get()
        if self.interrupted:
            raise KeyboardInterrupt
        self.tell("leave")
        if isinstance(error, KeyboardInterrupt):  # of the target's own
            raise Stopped(verdict="error", message="KeyboardInterrupt")
        if error is not None:
            raise error
        return result

    def load(self, loading: Callable[..., Target], *arguments: Any, **options: Any) -> Target:
        """Return the target that `loading` returns, loaded and asked in the main thread."""
        target: Target = self.hand(loading, *arguments, word="load", **options)
        for name in HANDED:
            setattr(target, name, self._handed(getattr(target, name)))
        return target

    def _handed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def handed(*arguments: Any) -> Any:
            return self.hand(method, *map(_asked, arguments))

        return handed

    def work(self, task: Callable[[], None]) -> None:
        """Do a task in another thread, and what it hands over in this one, until it is done."""
        signal.signal(signal.SIGINT, self._interrupt)
        threading.Thread(target=self._do, args=(task,), daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()
        while True:
            try:
                answer, function, arguments, options = self._jobs.get()
            except BaseException:  # an interruption, or what a handler of the target's raises
                continue
            if function is None:
                return
            result, error = None, None
            self._busy = True
            try:
                result = function(*arguments, **options)
            except BaseException as raised:  # whatever it is, the thread that asks has to know
                error = raised
            self._busy = False
            answer.put((result, error))

    def _do(self, task: Callable[[], None]) -> None:
        try:
            task()
        finally:
            self._jobs.put((None, None, None, None))

    def _beat(self) -> None:
        """Tell twice a second that this process lives: it does not where a thread of the target's lets no other run."""
        while True:
            time.sleep(BEAT)
            self.tell("beat")

    def _interrupt(self, *_: Any) -> None:
        self.interrupted = True
        if self._busy:
            raise KeyboardInterrupt


def _asked(value: Any) -> Any:
    """Return a case or a call without the values that are expected: of those, shapes and dtypes alone."""
    if isinstance(value, LoadedCase):
        return replace(value, calls=tuple(map(_asked, value.calls)))
    if isinstance(value, Call):
        expected = {n: np.broadcast_to(np.zeros((), v.dtype), v.shape) for n, v in value.expected.items()}
        return replace(value, expected=expected, intermediates={}, widths={})
    return value
