"""What surrounds a call changes no bit of it: every operation in every mode of NumPy, PyTorch and JAX that changes numbers."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import jax
import numpy as np
import pytest
import torch
from conftest import Library, opened
from sample import smoke
from sampling import few, share
from torch._subclasses import FakeTensorMode

import posref
from posref.conformance.calls import bind, differentiable, given_dtype, makes_constants, takes_dtype
from posref.core import torch_products
from posref.spec import REGISTRY

Mode = Callable[[], AbstractContextManager[Any]]


def switched(read: Callable[[], Any], write: Callable[[Any], object], value: Any) -> Mode:
    """Return a context in which a setting has a value."""

    @contextmanager
    def context() -> Iterator[None]:
        before = read()
        write(value)
        try:
            yield
        finally:
            write(before)

    return context


def tf32() -> Any:
    return torch.backends.cuda.matmul.allow_tf32


@contextmanager
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextmanager
def flushed() -> Iterator[None]:
    """Have the processor take numbers below the normal ones for 0, where it can."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


MODES: dict[str, dict[str, Mode]] = {
    "torch": {
        "autocast to bfloat16": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        "autocast to float16": lambda: torch.autocast("cpu", dtype=torch.float16),
        "products in bfloat16": switched(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"),
        "products in TF32": switched(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "high"),
        "allow_tf32": switched(tf32, lambda on: setattr(torch.backends.cuda.matmul, "allow_tf32", on), True),
        "another device": lambda: torch.device("meta"),
        "another default dtype": switched(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
        "deterministic": switched(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True),
        "inference": torch.inference_mode,
        "no gradients": torch.no_grad,
        "anomalies": torch.autograd.detect_anomaly,
        "no denormals": flushed,
    },
    "jax": {
        "bfloat16 products": lambda: jax.default_matmul_precision("bfloat16"),
        "strict promotion": lambda: jax.numpy_dtype_promotion("strict"),
        "ranks": lambda: jax.numpy_rank_promotion("raise"),
        "no NaN": lambda: jax.debug_nans(True),
        "no infinity": lambda: jax.debug_infs(True),
        "no jit": jax.disable_jit,
        "leaks": jax.checking_leaks,
        "no transfers": lambda: jax.transfer_guard("disallow"),
    },
    "numpy": {"errors": lambda: np.errstate(all="raise"), "warnings": warnings_are_errors},
}
EACH = [
    pytest.param(library, mode, marks=[pytest.mark.thorough] if library == "jax" else [])
    for library, modes in MODES.items()
    for mode in modes
]


def call_of(library: Library, op: str, dtype: str) -> Callable[[], list[Any]]:
    """Return the smoke case of an operation as a call on a library."""
    call = smoke(op).calls[0]
    arrays = {n: library.array(x, None if x.dtype.kind in "biu" else given_dtype(op, n, dtype)) for n, x in call.inputs.items()}
    positional, keywords = bind(op, arrays, call.params)
    if takes_dtype(op):
        keywords["dtype"] = library.dtype(dtype)
    if makes_constants(op):
        keywords |= {"xp": library.xp} | ({"device": "cpu"} if library.name == "torch" else {})

    def run() -> list[Any]:
        results = REGISTRY[op].function(*positional, **keywords)
        return list(results) if isinstance(results, tuple) else [results]

    return run


def bits(library: Library, results: list[Any]) -> list[tuple[str, bytes]]:
    """Return the dtypes and the bytes of results."""
    host = [np.asarray(library.host(x) if hasattr(x, "dtype") else x) for x in results]
    return [(str(getattr(x, "dtype", type(x))), of_x.tobytes()) for x, of_x in zip(results, host, strict=True)]


@pytest.fixture(scope="module")
def plain() -> dict[tuple[str, ...], list[tuple[str, bytes]]]:
    """The bits of every operation without a mode, computed once for each library and dtype."""
    return {}


def differing(
    library: Library, mode: Mode, plain: dict[tuple[str, ...], list[tuple[str, bytes]]], dtype: str = "float32"
) -> list[str]:
    """Return the operations whose bits a mode changes; JAX, which compiles every step of each, is asked a share of them."""
    found = []
    for op in share(REGISTRY, part=0.5) if library.name == "jax" else REGISTRY:
        key, run = (library.name, op, dtype), call_of(library, op, dtype)
        if key not in plain:
            plain[key] = bits(library, run())
        with mode():
            results = run()
        if bits(library, results) != plain[key]:
            found.append(op)
    return found


@few(4, ("name", "mode"), EACH, dear=True)
def test_every_operation_in_every_mode(name: str, mode: str, plain: Any) -> None:
    with opened(name) as library:
        assert differing(library, MODES[name][mode], plain) == []


PRODUCTS = ("attention", "shaw_scores", "dynamic_position_bias", "continuous_position_bias")
NARROW = ("autocast to bfloat16", "products in bfloat16")


def gradients(library: Library, op: str, mode: Mode = nullcontext) -> list[tuple[str, bytes]]:
    """Return the bits of the results of a smoke case and of the gradients of their sum, computed in a mode."""
    call = smoke(op).calls[0]
    arrays = {n: library.array(x, None if x.dtype.kind in "biu" else "float32") for n, x in call.inputs.items()}
    leaves = [arrays[n].requires_grad_() for n in differentiable(op, call.inputs)]
    positional, keywords = bind(op, arrays, call.params)
    with mode():
        result = REGISTRY[op].function(*positional, **keywords)
        found = torch.autograd.grad(result.sin().sum(), leaves)
    return bits(library, [result, *found])


def test_bfloat16_under_autocast_to_float16(plain: Any) -> None:
    """PyTorch joins no tensors of bfloat16 there."""
    with opened("torch") as library:
        assert differing(library, MODES["torch"]["autocast to float16"], plain, "bfloat16") == []


@pytest.mark.parametrize("mode", NARROW)
@pytest.mark.parametrize("op", PRODUCTS)
def test_gradients_of_products(op: str, mode: str) -> None:
    with opened("torch") as library:
        assert gradients(library, op, MODES["torch"][mode]) == gradients(library, op)


@few(1, "op", PRODUCTS)
def test_products_in_a_mode_would_be_seen(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's own product in their place."""
    monkeypatch.setattr(torch_products, "matmul", torch.matmul)
    with opened("torch") as library:
        assert op in differing(library, MODES["torch"]["autocast to bfloat16"], {})
        assert gradients(library, op, MODES["torch"]["autocast to bfloat16"]) != gradients(library, op)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_products(backend: str) -> None:
    q = torch.randn(1, 16, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    torch.compiler.reset()
    compiled = torch.compile(lambda x: posref.attention(x, x, x), fullgraph=True, backend=backend)

    def computed(function: Callable[[torch.Tensor], torch.Tensor], mode: Mode) -> list[torch.Tensor]:
        with mode():
            result = function(q)
            return [result, *torch.autograd.grad(result.sin().sum(), q)]

    expected = computed(lambda x: posref.attention(x, x, x), nullcontext)
    for mode, off in (("autocast to bfloat16", 0.0), ("products in bfloat16", 2.0**-20)):  # float64 there
        for got, want in zip(computed(compiled, MODES["torch"][mode]), expected, strict=True):
            assert float((got - want).abs().max()) <= off, mode


@pytest.mark.thorough
@pytest.mark.parametrize("op", REGISTRY)
def test_products_of_jax_ask_for_all_digits(op: str) -> None:
    """GPUs and TPUs narrow those that do not."""
    with opened("jax") as library:
        call = smoke(op).calls[0]
        arrays = {n: library.array(x, None if x.dtype.kind in "biu" else "float32") for n, x in call.inputs.items()}

        def function(arrays: dict[str, Any]) -> Any:
            positional, keywords = bind(op, arrays, call.params)
            return REGISTRY[op].function(*positional, **keywords)

        program = jax.make_jaxpr(function)(arrays)
    assert all(p == (jax.lax.Precision.HIGHEST,) * 2 for p in precisions(program.jaxpr))


def precisions(program: Any) -> Iterator[Any]:
    """Yield the precision of every product of a program of JAX and of the programs in it."""
    for equation in program.eqns:
        if equation.primitive.name == "dot_general":
            yield equation.params["precision"]
        for inner in jax.core.jaxprs_in_params(equation.params):
            yield from precisions(inner)


def test_threads_that_share_a_setting() -> None:
    """What one call sets for its product is not mistaken for what the user set, and comes back."""
    q = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    expected = posref.attention(q, q, q)
    with MODES["torch"]["products in bfloat16"](), ThreadPoolExecutor(4) as pool:
        same = list(pool.map(lambda _: torch.equal(posref.attention(q, q, q), expected), range(40)))
        assert torch.get_float32_matmul_precision() == "medium"
    assert all(same)


def test_tensors_without_numbers() -> None:
    shapes = torch.ones(3, 4, device="meta")
    assert posref.attention(shapes, shapes, shapes).device.type == "meta"
    with FakeTensorMode():
        fake = torch.ones(3, 4)
        assert posref.attention(fake, fake, fake).shape == (3, 4)


def test_forward_mode_and_second_derivatives() -> None:
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))

    def total(x: torch.Tensor) -> torch.Tensor:
        return posref.attention(x, x, x).sin().sum()

    with MODES["torch"]["autocast to bfloat16"]():
        tangent = torch.func.jvp(total, (x,), (x,))[1]
        second = torch.func.hessian(total)(x)
    assert torch.equal(tangent, torch.func.jvp(total, (x,), (x,))[1])
    assert torch.allclose(second, torch.func.hessian(total)(x), rtol=0, atol=2.0**-18)
