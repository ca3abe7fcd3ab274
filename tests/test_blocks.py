"""Blocks and strips: the same bits as all at once, on every vector and on drawn calls, and only where they may be used."""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample import stored
from sampling import few

from posref import alibi, apply_rope, attention, axial_rope, rope, rope_frequencies, rope_table, t5_bias
from posref.core import blocks, decoder, pairs, strips
from posref.core.arrays import once
from posref.scaling import YaRN
from posref.spec import REGISTRY


def _evaluated_by(module: str) -> list[str]:
    return [op for op, record in REGISTRY.items() if record.arrays and module in _around(record.function)]


def _around(function: Any) -> list[str]:
    """Return the last two parts of the files of a function and of all that it wraps."""
    wrapped = getattr(function, "__wrapped__", None)
    return ["/".join(Path(function.__code__.co_filename).parts[-2:]), *(_around(wrapped) if wrapped else [])]


DIVIDED, UNROLLED = _evaluated_by("core/blocks.py"), _evaluated_by("core/strips.py")
INV_FREQ = rope_frequencies(16, base=100.0)[0]


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Divide every call into blocks of a row or two, and list how many indices each took of an array."""
    seen: list[int] = []
    taken = blocks.taken

    def counted(array: Any, from_the_right: int, start: int, stop: int) -> Any:
        seen.append(stop - start)
        return taken(array, from_the_right, start, stop)

    for name, value in {"CACHE": 64, "ROWS": 1, "BLOCKS": 1}.items():
        monkeypatch.setattr(blocks, name, value)
    monkeypatch.setattr(blocks, "taken", counted)
    for name, value in {"BLOCK": 16, "LEAST": 1, "HEADS": 0}.items():
        monkeypatch.setattr(pairs, name, value)
    for name, value in {"HEADS": 1 << 30, "FEW": 0}.items():
        monkeypatch.setattr(decoder, name, value)
    return seen


@pytest.fixture
def unrolled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Evaluate every call in strips, and list the shapes of these."""
    seen: list[tuple[int, ...]] = []
    unroll = strips._unrolled

    def counted(strip: Any, queries: int) -> Any:
        seen.append(tuple(strip.shape))
        return unroll(strip, queries)

    monkeypatch.setattr(strips, "LEAST", 1)
    monkeypatch.setattr(strips, "_unrolled", counted)
    return seen


def bits(result: Any) -> list[Any]:
    """Return dtype, shape and bytes of every output."""
    outputs = result if isinstance(result, tuple) else (result,)
    return [(str(x.dtype), tuple(x.shape), _bytes(x)) for x in outputs]


