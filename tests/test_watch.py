"""`watch`: calls of somebody's own code are seen as they were made, judged once each, and the code is left as it was."""

import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import posref
from posref.conformance import PosrefError, check
from posref.conformance.proof.build import verify
from posref.testing import watch

OPTIONS: dict[str, Any] = {"layout": "half", "base": 10_000.0}
POSITIONS = np.arange(5) + 40


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(-64, 64, shape).astype(np.float32) / 32


def test_of_several_results_one_is_picked() -> None:
    model = SimpleNamespace(rotate=lambda x, positions: (rotate(x, positions), rotate(x, positions)))
    with watch(model, "rotate", like=like) as seen:
        model.rotate(drawn(1, 5, 8), POSITIONS)
    assert "Of several results `like` picks one: ('rope', arrays, options, 0)." in seen.report()
    with watch(model, "rotate", like=lambda x, p: [(*like(x, p), 0), (*like(x, p), 1)]) as seen:
        model.rotate(drawn(1, 5, 8), POSITIONS)
    seen.assert_conforms()


def rotate(x: Any, positions: Any, *, shift: int = 0) -> Any:
    return posref.rope(x, positions + shift, **OPTIONS)


def like(x: Any, positions: Any, *, shift: int = 0) -> Any:
    return "rope", (x, positions), OPTIONS


class Rotary:
    base = 10_000.0

    def forward(self, x: Any, positions: Any) -> Any:
        return posref.rope(x, positions, layout="half", base=self.base)

    @staticmethod
    def static(x: Any, positions: Any) -> Any:
        return rotate(x, positions)

    @classmethod
    def of_class(cls, x: Any, positions: Any) -> Any:
        return rotate(x, positions)


class Inherits(Rotary):
    pass


@pytest.fixture
def module() -> Iterator[ModuleType]:
    """Return a module of somebody's model."""
    found: Any = ModuleType("a_model")
    found.rotate, found.Rotary, found.Inherits, found.number = rotate, Rotary, Inherits, 3
    sys.modules["a_model"] = found
    yield found
    del sys.modules["a_model"]


def test_a_layer_that_must_not_rotate_is_unchanged() -> None:
    """SmolLM3's fourth layer: `like` says so, and code that rotates every layer is told."""
    code = SimpleNamespace(
        rotate=lambda x, positions, layer: rotate(x, positions) if layer != 3 or code.all else x.copy(), all=False
    )

    def by_layer(x: Any, positions: Any, layer: int) -> Any:
        return ("unchanged", [x], {}) if layer == 3 else ("rope", (x, positions), OPTIONS)

    for every, failed in ((False, 0), (True, 1)):
        code.all = every
        with watch(code, "rotate", like=by_layer) as seen:
            for layer in range(4):
                code.rotate(drawn(1, 2, 5, 8), POSITIONS, layer)
        assert len(seen.failed) == failed
        assert sum(one.op == "unchanged" for one in seen.calls) == 1
    assert "this layer must not rotate, but" in seen.report()
    with (
        watch(code, "rotate", like=lambda x, positions, layer: ("unchanged", [x, positions], {})),
        pytest.raises(PosrefError, match="'unchanged' takes one array and no options"),
    ):
        code.rotate(drawn(1, 2, 5, 8), POSITIONS, 0)


def test_calls_are_judged_by_kind_and_equal_ones_once(module: Any) -> None:
    with watch("a_model:rotate", like=like) as seen:
        for seed in (0, 0, 1):
            module.rotate(drawn(seed, 2, 5, 8), POSITIONS)
        module.rotate(drawn(0, 2, 1, 8), POSITIONS[-1:] + 9000)
    assert module.rotate is rotate
    assert [(call.op, call.dtype, call.times, call.verdict, call.fault) for call in seen.calls] == [
        ("rope", "float32", times, "pass", None) for times in (2, 1, 1)
    ]
    assert seen.calls[2].shapes == {"x": (2, 1, 8), "positions": (1,)}
    assert seen.report().splitlines() == [
        "a_model:rotate: 4 calls seen, 3 different judged; all pass",
        "  pass: rope in float32: x (2, 5, 8); positions (5,), 40 to 44; layout='half'; base=10000.0 (3 calls)",
        "  pass: rope in float32: x (2, 1, 8); positions (1,), 9044 to 9044; layout='half'; base=10000.0 (1 call)",
    ]
    seen.assert_conforms()


