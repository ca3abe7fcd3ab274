"""The definition on every array library: right within derived bounds, and in the caller's library, device and dtype."""

import functools
import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
from array_api_compat import device as device_of
from conftest import LIBRARIES, Library, opened
from sample import smoke

from posref.conformance.calls import makes_constants, returns_reals
from posref.conformance.errors import Failure, Stopped
from posref.conformance.judge import compare, errors
from posref.conformance.model import LoadedCase
from posref.conformance.targets.python import load_python
from posref.core import arrays
from posref.spec import REGISTRY

from .encoding import Encoding, part

FEW = ("jax", "jax_x64", "dask")  # the smoke case in one dtype: thorough tests ask every case of every operation
EVERY = 28  # of so many operations one is asked here on JAX and Dask
DEVICES = ("device1", "no_float64")  # of array-api-strict; the second stands in for hardware without float64
NEWER = ("2024.12", "2025.12")  # versions of the standard


def asked_here(library: str, op: str) -> bool:
    """Return whether a plain run asks an operation of a library: few of them of the slow ones."""
    return library not in FEW or (library != "jax_x64" and list(REGISTRY).index(op) % EVERY == 0)


@part(dear=True)
def values_on_every_library(encoding: Encoding) -> None:
    """Values within their bounds, dtype, namespace, device, inputs left alone, and bits that repeat."""
    for name in LIBRARIES:
        if asked_here(name, encoding.op):
            with opened(name) as library:
                on_a_library(encoding, library)


def on_a_library(encoding: Encoding, library: Library) -> None:
    """Ask the sampled cases, or of slow libraries the smoke case, in every dtype."""
    with ExitStack() as stack:
        if library.name == "array_api_strict":
            stack.enter_context(strictest())
        for case in (encoding.smoke,) if library.name in FEW else encoding.sample:
            for dtype in asked_dtypes(library, encoding.op):
                with encoding.at(f"{library.name} | {dtype} | {case.id}"):
                    assert_right(library, case, dtype, encoding.function)


@part(dear=True)
def results_stay_on_the_device(encoding: Encoding) -> None:
    import array_api_strict as strict

    for device in DEVICES:
        with opened("array_api_strict", strict.Device(device)) as library:
            for case in encoding.sample:
                with encoding.at(f"{device} | float32 | {case.id}"):
                    assert_right(library, case, "float32", encoding.function)


@part()
def newer_versions_of_the_standard(encoding: Encoding) -> None:
    for version in NEWER:
        with strictest(version), opened("array_api_strict") as library, encoding.at(f"{version} | {encoding.smoke.id}"):
            assert_right(library, encoding.smoke, "float32", encoding.function)


# ---- one call -------------------------------------------------------------------------------------------------------------
def never(*_: Any, **__: Any) -> None:
    raise AssertionError("a graph was computed")


def building(library: Library) -> AbstractContextManager[Any]:
    """Return a context in which nothing may be computed, where the library is lazy."""
    if library.name != "dask":
        return nullcontext()
    import dask

    return dask.config.set(scheduler=never)


def assert_right(library: Library, case: LoadedCase, dtype: str, function: Any = None) -> None:
    """Assert all that must be true of one call in one dtype: values, dtype, namespace, device, inputs, bits that repeat."""
    op, where = case.op, f"{case.id} in {dtype} on {library.name}"
    function, results = function or REGISTRY[op].function, []

    @functools.wraps(function)
    def noted(*given: Any, **options: Any) -> Any:
        if makes_constants(op):
            made = {"xp": library.xp, "dtype": library.dtype(dtype), "device": library.device}
            options |= {name: value for name, value in made.items() if name in inspect.signature(function).parameters}
        with building(library):
            found = function(*given, **options)
        results.extend(found if isinstance(found, tuple) else (found,))
        return found

    target = load_python(SimpleNamespace(**{op: noted}), backend=library.backend.name, device=library.device)
    here = library.array(np.asarray([1.0]), "float32")
    (call,) = case.calls
    try:
        outputs = target.run(case, call, dtype)
    except (Failure, Stopped) as error:
        raise AssertionError(f"{where}: {error}") from error
    for result in results:
        if not isinstance(result, float):
            assert arrays.namespace(result) is arrays.namespace(here), where
            assert device_of(result) == device_of(here), where
    accuracy = "float64" if dtype == "float64" else "angle64"
    if makes_constants(op) and dtype == "float32":  # the vectors ask for what they are before they are stored
        for name, value in outputs.items():
            error, width = errors(op, call, name, value, accuracy, dtype)
            assert np.all(error <= width + 2.0**-24 * (np.abs(call.expected[name]) + width)), f"{where}: {name} {value}"
        return
    worst = compare(op, call, outputs, accuracy, dtype)
    assert worst is None, f"{where}: {worst}"


def assert_smoke_is_right(library: Library, op: str) -> None:
    """Ask the smoke case alone."""
    for dtype in asked_dtypes(library, op):
        assert_right(library, smoke(op), dtype)


def asked_dtypes(library: Library, op: str) -> tuple[str, ...]:
    """Return the dtypes in which an operation is tried: integers and masks are the same in all, constants never narrow."""
    if not returns_reals(op):
        return ("float32",)
    wanted = ("float64", "float32") if makes_constants(op) else ("float64", "float32", "float16", "bfloat16")
    if library.name in FEW:
        wanted = ("float64",) if library.name == "jax_x64" else ("float32",)
    elif library.name == "array_api_strict" and library.device is None:
        wanted = ("float64",)  # its devices are asked in float32
    return tuple(dtype for dtype in wanted if dtype in library.dtypes)


@contextmanager
def strictest(version: str = "2023.12") -> Iterator[None]:
    """Have array-api-strict refuse whatever the standard leaves open: 2023.12 is the floor, and no shape depends on data."""
    import array_api_strict as strict

    strict.set_array_api_strict_flags(boolean_indexing=False, data_dependent_shapes=False, enabled_extensions=())
    strict.set_array_api_strict_flags(api_version=version)
    try:
        yield
    finally:
        strict.reset_array_api_strict_flags()