def _bytes(x: Any) -> bytes:
    if isinstance(x, torch.Tensor):
        return bytes(x.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return bytes(x.tobytes())


def same(function: Callable[..., Any], *arrays: Any, **options: Any) -> None:
    """Assert that a definition gives the bits, or the error, of the function that it wraps, with pairs rotated as written."""

    def found(of: Callable[..., Any]) -> Any:
        try:
            return bits(of(*arrays, **options))
        except (ValueError, TypeError) as error:
            return type(error), str(error)

    result = found(function)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_is_plain", lambda *arrays: False)
        assert result == found(inspect.unwrap(function))


def same_when_off(function: Callable[..., Any], *arrays: Any, **options: Any) -> None:
    """Assert that blocks give the bits that a definition has without them, where only its helpers are divided."""
    found = bits(function(*arrays, **options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "ON", False)
        assert found == bits(function(*arrays, **options))


def test_what_is_divided() -> None:
    assert {"apply_rope", "rope", "rope_table", "sinusoidal", "axial_rope", "mrope"} <= set(DIVIDED)
    assert {"alibi", "t5_bias"} <= set(UNROLLED)


@few(1, "dtype", ["float32", "bfloat16"])
@few(1, "op", DIVIDED)
def test_every_vector_has_the_same_bits(op: str, dtype: str, count: list[int]) -> None:
    every_vector(op, dtype)
    assert max(count) > 0


def every_vector(op: str, dtype: str) -> None:
    """Compare the calls of all cases of values."""
    record = REGISTRY[op]
    for case in stored(op):
        for call in case.calls if case.kind == "value" else ():
            arrays = [np.asarray(call.inputs[name]) if name in call.inputs else call.params[name] for name in _given(op)]
            options = {name: value for name, value in call.params.items() if name not in _given(op)}
            for k, name in enumerate(_given(op) if dtype == "bfloat16" else ()):
                if isinstance(arrays[k], np.ndarray):  # of reals alone in half precision
                    tensor = torch.as_tensor(arrays[k])
                    reals = name in record.arrays and record.arrays[name].kind == "real"
                    arrays[k] = tensor.to(torch.bfloat16) if reals else tensor
            same(record.function, *arrays, **options)


def _given(op: str) -> list[str]:
    parameters = inspect.signature(REGISTRY[op].function).parameters.values()
    return [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]


@pytest.mark.thorough
@pytest.mark.parametrize("op", ["attention", "attention_logits"])
def test_every_vector_of_attention_has_the_same_bits(op: str, count: list[int]) -> None:
    """The rows of its softmax are divided, with the bias, the mask and the sinks. The products are not: sums may differ."""
    for case in stored(op):
        for call in case.calls if case.kind == "value" else ():
            arrays = {name: np.asarray(x) for name, x in call.inputs.items()}
            for make in (np.asarray, torch.as_tensor):
                given = [make(arrays[name]) for name in _given(op)]
                others = {name: make(x) for name, x in arrays.items() if name not in _given(op)}
                same_when_off(REGISTRY[op].function, *given, **others, **call.params)
    assert max(count) > 0


@pytest.mark.thorough
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_drawn_attention_has_the_same_bits(data: st.DataObject, count: list[int]) -> None:
    """Of heads that share keys, with a bias, a mask and sinks that broadcast, or without them. Arguments keep their values."""
    rng, sizes = np.random.default_rng(data.draw(st.integers(0, 9))), st.integers(1, 40)
    q_count, k_count, batch = data.draw(sizes), data.draw(sizes), data.draw(st.integers(1, 3))
    q, k, v = (rng.standard_normal((batch, h, n, 8)).astype(np.float32) for h, n in ((4, q_count), (2, k_count), (2, k_count)))
    cut = st.sampled_from([(batch, 4, q_count, k_count), (4, 1, k_count), (q_count, 1), (k_count,), ()])
    bias = data.draw(st.none() | cut.map(lambda shape: np.asarray(rng.standard_normal(shape), dtype=np.float32)))
    mask = data.draw(st.none() | cut.map(lambda shape: np.asarray(rng.random(shape) < 0.6)))
    sinks = data.draw(st.none() | st.just(rng.standard_normal(4).astype(np.float32)))
    for make in (np.asarray, lambda x: torch.as_tensor(x).clone()):
        given = [make(x) for x in (q, k, v)]
        options = {name: make(x) for name, x in (("bias", bias), ("mask", mask), ("sinks", sinks)) if x is not None}
        before = [bits(x) for x in (*given, *options.values())]
        same_when_off(attention, *given, **options, scale=data.draw(st.none() | st.just(0.3)))
        assert [bits(x) for x in (*given, *options.values())] == before


@pytest.mark.parametrize("of", ["q", "k", "v", "bias", "sinks"])
def test_gradients_of_attention_are_of_the_definition(of: str, count: list[int]) -> None:
    drawn = torch.Generator().manual_seed(0)
    shapes = {"q": (4, 20, 8), "k": (4, 9, 8), "v": (4, 9, 8), "bias": (20, 9), "sinks": (4,)}
    given = {name: torch.randn(shape, generator=drawn) for name, shape in shapes.items()}
    mask, found = torch.rand(20, 9, generator=drawn) < 0.6, []
    for on in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks, "ON", on)
            leaf = given[of].clone().requires_grad_()
            q, k, v, bias, sinks = (given | {of: leaf}).values()
            (attention(q, k, v, bias=bias, mask=mask, sinks=sinks) ** 2).sum().backward()
            found.append(bits(leaf.grad))
    assert found[0] == found[1]
    assert bool(count) == (of in ("v", "sinks"))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_drawn_shapes_and_views_have_the_same_bits(data: st.DataObject, count: list[int]) -> None:
    """Of queries in both orders of axes, cut out, reversed and transposed, with tables that broadcast."""
    heads, tokens, seed = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 40)), data.draw(st.integers(0, 9))
    x = np.random.default_rng(seed).standard_normal((2, heads, 2 * tokens, 24)).astype(np.float32)[:, :, ::-2]
    positions = np.arange(tokens) * 1000
    if data.draw(st.booleans()):
        x, positions = np.swapaxes(x, 1, 2), positions[:, None]
    layout = data.draw(st.sampled_from(["half", "interleaved", "interleaved_to_half"]))
    same(apply_rope, x, *rope_table(positions, INV_FREQ[:6], dtype=np.float32), layout=layout)
    same(rope, x, positions, layout=layout, base=10.0)
    same(rope, torch.as_tensor(x.copy()).to(torch.float16), torch.as_tensor(positions), layout=layout, base=10.0)
    same(axial_rope, x[0], np.stack([positions, positions]), layout=layout, arrangement="blocks", dims=(8, 16), base=10.0)