def test_the_wrong_call_among_right_ones_is_told(module: Any) -> None:
    with watch("a_model:rotate", like=like) as seen:
        for shift in (0, 1, 0):
            module.rotate(drawn(shift, 2, 5, 8), POSITIONS, shift=shift)
    assert [call.verdict for call in seen.calls] == ["pass", "fail"]
    assert [call.times for call in seen.failed] == [1]
    with pytest.raises(AssertionError, match=r"3 calls seen, 2 different judged; 1 did not pass\n  fail: rope") as told:
        seen.assert_conforms()
    assert re.search("diagnosis: .*position", str(told.value))
    assert "pass: rope" not in str(told.value)


def test_calls_that_fail_alike_have_one_diagnosis(module: Any) -> None:
    with watch("a_model:rotate", like=like) as seen:
        for n in (5, 4, 3):
            module.rotate(drawn(n, 2, n, 8), POSITIONS[:n], shift=1)
    assert ["diagnosis:" in str(call.fault) for call in seen.failed] == [True, False, False]
    assert all("out[" in str(call.fault) for call in seen.failed)


def test_equal_calls_with_other_results_are_judged_each(module: Any) -> None:
    with watch("a_model:rotate", like=like) as seen:
        for shift in (0, 1):
            module.rotate(drawn(0, 2, 5, 8), POSITIONS, shift=shift)
    assert [call.verdict for call in seen.calls] == ["pass", "fail"]


@pytest.mark.parametrize("path", ["Rotary.forward", "Inherits.forward", "Inherits.static", "Rotary.static", "Rotary.of_class"])
def test_methods_are_watched_and_put_back_as_they_were(module: Any, path: str) -> None:
    kind, name = path.split(".")
    owner, before = getattr(module, kind), dict(vars(getattr(module, kind)))
    takes_self = name != "static"
    with watch(f"a_model:{path}", like=lambda *given: like(*given[takes_self:])) as seen:
        getattr(owner(), name)(drawn(0, 2, 5, 8), POSITIONS)
    assert dict(vars(owner)) == before
    assert [call.verdict for call in seen.calls] == ["pass"]


def test_the_object_decides_what_a_method_is_asked() -> None:
    wrong = Rotary()
    wrong.base = 500.0
    with watch(Rotary, "forward", like=lambda self, x, p: ("rope", (x, p), {"layout": "half", "base": self.base})) as seen:
        wrong.forward(drawn(0, 2, 5, 8), POSITIONS)
    seen.assert_conforms()
    with watch(wrong, "forward", like=like) as seen:  # of this object alone, and without it among the arguments
        Rotary().forward(drawn(1, 2, 5, 8), POSITIONS)
        wrong.forward(drawn(0, 2, 5, 8), POSITIONS)
    assert [call.verdict for call in seen.calls] == ["fail"]
    assert vars(wrong) == {"base": 500.0}


def test_what_works_in_place_is_judged_by_what_it_was_given() -> None:
    def turn(x: Any, positions: Any) -> None:
        x[...] = rotate(x, positions)

    model = SimpleNamespace(turn=turn)
    with watch(model, "turn", like=lambda x, p: ("rope", (x, p), OPTIONS, lambda _: x)) as seen:
        x = drawn(0, 2, 5, 8)
        for _ in range(2):
            model.turn(x, POSITIONS)
    assert [call.verdict for call in seen.calls] == ["pass", "pass"]


def test_several_results_are_several_questions() -> None:
    def both(q: Any, k: Any, positions: Any) -> dict[str, Any]:
        return {"q": rotate(q, positions), "k": rotate(k, positions, shift=1)}

    def of_both(q: Any, k: Any, positions: Any) -> Any:
        return [("rope", (x, positions), OPTIONS, name) for name, x in (("q", q), ("k", k))]

    model = SimpleNamespace(both=both)
    with watch(model, "both", like=of_both) as seen:
        model.both(drawn(0, 4, 5, 8), drawn(1, 2, 5, 8), POSITIONS)
    assert [call.verdict for call in seen.calls] == ["pass", "fail"]


def test_shape_and_count_of_results_are_judged() -> None:
    model = SimpleNamespace(short=lambda x, p: rotate(x, p)[:, 1:], table=lambda p, f: (np.cos(p[:, None] * f),))
    with watch(model, "short", like=like) as short:
        model.short(drawn(0, 2, 5, 8), POSITIONS)
    assert str(short.failed[0].fault) == "rope: out must have shape (2, 5, 8); got (2, 4, 8)."
    with watch(model, "table", like=lambda p, f: ("rope_table", (p, f), {})) as table:
        model.table(POSITIONS, np.asarray([1.0, 0.5]))
    assert str(table.failed[0].fault) == "rope_table: must return 2 results, cos, sin; got 1."
    assert "fail: rope_table: positions (5,), 40 to 44; inv_freq (2,)" in table.report()


def test_calls_may_be_left_out_and_none_seen_is_no_pass(module: Any) -> None:
    with watch("a_model:rotate", like=lambda *given: None) as seen:
        module.rotate(drawn(0, 2, 5, 8), POSITIONS)
    assert seen.calls == ()
    with pytest.raises(AssertionError, match="a_model:rotate: no call was seen"):
        seen.assert_conforms()
    with pytest.raises(PosrefError, match="watch: no call was seen, so there is nothing to save"):
        seen.save("nowhere")


def test_a_module_that_imported_the_function_before_is_named(module: Any) -> None:
    with watch("a_model:rotate", like=like) as seen:
        rotate(drawn(0, 2, 5, 8), POSITIONS)
    assert f"It was imported elsewhere: watch {__name__}:rotate" in seen.report()


def test_errors_of_the_model_pass_through_and_the_function_is_put_back(module: Any) -> None:
    watched = watch("a_model:rotate", like=like)

    def run() -> None:
        with watched:
            module.rotate(drawn(0, 2, 5, 8), POSITIONS)
            module.rotate(drawn(0, 2, 5, 7), POSITIONS)

    with pytest.raises(ValueError, match="rope: "):
        run()
    assert module.rotate is rotate
    assert [call.verdict for call in watched.calls] == ["pass"]


def test_a_wrapper_that_outlives_the_block_does_nothing(module: Any) -> None:
    outer, inner = watch("a_model:rotate", like=like), watch("a_model:rotate", like=like)
    with outer, inner:
        held = module.rotate
        held(drawn(0, 2, 5, 8), POSITIONS)
    held(drawn(1, 2, 5, 8), POSITIONS)
    assert module.rotate is rotate
    assert [len(one.calls) for one in (outer, inner)] == [1, 1]
    with pytest.raises(PosrefError, match="a watch is used once"), outer:
        pass


def test_like_may_call_the_function_and_calls_inside_calls_are_seen(module: Any) -> None:
    def curious(x: Any, positions: Any) -> Any:
        assert module.rotate(x, positions).shape == x.shape
        return like(x, positions)

    module.twice = lambda x, p: module.rotate(module.rotate(x, p), p)
    with watch("a_model:rotate", like=curious) as seen, watch("a_model:twice", like=lambda *given: None):
        module.twice(drawn(0, 2, 5, 8), POSITIONS)
    assert [call.times for call in seen.calls] == [1, 1]