@pytest.mark.parametrize("block", [2, 3, 7, 32])
def test_every_size_of_a_block_has_the_same_bits(block: int, count: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "CACHE", block * 3 * 24 * 4)
    x = np.random.default_rng(0).standard_normal((3, 65, 24)).astype(np.float32)
    same(rope, x, np.arange(65), layout="half", base=10.0)
    assert block in count
    same(rope_table, np.arange(65.0) * 0.37, INV_FREQ, dtype=np.float32)


@pytest.mark.parametrize("heads", [5, 6, 7])
def test_no_block_has_a_single_index(heads: int, count: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """An axis of one broadcasts: positions (T, 1) fit (B, T, H) for several heads alone."""
    monkeypatch.setattr(pairs, "BLOCK", 1 << 19)  # a rotation has checked that before
    x = np.random.default_rng(0).standard_normal((2, 3, heads, 24)).astype(np.float32)
    same(rope, x, np.arange(3)[:, None], layout="half", base=10.0)
    assert min(count) > 1


@pytest.mark.parametrize("wrong", [(5, 8), (4, 9), (2, 3, 4, 8)])
def test_an_error_has_the_shapes_of_the_call(wrong: tuple[int, ...], count: list[int]) -> None:
    same(apply_rope, np.ones((4, 16)), np.ones(wrong), np.ones(wrong), layout="half")
    same(rope, np.ones((4, 16)), np.arange(4, dtype=np.float16), layout="half", base=10.0)


def test_gradients_transforms_and_graphs_are_of_the_definition(count: list[int]) -> None:
    """A gradient, a forward derivative, vmap and make_fx give what they give without blocks; graphs have no blocks in them."""
    from torch.fx.experimental.proxy_tensor import make_fx

    x, positions = torch.randn(3, 20, 16, generator=torch.Generator().manual_seed(0)), torch.arange(20)

    def of(function: Callable[..., Any]) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: function(x, positions, layout="half", base=10.0)

    ours, plain = of(rope), of(inspect.unwrap(rope))
    assert torch.equal(torch.func.vmap(ours)(x), plain(x))
    for pair in zip(torch.func.jvp(ours, (x,), (x,)), torch.func.jvp(plain, (x,), (x,)), strict=True):
        assert torch.equal(*pair)
    gradients = [torch.func.grad(lambda x, f=f: (f(x) ** 2).sum())(x) for f in (ours, plain)]
    assert torch.equal(*gradients)
    leaf = x.clone().requires_grad_()
    count.clear()
    (ours(leaf) ** 2).sum().backward()
    assert leaf.grad is not None
    assert torch.equal(leaf.grad, gradients[0])
    assert len(make_fx(ours)(x).graph.nodes) < 60


def test_threads_may_call_at_once(count: list[int]) -> None:
    x = np.random.default_rng(0).standard_normal((3, 65, 24)).astype(np.float32)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: bits(rope(x, np.arange(65), layout="half", base=10.0)), range(32)))
    assert found == [bits(inspect.unwrap(rope)(x, np.arange(65), layout="half", base=10.0))] * 32


def test_blocks_are_turned_off_by_the_environment() -> None:
    code = "from posref.core import blocks; print(blocks.ON)"
    for value, expected in (("0", "False"), ("1", "True")):
        run = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"POSREF_BLOCKS": value}, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == expected