def test_calls_of_threads_are_all_counted(module: Any) -> None:
    with watch("a_model:rotate", like=like) as seen:
        work = [
            threading.Thread(target=lambda i=i: [module.rotate(drawn(i % 4, 2, 5, 8), POSITIONS) for _ in range(8)])
            for i in range(8)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert sorted(call.times for call in seen.calls) == [16, 16, 16, 16]
    seen.assert_conforms()


def test_what_is_kept_is_bounded_and_the_rest_is_counted(module: Any) -> None:
    x = np.stack([drawn(0, 1, 8)] * 400)
    x[:, 0, 0] = np.arange(400)  # so that a call tells its number
    with watch("a_model:rotate", like=like, keep=8) as seen, watch("a_model:rotate", like=like, memory=100) as small:
        for row in x:
            module.rotate(row, POSITIONS[:1])
    numbers = [int(call.call.inputs["x"][0, 0]) for call in seen.calls]
    assert numbers[:4] == [0, 1, 2, 3]
    assert len(numbers) == 8
    assert max(numbers) > 100
    assert "a_model:rotate: 400 calls seen, 8 different judged, 392 not kept; all pass" in seen.report()
    assert "400 calls seen, 1 different judged, 399 not kept" in small.report()
    room = 2 * sum(call.size for call in seen.calls)  # that of calls which made room for others is free again
    with watch("a_model:rotate", like=like, keep=8, memory=room) as tight:
        for row in x:
            module.rotate(row, POSITIONS[:1])
    assert [int(call.call.inputs["x"][0, 0]) for call in tight.calls] == numbers
    with watch("a_model:rotate", like=like, keep=1) as one:
        for row in x:
            module.rotate(row, POSITIONS[:1])
    assert [int(call.call.inputs["x"][0, 0]) for call in one.calls] == [0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_tensors_are_seen_with_their_dtype_and_gradients_go_on(dtype: torch.dtype) -> None:
    model = SimpleNamespace(rotate=rotate)
    x = torch.asarray(drawn(0, 2, 5, 8)).to(dtype).requires_grad_()
    with watch(model, "rotate", like=like) as seen:
        model.rotate(x, torch.asarray(POSITIONS)).sum().backward()
    seen.assert_conforms()
    assert [f"torch.{call.dtype}" for call in seen.calls] == [str(dtype)]
    assert x.grad is not None


def test_a_claim_is_held_to(module: Any) -> None:
    def in_float32(x: Any, positions: Any) -> Any:
        angles = positions[:, None].astype(np.float32) * np.float32(500.0) ** np.float32([0, -0.25, -0.5, -0.75])
        return posref.apply_rope(x, np.cos(angles), np.sin(angles), layout="half")

    def of_500(x: Any, positions: Any) -> Any:
        return "rope", (x, positions), OPTIONS | {"base": 500.0}

    module.rotate = in_float32
    for claim, verdict in ((None, "pass"), ("angle64", "fail"), ("low", "not-judged")):
        with watch("a_model:rotate", like=of_500, claim=claim) as seen:
            module.rotate(drawn(0, 2, 5, 8), POSITIONS + 9000)
        assert [call.verdict for call in seen.calls] == [verdict], seen.report()
    with pytest.raises(AssertionError, match=r"watch: claim must be one of .* for float32; got 'low'"):
        seen.assert_conforms()


@pytest.mark.thorough
def test_arrays_of_jax_are_seen_and_traced_ones_are_refused() -> None:
    import jax

    model, x, positions = SimpleNamespace(rotate=rotate), jax.numpy.asarray(drawn(0, 2, 5, 8)), jax.numpy.asarray(POSITIONS)
    with watch(model, "rotate", like=like) as seen:
        model.rotate(x, positions)
        with pytest.raises(PosrefError, match=r"watch: the arguments of .*rotate cannot be copied, as in code that is traced"):
            jax.jit(model.rotate)(x, positions)
    seen.assert_conforms()


@pytest.mark.thorough(dear=True)
def test_calls_of_compiled_code_are_seen() -> None:
    model = SimpleNamespace(rotate=rotate)
    x, positions = torch.asarray(drawn(0, 2, 5, 8)), torch.asarray(POSITIONS)
    compiled = torch.compile(lambda x, p: model.rotate(x, p) + 1)
    compiled(x, positions)
    with watch(model, "rotate", like=like) as seen:
        found = compiled(x, positions)
    assert torch.allclose(found, rotate(x, positions) + 1, atol=1e-5)
    seen.assert_conforms()
    assert torch.allclose(compiled(x, positions), found, atol=1e-5)


def test_empty_calls_are_no_matter(module: Any) -> None:
    with watch("a_model:rotate", like=like) as seen:
        module.rotate(drawn(0, 2, 0, 8), POSITIONS[:0])
    assert "x (2, 0, 8); positions (0,); layout" in seen.report()


@pytest.mark.thorough
def test_what_was_seen_is_saved_as_a_suite(module: Any, tmp_path: Path) -> None:
    with watch("a_model:rotate", like=like) as seen:
        module.rotate(drawn(0, 2, 5, 8), POSITIONS)
        module.rotate(drawn(0, 1, 300, 64), np.arange(300) + 7)  # of which some rows are saved
    seen.save(tmp_path / "calls")
    assert verify(tmp_path / "calls", jobs=1) == []
    report = check("posref", suite=tmp_path / "calls", op="rope")
    assert set(report.counts) == {"pass"}
    assert report.operations[0].counts["pass"] == 2


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (("a_model",), "target must be \"module:attribute\", or an object and a name; got 'a_model'."),
        (("a_model:rotate", "rotate"), 'target must be "module:attribute"'),
        ((Rotary,), "target must be .* alone"),
        (("no_such_model:rotate",), "no_such_model:rotate cannot be found: No module named 'no_such_model'"),
        (("a_model:Nothing.forward",), "a_model:Nothing.forward cannot be found"),
        (("a_model:nothing",), "target must name a function; a_model:nothing has nothing of that name"),
        (("a_model:number",), "target must name a function; a_model:number is int"),
        (("builtins:str.upper",), "builtins:str.upper cannot be replaced"),
    ],
)
def test_a_target_that_is_no_function_is_refused(module: Any, target: tuple[Any, ...], message: str) -> None:
    with pytest.raises(PosrefError, match=f"watch: {message}"), watch(*target, like=like):
        pass


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("rope", "like must return None, .*; got str."),
        (("rope", POSITIONS, OPTIONS), "like must return"),
        (("ropes", (POSITIONS,), OPTIONS), "op must be the name of an operation; got 'ropes'. Did you mean rope"),
        (("rope", (POSITIONS,), OPTIONS), "rope needs positions; give the arguments"),
    ],
)
def test_an_answer_that_is_no_call_is_refused_where_it_is_given(module: Any, answer: Any, message: str) -> None:
    with watch("a_model:rotate", like=lambda *given: answer), pytest.raises(PosrefError, match=f"watch: {message}"):
        module.rotate(drawn(0, 2, 5, 8), POSITIONS)
    assert module.rotate is rotate


def test_a_submodule_is_watched_by_its_method() -> None:
    class Rotation(torch.nn.Module):
        def forward(self, x: Any, positions: Any) -> Any:
            return rotate(x, positions)

    model = torch.nn.Module()
    model.rotary = Rotation()
    with pytest.raises(PosrefError, match=r"Module.rotary cannot be replaced: .*Name the method"):
        watch(model, "rotary", like=like).__enter__()
    with watch(model.rotary, "forward", like=like) as seen:
        model.rotary(torch.asarray(drawn(0, 2, 5, 8)), torch.asarray(POSITIONS))
    assert "forward" not in vars(model.rotary)
    seen.assert_conforms()