def test_constants_are_computed_once_and_belong_to_the_caller() -> None:
    calls = []

    @once
    def constants(dim: int, *, factor: Any = None) -> tuple[np.ndarray, int]:
        calls.append(factor)
        return np.arange(dim), dim

    first, _ = constants(3, factor=YaRN(factor=2.0, original_length=64))
    first[:] = 7
    assert constants(3, factor=YaRN(factor=2.0, original_length=64))[0].tolist() == [0, 1, 2]
    assert len(calls) == 1
    for other in (1, 1.0, True, "1", YaRN(factor=2, original_length=64)):  # equal numbers of other types are other calls
        constants(3, factor=other)
    assert len(calls) == 6
    constants(3, factor=np.ones(2))
    constants(3, factor=np.ones(2))
    assert len(calls) == 8


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("op", UNROLLED)
def test_every_vector_has_the_same_bits_by_strips(op: str, dtype: str, unrolled: list[tuple[int, ...]]) -> None:
    every_vector(op, dtype)
    assert max(shape[-1] for shape in unrolled) > 2


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(q=st.integers(1, 9), k=st.integers(1, 9), starts=st.tuples(*2 * [st.sampled_from([-3, 0, 5, 10**6, 2**30])]))
def test_drawn_positions_have_the_same_bits_by_strips(q: int, k: int, starts: Any, unrolled: list[Any]) -> None:
    queries, keys = np.arange(q) + starts[0], (np.arange(k) + starts[1]).astype(np.int32)
    for xp, bfloat16 in ((np.asarray, np.float16), (torch.as_tensor, torch.bfloat16)):
        for form in ("distance", "causal", "key"):
            same(alibi, xp(queries), xp(keys), heads=6, form=form, dtype=bfloat16)
        same(alibi, xp(queries), xp(keys) * 1.0, heads=6, form="distance")
        same(t5_bias, xp(queries), xp(keys), xp(np.arange(32.0).reshape(8, 4)), bidirectional=True, max_distance=9)
        same(t5_bias, xp(queries), xp(keys), xp(np.ones((7, 4))), bidirectional=True)
    same(alibi, queries[::-1], keys, heads=2, form="causal")
    same(alibi, queries, keys * 2, heads=2, form="causal")
    same(alibi, queries.astype(np.uint8), keys.astype(np.int8), heads=2, form="causal")


@pytest.mark.parametrize("first", [-(2**31), 2**31 - 9])
def test_strips_at_the_ends_of_32_bits_have_the_same_bits(first: int, unrolled: list[Any]) -> None:
    """A strip reaches below the first key and beyond the last query."""
    positions = np.arange(first, first + 9).astype(np.int32)
    for form in ("distance", "causal"):
        same(alibi, positions, positions, heads=6, form=form)
    same(t5_bias, positions, positions, np.arange(32.0).reshape(8, 4), bidirectional=True)


def test_strips_are_not_of_gradients_transforms_and_graphs(unrolled: list[Any]) -> None:
    positions, table = torch.arange(6), torch.ones(32, 2, requires_grad=True)
    t5_bias(positions, positions, table, bidirectional=True).sum().backward()
    assert table.grad is not None
    assert not unrolled
    with torch.no_grad():
        learned = t5_bias(positions, positions, torch.nn.Parameter(table), bidirectional=True)
    assert bits(learned) == bits(t5_bias(positions, positions, table.detach(), bidirectional=True))
    assert len(unrolled) == 2
    unrolled.clear()
    ask = torch.func.vmap(lambda p: alibi(p, p, heads=2, form="distance", dtype=torch.float32))
    assert bits(ask(torch.stack([positions, positions * 3]))[0]) == bits(alibi(positions, positions, heads=2, form="distance"))
    assert len(unrolled) == 1
    compiled = torch.compile(lambda p: alibi(p, p, heads=2, form="distance"), backend="eager", fullgraph=True)
    assert bits(compiled(positions)) == bits(alibi(positions, positions, heads=2, form="distance"))
    assert len(unrolled) == 2
    result = alibi(positions, positions, heads=2, form="distance", dtype=torch.bfloat16)
    scale = torch.ones((), dtype=torch.bfloat16, requires_grad=True)
    result.mul_(scale).sum().backward()  # it may be changed in place
    assert scale.grad is not None
