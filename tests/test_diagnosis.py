"""What a diagnosis says where no single deviation explains all failures, and what it never says."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from quality import named, report_on
from sample import stored
from sampling import few

import posref
from posref.backends.rounding import round_to
from posref.conformance import Unsupported, check, check_call
from posref.conformance.checks import failure_causes
from posref.conformance.diagnosis import hypotheses
from posref.conformance.diagnosis.explanation import _blame, diagnose
from posref.conformance.diagnosis.hypotheses import JITTER, Observation, score
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.tools.deviation import contradict
from posref.conformance.experiments.cause_search import Cause
from posref.conformance.experiments.number_rules import Rule
from posref.conformance.model import Answer

Function = Callable[..., Any]
SAID = {  # by the defect's file
    "apply_strides_ignored": "Wrong with an input that is not contiguous",
    "learned_last_row": "Only the last row of the table is wrong.",
    "logits_scale_103": "the scale is 1.03 times what it should be",
    "shaw_last_row_for_first": "Only the first row of the table is wrong.",
    "sinusoidal_base_1000": "Matches the reference if base is 1000 (passed: 10000, ",
    "table_coarse_sine": "o known mistake gives these values.",
    "table_wrapped_20000": "Matches the reference if positions wrap at 20000.",
}


def told(function: Callable[..., Any], op: str) -> dict[str, Any]:
    """Return the diagnosis of a function, from stored cases alone."""
    found = check_call(function, op=op, experiments=0).operations[0].diagnosis
    assert found is not None
    return dict(found)


ROWS: list[Any] = []


def wrong(
    op: str, *says: str, starts: str = "", like: str = "", never: Sequence[str] = (), names: Any = None, thorough: bool = False
) -> Callable[[Function], Function]:
    """Return a decorator that keeps a wrong operation with what its diagnosis must say, in a row of `ROWS`."""

    def kept(function: Function) -> Function:
        marks = [pytest.mark.thorough] if thorough else []
        ROWS.append(pytest.param(function, op, says, starts, like, never, names, marks=marks, id=function.__name__))
        return function

    return kept


@pytest.mark.thorough
@few(1, "name", SAID)
def test_a_defect_without_a_name_is_told(name: str) -> None:
    (found,) = [op.diagnosis for op in report_on(named(name)).operations if op.diagnosis]
    assert SAID[name] in found["text"]
    assert found["names"] == []


@pytest.mark.thorough
def test_several_causes_are_each_named_with_their_cases() -> None:
    report = report_on(named("linear_and_llama3"))
    (found,) = [op.diagnosis for op in report.operations if op.diagnosis]
    groups = {tuple(group["names"]): group["cases"] for group in found["groups"]}
    assert set(groups) == {("llama3-bands-exchanged",), ("linear-ignored",)}
    single = sorted(case.id for case in report.failures if case.kind == "value")
    assert sorted(id_ for cases in groups.values() for id_ in cases) == single
    assert found["text"].startswith("2 mistakes. ")


@pytest.mark.thorough
def test_a_cause_of_the_minority_is_a_remark_without_a_name() -> None:
    def rope_frequencies(dim: int, /, *, base: float, scaling: Any = None, length: Any = None) -> Any:
        found, factor = posref.rope_frequencies(dim, base=base, scaling=scaling, length=length)
        kind = type(scaling).__name__
        if kind == "Linear":
            return found * scaling.factor, factor
        return (np.sqrt(found) if kind == "Llama3" else found), factor

    found = told(rope_frequencies, "rope_frequencies")
    explained, left = found["groups"]
    assert left["names"] == []
    assert all("llama3" in id_ for id_ in left["cases"])
    some, others = (len(group["cases"]) for group in (explained, left))
    assert 0 < some < others
    assert found["text"].startswith(f"unexplained ({others} of {some + others} failing cases): no known mistake gives")
    assert f" A few cases alone may be explained: in {some} cases (rope_frequencies/linear/" in found["text"]
    assert (found["names"], found["hint"]) == ([], "")
    assert explained["names"] == ["linear-ignored"]
    assert all("linear" in id_ for id_ in explained["cases"])


def test_contradictory_names_are_never_given_together() -> None:
    up, down, other = (DEVIATIONS[name] for name in ("shaw-row-plus-1", "shaw-row-minus-1", "positions-minus-1"))
    assert contradict([up, other, down])
    assert not contradict([up, other, up])
    assert not contradict(
        [DEVIATIONS["not-rotated"], DEVIATIONS["both-sums"], DEVIATIONS["in-place-update"]]
    )  # they say nothing
    about = Counter(d.one_of for d in DEVIATIONS.values() if d.one_of)
    assert len(about) > 20
    assert min(about.values()) > 1  # else a word is misspelt


def test_a_stage_is_blamed_for_what_it_explains() -> None:
    found = {"names": ["sign-flipped"]}
    assert _blame("apply_rope", found, {"apply_rope": [["sign-flipped"]]}) == "The first wrong stage is apply_rope"
    assert _blame("apply_rope", found, {"apply_rope": [["layout-half"]]}) == "apply_rope fails too, for another reason"


@pytest.mark.thorough
def test_a_stage_that_fails_in_one_dtype_is_the_first_wrong_stage_whatever_fails_in_others() -> None:
    """Its values are wrong in float64, and only its gradients in float32."""

    def learned(positions: torch.Tensor, table: torch.Tensor, /, **options: Any) -> torch.Tensor:
        found: torch.Tensor = posref.learned(positions, table, **options)
        return found + 1 if found.dtype == torch.float64 else found + (found - found.detach())

    def axial_learned(positions: torch.Tensor, /, *tables: torch.Tensor, **options: Any) -> torch.Tensor:
        found: torch.Tensor = posref.axial_learned(positions, *tables, **options)
        return found + 1 if found.dtype == torch.float64 else found

    dtypes = ("float64", "float32")
    target = SimpleNamespace(backend="torch", dtypes=dtypes, learned=learned, axial_learned=axial_learned)
    (found,) = [o.diagnosis for o in check(target).operations if o.op == "axial_learned" and o.diagnosis]
    assert found["text"].startswith("The first wrong stage is learned. ")


def test_a_prediction_is_tried_between_the_outer_samples_unless_it_is_hopeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that only a small jitter gives are explained; without the inner samples they would not be."""
    one = np.ones(3)
    question = SimpleNamespace(dtype="float32", op="rope_table")
    wanted = [Observation(0, "cos", one, one + 0.5, one * 1e-3, failed=True)]

    def told_by(jitter: float) -> list[dict[str, Any]]:
        inner = 0 < abs(jitter) < 0.75 * JITTER["float32"]
        return [{"cos": one + (0.6 if inner else 0.4)}]

    assert score(question, wanted, told_by) == 0  # type: ignore[arg-type]
    monkeypatch.setattr(hypotheses, "HOPELESS", 0.5)
    assert score(question, wanted, told_by) > 1  # type: ignore[arg-type]


@pytest.mark.thorough(dear=True)
def test_cases_made_for_size_do_not_blame_an_option_that_they_alone_have() -> None:
    """All calls of the kernel tier have one window; what they share besides is their size."""

    def sliding_window(q: Any, k: Any, /, *, window: int, **options: Any) -> Any:
        seen = np.array(posref.sliding_window(q, k, window=window, **options))
        for tile in range(0, seen.shape[-1] if seen.shape[-1] > 64 else 0, 64):
            seen[..., tile : tile + 64] |= seen[..., tile : tile + 64].any(-1, keepdims=True)
        return seen

    report = check_call(sliding_window, op="sliding_window", tier="kernel", experiments=0)
    text = report.operations[0].diagnosis["text"]
    assert "window=" not in text
    assert "65 keys or more" in text


@pytest.mark.thorough
def test_one_wrong_number_in_a_few_large_cases_names_no_mistake() -> None:
    """Of hidden keys all are False, as with queries at other positions."""

    def chunked_window(q: Any, k: Any, /, **options: Any) -> Any:
        seen = np.array(posref.chunked_window(q, k, **options))
        seen[..., 1024:] = False
        return seen

    found = check_call(chunked_window, op="chunked_window", tier="kernel", experiments=0).operations[0].diagnosis
    assert found["names"] == []
    assert found["text"].endswith("All wrong values are False. No known mistake gives these values.")


@pytest.mark.thorough
def test_a_number_of_an_option_is_not_said_where_another_limits_it() -> None:
    (found,) = [op.diagnosis for op in report_on(named("lambda_sinks_within_window")).operations if op.diagnosis]
    assert "sinks is" not in found["text"]
    assert "only values whose key comes before the query" in found["text"]


@pytest.mark.thorough
def test_two_failing_cases_are_too_few_for_a_cause_that_others_speak_against() -> None:
    def alibi_slopes(heads: int, /, **options: Any) -> Any:
        return posref.alibi_slopes(heads, **options) * (2 if heads in (3, 7) else 1)

    found = check_call(alibi_slopes, op="alibi_slopes")
    assert 2 <= len(found.failures) <= 4
    assert "in which that would show" not in found.operations[0].diagnosis["text"]


@pytest.mark.thorough
@few(1, "width", ["int8", "uint8", "int16", "uint16"])
def test_a_narrow_integer_type_of_positions_is_said(width: str) -> None:
    """Fractions pass, so nothing but whole positions went through the type."""

    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        whole = np.asarray(positions) == np.floor(positions)
        held = np.asarray(positions).astype(np.int64).astype(width).astype(np.float64)
        return posref.sinusoidal(np.where(whole, held, positions), dim, **options)

    assert f"if positions are held in {width}: " in told(sinusoidal, "sinusoidal")["text"]


@pytest.mark.thorough(dear=True)
def test_each_wrong_call_of_a_sequence_is_counted() -> None:
    """Calls are counted from 1, as the lines of failures count them, and none is left out."""

    def wrong_in(*counts: int) -> str:
        def shaw_scores(q: Any, *arrays: Any, **options: Any) -> Any:
            out = posref.shaw_scores(q, *arrays, **options)
            return out + np.sin(np.arange(out.size)).reshape(out.shape).astype(out.dtype) if q.shape[-2] in counts else out

        shaw_scores.dtypes = ("float32",)  # type: ignore[attr-defined]
        report = check_call(shaw_scores, op="shaw_scores", case="shaw_scores/again/decode")
        found = report.operations[0].diagnosis
        return str(found["text"])

    assert "In shaw_scores/again/decode, 2 of 3 calls are wrong: 1 and 3." in wrong_in(3, 4)
    assert "1 of 3 calls is wrong: 2." in wrong_in(1)
    assert "of 3 calls" not in wrong_in(1, 3, 4)


@pytest.mark.thorough
def test_another_dtype_has_no_other_name() -> None:
    """Float16 alone would be explained by another place of eps too."""

    def norm_rope(x: Any, weight: Any, cos: Any, sin: Any, /, *, eps: float, **options: Any) -> Any:
        return posref.norm_rope(x, weight, cos, sin, eps=1e-5, **options)

    norm_rope.dtypes = ("float32", "float16")  # type: ignore[attr-defined]
    said = [op.diagnosis["text"] for op in check_call(norm_rope, op="norm_rope").operations if op.diagnosis]
    assert len(said) == 2
    for text in said:
        assert "if eps is 1e-05 (passed: " in text
        assert "norm-eps" not in text


@pytest.mark.thorough(dear=True)
def test_what_explains_one_dtype_is_no_explanation_of_a_few_cases_of_another() -> None:
    """A table with one frequency does not tell the base."""

    def sinusoidal(positions: Any, dim: int, /, *, dtype: Any, base: float = 10_000.0, **options: Any) -> Any:
        return posref.sinusoidal(positions, dim, base=500.0 if dtype == np.float16 else 1000.0, dtype=dtype, **options)

    sinusoidal.dtypes = ("float32", "float16")  # type: ignore[attr-defined]
    single, half = (op.diagnosis["text"] for op in check_call(sinusoidal, op="sinusoidal").operations if op.diagnosis)
    assert "if base is 1000 (passed: " in single
    assert "if base is 500 (passed: " in half
    assert "base is 1000 " not in half


def test_values_come_first_where_as_many_failing_cases_have_none() -> None:
    wrong, silent = [case for case in stored("alibi") if case.kind == "value" and "float32" in case.dtypes][:2]
    call = wrong.calls[0]
    outputs = {name: -x for name, x in call.expected.items()}
    answers = [(Answer(wrong, "float32", [outputs]), True), (Answer(silent, "float32", []), True)]
    text = diagnose("alibi", answers, "angle32", messages={silent.id: "it has no shape"})["text"]
    assert text.startswith("Matches the reference if ")
    assert text.endswith(f" 1 case gave no values to compare: it has no shape ({silent.id}).")


@pytest.mark.thorough
def test_a_mistake_that_explains_three_quarters_of_the_failing_cases_is_named() -> None:
    """The others have errors that nothing explains, and no form of input or option tells which cases they are."""
    known = [case for case in stored("alibi") if case.kind == "value" and "float32" in case.dtypes]
    several = [case for case in known if 20 < case.calls[0].expected["out"].size < 200]
    rng = np.random.default_rng(0)
    drawn = [several[at] for at in rng.permutation(len(several))[:8]]

    answers = []
    for number, case in enumerate(drawn):
        out = case.calls[0].expected["out"]
        wrong = -out if number < 6 else out + (1 + np.abs(out)) * rng.random(out.shape)
        answers.append((Answer(case, "float32", [{"out": wrong}]), True))
    groups = diagnose("alibi", answers, "angle32")["groups"]
    assert [(group["names"], len(group["cases"]), group["where"]) for group in groups] == [(["alibi-sign"], 6, ""), ([], 2, "")]


@wrong(
    "apply_rope", names=["last-head-unrotated"],
    like=r"^In all \d+ failing cases that were compared .* But not always: \d+ cases, in which that would show too, pass",
)  # fmt: skip
def a_mistake_that_gives_all_wrong_values_is_said_though_it_is_not_always_made(
    x: Any, cos: Any, sin: Any, /, **options: Any
) -> Any:
    """The last of an odd number of heads is not rotated: no trait of cases tells that, and most other cases pass."""
    out = np.array(posref.apply_rope(x, cos, sin, **options))
    if out.ndim == 4 and out.shape[1] > 1 and out.shape[1] % 2:
        out[:, -1] = np.broadcast_to(x, out.shape)[:, -1]
    return out


@wrong("attention_logits", like=r"Only keys from 4 on are wrong( \(\d+ of \d+ such [a-z]+\))?\.")
def the_place_of_wrong_keys_is_said(q: Any, k: Any, /, **options: Any) -> Any:
    out = posref.attention_logits(q, k, **options)
    return np.where(np.arange(out.shape[-1]) >= 4, out + 1, out).astype(q.dtype)


@wrong("attention_logits", like=r"Only the last key is wrong( \(\d+ of \d+ times\))?\. The wrong values are 0\.")
def the_place_of_the_last_key_is_said(q: Any, k: Any, /, **options: Any) -> Any:
    out = posref.attention_logits(q, k, **options)
    return np.where(np.arange(out.shape[-1]) == out.shape[-1] - 1, 0, out).astype(q.dtype)


@wrong(
    "packed_documents",
    like=r"nly tokens from 4 on are wrong( \(\d+ of \d+ such [a-z]+\))?\. The wrong values are 7 too large\.",
)
def a_vector_has_places(positions: Any, /) -> Any:
    out = np.array(posref.packed_documents(positions))
    out[..., 4:] += 7
    return out


@wrong("packed_documents", "Only token 256 is wrong.")
def one_wrong_token_of_a_vector_is_told(positions: Any, /) -> Any:
    out = np.array(posref.packed_documents(positions))
    out[..., 256:257] += 1
    return out


@wrong("apply_rope", "In the failing cases, only token 2 is wrong. The wrong values are the input's own.", thorough=True)
def tables_with_an_axis_of_one_number_tokens_before_heads(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
    out = np.array(posref.apply_rope(x, cos, sin, **options))
    if cos.ndim > 2 and cos.shape[-2] == 1 < cos.shape[-3]:
        out[..., 2, :, :] = x[..., 2, :, :]
    return out


@wrong(
    "apply_rope", "In the failing cases, only head 1 is wrong. The wrong values are 2 times what they should be.", thorough=True
)
def tables_of_two_axes_leave_an_axis_of_heads_before_tokens(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
    out = np.array(posref.apply_rope(x, cos, sin, **options))
    if cos.ndim == 2 and x.ndim > 2 and x.shape[-3] > 1:
        out[..., 1, :, :] *= 2
    return out


@wrong("apply_rope", "In the failing cases, only batch row 1 is wrong. The wrong values are 0.")
def a_row_of_a_batch_is_named_and_not_its_number_among_all_rows(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
    out = np.array(posref.apply_rope(x, cos, sin, **options))
    if x.ndim == 4 and x.shape[0] > 1:
        out[1] = 0
    return out


@wrong("chunked_window", "All wrong values are True.")
def wrong_masks_have_words_of_their_own(q: Any, k: Any, /, **options: Any) -> Any:
    return posref.chunked_window(q, k, **options) | (q[..., :, None] - k[..., None, :] == 3)


@wrong("packed_documents", "The wrong values are the right ones modulo 3.")
def wrong_integers_have_words_of_their_own(positions: Any, /) -> Any:
    return posref.packed_documents(positions) % 3


@wrong(
    "chunked_window",
    "if sliding_window is computed in its place (window is the chunk_size, counting='without_query').",
    thorough=True,
)
def siblings_are_tried(q: Any, k: Any, /, *, chunk_size: int, sides: str) -> Any:
    return posref.sliding_window(q, k, window=chunk_size, counting="without_query", sides=sides)


@wrong("axial_rope", "if coordinates 0 and 1 are exchanged.", thorough=True)
def exchanged_coordinates_are_tried(x: Any, positions: Any, /, **options: Any) -> Any:
    return posref.axial_rope(x, np.stack([positions[1], positions[0], *positions[2:]]), **options)


@wrong("lambda_window", "sinks and window are exchanged", thorough=True)
def exchanged_options_are_tried(q: Any, k: Any, /, *, num_sinks: int, window: int, counting: str) -> Any:
    if not num_sinks:
        raise NotImplementedError
    return posref.lambda_window(q, k, num_sinks=window, window=num_sinks, counting=counting)


@wrong("relative_shift", "Exactly the cases with 2 columns or more fail.")
def columns_are_named_by_what_they_count(x: Any, /) -> Any:
    return np.roll(posref.relative_shift(x), 1, axis=-1)


@wrong("relative_shift", "Exactly the cases with 2 queries or more fail. Only the last query is wrong.")
def queries_are_named_by_what_they_count(x: Any, /) -> Any:
    out = np.array(posref.relative_shift(x))
    if out.shape[-2] > 1:
        out[..., -1, :] = out[..., -2, :]
    return out


TABLES: dict[Any, Any] = {}


@wrong("sinusoidal", like="o known mistake gives these values\\.", never=("the reference if",))
def a_table_that_is_found_again_by_its_shape_has_no_wrong_name(positions: Any, dim: int, /, **options: Any) -> Any:
    key = (positions.shape, dim, tuple(options.items()))
    return TABLES.setdefault(key, posref.sinusoidal(positions, dim, **options))


@wrong("alibi", like=r"^(No failing case|\d+ cases) gave (no )?values to compare: out must have shape")
def shapes_come_first_where_most_failing_cases_have_no_values(q: Any, k: Any, /, **options: Any) -> Any:
    return np.swapaxes(posref.alibi(q, k, **options), -1, -2)


@wrong("deberta_scores", "Exactly the cases with rel_k or rel_q missing fail.")
def an_optional_array_that_is_missing_is_a_feature(q: Any, k: Any, /, *rest: Any, **options: Any) -> Any:
    terms = 1 + sum(options.get(name) is not None for name in ("rel_k", "rel_q"))
    scores = np.asarray(posref.deberta_scores(q, k, *rest, **options), dtype=np.float64)
    return (scores * np.sqrt(terms / 3)).astype(q.dtype)


@wrong("xpos_scales", never=("or more",))
def a_small_limit_that_few_passing_cases_have_is_not_said(positions: Any, dim: int, /, *, centre: int, **options: Any) -> Any:
    """The centre's side is lost: only cases of one or two tokens lie on one side of it, by chance."""
    return posref.xpos_scales(centre + np.abs(positions - centre), dim, centre=centre, **options)


@wrong("alibi", "nly values at even distances", "The wrong values are 3 times")
def values_that_are_right_for_any_reason_do_not_count(q: Any, k: Any, /, *, heads: int, form: str, **options: Any) -> Any:
    """The query's own key has bias 0, at an even distance: it is neither inside nor outside a place."""
    even = (q[..., :, None] - k[..., None, :]) % 2 == 0
    bias = posref.alibi(q, k, heads=heads, form=form, **options)
    return np.where(even[..., None, :, :], 3 * bias, bias) if form == "distance" else bias


@wrong("t5_buckets", starts="Matches the reference if ")
def integers_are_equal_to_the_definition_and_not_within_a_class(relative_positions: Any, /, **options: Any) -> Any:
    return posref.t5_buckets(-relative_positions, **options)


@wrong("rope", "65537", never=("the reference if",), thorough=True)
def a_number_that_one_position_shows_is_not_named(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
    return posref.rope(x, np.where(np.abs(positions) == 65537, 1, positions), layout=layout, base=base)


@wrong("window_bias", "nly heads after the first are wrong.", never=("at most",))
def a_limit_from_above_is_not_said_where_the_place_is_known(*args: Any, **options: Any) -> Any:
    """Few heads are in cases of large tables; that is no reason."""
    out = np.array(posref.window_bias(*args, **options))
    out[..., 1:, :, :] = np.sin(out[..., 1:, :, :])
    return out


@wrong(
    "apply_rope",
    starts="Exactly the cases with one token fail. In these your output matches the reference",
    names=["not-rotated"],
)
def a_mistake_in_calls_of_one_token_is_named_whatever_their_shape(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
    """A vector has no axis of tokens, and is one; positions are no reason, where the first ones are right."""
    one = x.ndim < 2 or x.shape[-2] == 1
    return np.array(x) if one else posref.apply_rope(x, cos, sin, **options)


@wrong(
    "learned",
    "if offset is one less than the value passed (passed: ",
    starts="Exactly the cases with offset not 0 fail. In these your output matches the reference",
    never=("half",),
)
def a_number_that_explains_all_failures_is_told_with_the_trait_that_they_have(
    positions: Any, table: Any, /, *, offset: int = 0, **options: Any
) -> Any:
    return posref.learned(positions, table, offset=max(offset - 1, 0), **options)


@wrong("axial_rope", "if positions are held in bfloat16.")
def positions_in_a_narrow_dtype_are_told_of_any_operation(x: Any, positions: Any, /, **options: Any) -> Any:
    return posref.axial_rope(x, round_to(positions, "bfloat16"), **options)


@wrong(
    "sinusoidal",
    "positions wrap at 50000, and negative ones too",
    "fractional positions are truncated to integers (positions-truncated)",
)
def positions_that_wrap_are_told_beside_what_else_is_wrong(positions: Any, dim: int, /, **options: Any) -> Any:
    return posref.sinusoidal(np.trunc(positions) % 50_000, dim, **options)


@wrong("deberta_rows", "if the result is held in uint8.")
def an_integer_type_of_the_result_is_said(relative: Any, /, **options: Any) -> Any:
    return posref.deberta_rows(relative, **options).astype(np.uint8).astype(np.int64)


@wrong("cumulative_rope", "if start is negated.")
def an_argument_that_is_negated_is_named(x: Any, increments: Any, start: Any, /, **options: Any) -> Any:
    return posref.cumulative_rope(x, increments, -start, **options)


@wrong("kerple", "if r2 is limited to at most 1.")
def an_argument_that_is_limited_is_named(q: Any, k: Any, r1: Any, r2: Any, /, **options: Any) -> Any:
    return posref.kerple(q, k, r1, np.minimum(r2, 1), **options)


@wrong("shaw_values", "if value_table is doubled.", thorough=True)
def an_argument_that_counts_twice_is_named(weights: Any, v: Any, table: Any, /, *places: Any, **options: Any) -> Any:
    return posref.shaw_values(weights, v, 2 * table, *places, **options)


@wrong("forgetting_bias", "if log_gates is in reverse order along its last axis.")
def an_argument_that_is_read_backwards_is_named(log_gates: Any, /, *, queries: int) -> Any:
    return posref.forgetting_bias(np.flip(log_gates, -1), queries=queries)


@wrong("sandwich", "if the result is divided by half of dim.", thorough=True)
def a_factor_that_is_a_size_is_named(q: Any, k: Any, /, *, heads: int, dim: int, **options: Any) -> Any:
    """The mean of the cosines is taken, not their sum."""
    return (posref.sandwich(q, k, heads=heads, dim=dim, **options) / (dim / 2)).astype(np.float32)


@wrong("decomposed_rows", "if the result is too small by k_size less 1.")
def a_term_that_is_a_size_is_named(q: Any, k: Any, /, *, q_size: int, k_size: int) -> Any:
    return posref.decomposed_rows(q, k, q_size=q_size, k_size=k_size) - (k_size - 1)


@wrong("positions_from_mask", "if padding is 0 (passed: ")
def a_missing_option_is_named_by_the_number_that_it_has_instead(mask: Any, /, *, padding: int) -> Any:
    return posref.positions_from_mask(mask, padding=0)


@wrong("decomposed_bias", "Of the cases that have values, only decomposed_bias/", never=("odd number",))
def two_passing_cases_among_many_failing_ones_are_named_and_no_number_of_theirs(
    q: Any, h: Any, w: Any, /, **options: Any
) -> Any:
    """The one case that passes has an even number of channels, by chance."""
    out = np.array(posref.decomposed_bias(q, h, w, **options))
    return out if out.size < 2 else out + np.sin(np.arange(out.size)).reshape(out.shape).astype(out.dtype)


@wrong("sandwich", "Of the cases that have values, only sandwich/cosines/two-channels and", thorough=True)
def a_number_of_the_one_passing_case_is_no_trait_of_the_others(q: Any, k: Any, /, *, heads: int, **options: Any) -> Any:
    """The bias of two channels is 0, for any slope: of all widths it alone passes."""
    wrong = np.arange(heads) / np.arange(1, heads + 1)
    return (posref.sandwich(q, k, heads=heads, **options) * wrong[:, None, None]).astype(np.float32)


@wrong("sliding_window", "All wrong values are False.", never=("before the last",))
def a_place_that_few_units_have_by_chance_is_not_said(q: Any, k: Any, /, *, window: int, sides: str, **options: Any) -> Any:
    seen = posref.sliding_window(q, k, window=window, sides=sides, **options)
    return seen & (k[..., None, :] - q[..., :, None] != window - 1) if sides == "both" else seen


@wrong("sine_2d", "if scale is 6.28318531 (passed: ")
def an_option_that_does_not_arrive_has_its_default(mask: Any, dim: int, /, *, scale: float = 0.0, **options: Any) -> Any:
    """Its namesake of the sinusoids inside is another option."""
    return posref.sine_2d(mask, dim, **options)


@wrong("mrope", "if positions along axis 2 are those of axis 1.", thorough=True)
def one_axis_with_the_positions_of_another_is_told(x: Any, positions: Any, /, **options: Any) -> Any:
    return posref.mrope(x, np.stack([positions[min(k, 1)] if k == 2 else p for k, p in enumerate(positions)]), **options)


@wrong("axial_table", "Pairs rotate by other coordinates: in axial_table/", " from the first pair on, not by 0")
def the_coordinate_of_every_pair_is_read(positions: Any, inv_freq: Any, /, *, sections: Any, **options: Any) -> Any:
    """The first section is twice as long, and what follows is shorter."""
    first = min(2 * sections[0], sum(sections))
    axes = np.cumsum([first, *sections[1:]]).clip(max=sum(sections))
    return posref.axial_table(positions, inv_freq, sections=np.diff(axes, prepend=0).tolist(), **options)


@wrong("apply_rope", "Only pairs from 4 on are wrong. The wrong values are numbers of x.", never=("bfloat16",))
def values_of_the_input_are_no_values_of_few_bits(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
    cos, sin = (np.concatenate([t[..., :4], np.full_like(t[..., 4:], w)], -1) for t, w in ((cos, 1), (sin, 0)))
    return posref.apply_rope(x, cos, sin, **options)


@wrong("apply_rope", "Only the second channel of each pair is wrong.")
def one_channel_of_each_pair_is_a_place(x: Any, cos: Any, sin: Any, /, *, layout: str) -> Any:
    if layout != "half":
        raise Unsupported
    n = cos.shape[-1]
    return np.concatenate(
        [posref.apply_rope(x, cos, sin, layout=layout)[..., :n], (x[..., :n] + x[..., n : 2 * n]) * cos, x[..., 2 * n :]], -1
    )


@wrong("cumulative_angles", "The wrong values are numbers that bfloat16 holds.")
def reals_of_a_narrower_dtype_are_told(increments: Any, start: Any, /, **options: Any) -> Any:
    out = round_to(posref.cumulative_angles(increments, start, **options), "bfloat16")
    return round_to(np.asarray(out) * (1 + np.arange(out.shape[-2])[:, None] % 2), "bfloat16").astype(start.dtype)


@wrong("timestep", "if base is 9876.5 where 10000 is passed.")
def a_real_option_is_fitted(timesteps: Any, dim: int, /, *, base: float = 10_000.0, **options: Any) -> Any:
    return posref.timestep(timesteps, dim, base=9876.5 if base == 10_000 else base, **options)


@wrong("axial_table", names=["angles-float16"])
def angles_of_several_axes_have_the_mistakes_of_one(
    positions: Any, inv_freq: Any, /, *, sections: Any, arrangement: str, attention_factor: float = 1.0, **options: Any
) -> Any:
    if arrangement != "chunked":
        raise Unsupported
    angles = round_to(np.moveaxis(positions, 0, -1)[..., np.repeat(np.arange(len(sections)), sections)] * inv_freq, "float16")
    return tuple((wave(angles) * attention_factor).astype(np.float32) for wave in (np.cos, np.sin))


@wrong("sinusoidal", "Matches the reference if frequency i is e^(-2i log10(base)/d).")
def waves_are_read_in_one_layout_and_hold_in_all(positions: Any, dim: int, /, *, base: float = 10_000.0, **options: Any) -> Any:
    if options.get("endpoint") or options.get("odd"):
        raise Unsupported
    return posref.sinusoidal(positions, dim, base=float(np.exp(np.log10(base))), **options)


@wrong("alibi_slopes", "slopes are 2^-linspace(1, max_bias, H), and max_bias is always 8.")
def slopes_are_read_where_other_options_are_ignored(heads: int, /, **options: Any) -> Any:
    return (2.0 ** -np.linspace(1, 8, heads)).astype(np.float32)


@wrong("affine_waves", names=["angles-autocast"])
def angles_with_phases_have_the_mistakes_of_others(x: Any, weight: Any, bias: Any, /, *, wave: str, **options: Any) -> Any:
    x, weight, bias = (round_to(one, "bfloat16") for one in (x, weight, bias))
    angles = round_to(x[..., None] * weight + bias, "bfloat16")
    return (np.cos if wave == "cos" else np.sin)(angles).astype(np.float32)


@wrong("sinusoidal", "if base is 1.25 times the value passed.")
def a_relation_to_several_values_is_fitted(positions: Any, dim: int, /, *, base: float = 10_000.0, **options: Any) -> Any:
    return posref.sinusoidal(positions, dim, base=1.25 * base, **options)


@wrong(
    "fourier",
    starts="Exactly the cases with unit=turns fail. In these your output matches the reference",
    never=("trig",),
    like=r"bands is multiplied by 1\.000002\d, as where pi is 3\.1416\.",
)
def a_constant_in_place_of_pi_is_said_for_the_cases_that_have_it(x: Any, bands: Any, /, *, unit: str, **options: Any) -> Any:
    return posref.fourier(x, bands * (3.1416 / np.pi if unit == "turns" else 1), unit=unit, **options)


@wrong("xpos_scales", "if the result is divided by the square root of dim.")
def a_size_that_is_given_by_place_is_one_too(positions: Any, dim: int, /, **options: Any) -> Any:
    return posref.xpos_scales(positions, dim, **options) / np.float32(dim**0.5)


@wrong("t5_bias", "if for queries, positions are counted from the first one, which is 0.")
def queries_may_be_counted_from_their_first_one(q_positions: Any, k_positions: Any, table: Any, /, **options: Any) -> Any:
    return posref.t5_bias(q_positions - q_positions[..., :1], k_positions, table, **options)


@wrong("mrope", "if positions along axis 1 are held in bfloat16.", thorough=True)
def one_axis_may_be_narrow(x: Any, positions: Any, /, **options: Any) -> Any:
    rows = [round_to(row, "bfloat16") if axis == 1 else row for axis, row in enumerate(positions.astype(np.float64))]
    return posref.mrope(x, np.stack(rows), **options)


@wrong("sinusoidal_nd", names=["angles-bfloat16"], thorough=True)
def angles_inside_may_be_narrow(positions: Any, /, *, dims: Any, layout: str, arrangement: str, **options: Any) -> Any:
    if layout != "sin_cos" or arrangement != "axis" or options.get("endpoint") or any(d % 2 for d in dims):
        raise Unsupported
    bases = [options.get("base", 1e4) ** -(np.arange(0, d, 2) / d) for d in dims]
    angles = [round_to(p[..., None] * w, "bfloat16") for p, w in zip(positions.astype(np.float64), bases, strict=True)]
    return np.concatenate([wave(a) for a in angles for wave in (np.sin, np.cos)], axis=-1).astype(np.float32)


@wrong("rope", "if frequency i is base^(-2i/(d - 2)), and positions are one too large", thorough=True)
def a_formula_is_read_beside_a_case_of_one_pair(x: Any, positions: Any, /, *, layout: str, base: float, **options: Any) -> Any:
    if layout != "half" or {*options} - {"inverse"}:
        raise Unsupported
    d = x.shape[-1]
    angles = (positions[..., None] + 1.0) * base ** -(np.arange(0, d, 2) / max(d - 2, 1))
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    return posref.apply_rope(x, cos, sin, layout=layout, **options)


@wrong("fope", "if cos_mix and sin_mix are in reverse order along their last axis.", thorough=True)
def arrays_of_the_same_axes_may_be_wrong_together(x: Any, positions: Any, cos_mix: Any, sin_mix: Any, /, **options: Any) -> Any:
    return posref.fope(x, positions, cos_mix[..., ::-1], sin_mix[..., ::-1], **options)


@wrong("apply_rope", "if all rows have the tables of the first row.")
def rows_may_have_the_tables_of_the_first(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
    cos, sin = (t[:1] if t.ndim > 2 and len(t) else t for t in (cos, sin))
    return posref.apply_rope(x, cos, sin, **options)


@wrong("sliding_window", "<= window + q mod window (in blocks of a window, the query's own and the one before).")
def a_formula_is_kept_though_plainer_ones_have_the_first_cases(
    q: Any, k: Any, /, *, window: int, sides: str, **options: Any
) -> Any:
    if sides != "causal" or not window:
        raise Unsupported
    q, k = q[..., :, None], k[..., None, :]
    return (k <= q) & (q // window - k // window <= 1)


@wrong("sinusoidal_nd", "Only the first coordinate is wrong. There your output matches the reference if ", thorough=True)
def the_coordinate_is_told(positions: Any, /, *, dims: Any, layout: str, arrangement: str, **options: Any) -> Any:
    if layout == "interleaved" or arrangement != "axis" or len(dims) < 2:
        raise Unsupported
    out = np.array(posref.sinusoidal_nd(positions, dims=dims, layout=layout, arrangement=arrangement, **options))
    out[..., : dims[0]] = np.roll(out[..., : dims[0]], dims[0] // 2, axis=-1)
    return out


@wrong(
    "deberta_scores",
    "replaces `matrix_transpose(by_row(keys, rel_q, matrix_transpose(other)))`",
    never=("axes fail",),
)
def axes_of_a_few_cases_are_chance(q: Any, k: Any, *places: Any, rel_k: Any = None, rel_q: Any = None, **options: Any) -> Any:
    if rel_q is None or q.shape[-2] != k.shape[-2]:
        raise Unsupported
    whole, of_keys = (posref.deberta_scores(x, k, *places, rel_k=rel_k, rel_q=rel_q, **options) for x in (q, 0 * q))
    return whole - of_keys + np.swapaxes(of_keys, -1, -2)


@wrong("timestep", "if positions are clamped to 0 ... 999.")
def positions_that_are_clamped_on_both_sides_are_told_with_both_ends(timesteps: Any, dim: int, /, **options: Any) -> Any:
    return posref.timestep(np.clip(timesteps, 0, 999), dim, **options)


@wrong("fire", "if eps is 0, or too small to show (passed: ")
def a_number_that_is_no_other_than_zero_is_said_as_such(*arrays: Any, eps: float = 1e-6) -> Any:
    return posref.fire(*arrays, eps=1e-30)


@wrong("fourier", "if the argument bands is multiplied by 0.99999")
def a_factor_near_one_is_no_division_by_one(x: Any, bands: Any, /, *, unit: str, **options: Any) -> Any:
    return posref.fourier(x, bands * (3.14159 / np.pi if unit == "turns" else 1), unit=unit, **options)


@wrong("hierarchical_learned", "Only positions that are multiples of the number of rows of the table are wrong.", names=[])
def the_block_before_at_its_end(positions: Any, table: Any, /, **options: Any) -> Any:
    rows = np.asarray(posref.hierarchical_learned(positions, table, **options))
    at_ends = (positions > 0) & (positions % len(table) == 0)
    return np.where(at_ends[..., None], rows + 0.5, rows).astype(table.dtype)


def edited(op: str, change: Callable[..., Any]) -> str:
    """Return what is said of code in float32 that calls the definition with a change."""
    return check(SimpleNamespace(**{op: change}), op=op, dtype="float32", experiments=0).operations[0].diagnosis["text"]


def bias_before_the_product(x: Any, weight: Any, bias: Any, /, **options: Any) -> Any:
    return posref.affine_waves(x, weight, weight * bias, **options)


def gates_before_the_query(log_gates: Any, /, *, queries: int) -> Any:
    sums = np.cumsum(log_gates, axis=-1)
    of_queries = (sums - log_gates)[..., sums.shape[-1] - queries :, None]
    return (of_queries - sums[..., None, :]).astype(np.float32)


def windows_to_the_nearest(q_positions: Any, /, *, rate: int) -> Any:
    return (q_positions + 1 + rate // 2) // rate


@pytest.mark.thorough
@few(1, ("function", "op", "says"), [
    (windows_to_the_nearest, "visible_windows", "`(q_positions + 1 + rate // 2) // rate` replaces"),
    (bias_before_the_product, "affine_waves", "`bias * weight` replaces `bias`"),
    (gates_before_the_query, "forgetting_bias", "`sums - log_gates` replaces `sums`"),
])  # fmt: skip
def test_a_formula_is_read_with_one_expression_changed(function: Function, op: str, says: str) -> None:
    assert edited(op, function).startswith(f"Matches the reference if {says}")


def test_a_beta_of_the_token_before_and_a_mean_over_keys_are_said() -> None:
    before = edited("path_logits", lambda q, k, w, betas, /, **o: posref.path_logits(q, k, w, np.roll(betas, 1, -1), **o))
    assert (
        before
        == "Matches the reference if every entry along the last axis of betas is the one before it (the first is the last)."
    )

    def mean(weights: Any, v: Any, table: Any, q: Any, k: Any, /, **options: Any) -> Any:
        keys = np.float32(max(1, weights.shape[-1]))
        return posref.shaw_values(weights, v, table / keys, q, k, **options)

    assert edited("shaw_values", mean) == "Matches the reference if value_table is divided by the number of keys."


@pytest.mark.thorough
def test_results_that_lose_bits_are_told() -> None:
    def apply_rope(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
        out = posref.apply_rope(x.float(), cos.float(), sin.float(), **options).contiguous()
        return (out.view(torch.int32) & -(2**16)).view(torch.float32).to(x.dtype)

    target = SimpleNamespace(apply_rope=apply_rope, backend="torch", dtypes=("bfloat16",))
    found = check(target, op="apply_rope", experiments=0).operations[0].diagnosis
    assert found["text"].endswith("the reference if the result is cut, not rounded, to bfloat16.")


@pytest.mark.thorough(dear=True)
@few(4, ("function", "op", "says", "starts", "like", "never", "names"), ROWS)
def test_a_wrong_operation_is_told(
    function: Function, op: str, says: Sequence[str], starts: str, like: str, never: Sequence[str], names: Any
) -> None:
    found = told(function, op)
    assert found["text"].startswith(starts)
    assert re.search(like, found["text"])
    assert [words for words in says if words not in found["text"]] == [], found["text"]
    assert [words for words in never if words in found["text"]] == [], found["text"]
    assert names is None or found["names"] == names


def test_a_cause_that_says_again_where_a_named_mistake_shows_is_left_out() -> None:
    def attention(*args: Any, sinks: Any = None, bias: Any = None, **options: Any) -> Any:
        return posref.attention(*args, sinks=sinks if bias is None else None, bias=bias, **options)

    [operation] = check(SimpleNamespace(attention=attention), op="attention", seed=1).operations
    text = str((operation.diagnosis or {})["text"])
    assert "(sinks-dropped)" in text
    assert "Wrong at" not in text


def test_limits_of_two_numbers_are_held_to_calls_where_these_are_equal() -> None:
    """A table that is read with the height in place of the width is right for squares, of any size."""

    def levit_bias(table: Any, /, *, height: int, width: int, stride: int) -> Any:
        y, x = np.divmod(np.arange(height * width), width)
        queries = np.flatnonzero((y % stride == 0) & (x % stride == 0))
        row, column = abs(y[queries][:, None] - y), abs(x[queries][:, None] - x)
        return table[:, np.minimum(row * height + column, table.shape[1] - 1)]

    [operation] = check(SimpleNamespace(levit_bias=levit_bias), op="levit_bias", seed=11).operations
    text = str((operation.diagnosis or {})["text"])
    assert "height and width together" in text, text
    assert "with width other than 3" not in text


def test_several_remainders_of_a_number_are_a_cause_only_where_many_calls_agree() -> None:
    remainders, one = Rule("coordinates", "remainders", (4, 1, 2)), Rule("coordinates", "remainders", (4, 1))
    several, single = (Cause("wrong", {}, {}, rules=[rule]) for rule in (remainders, one))
    assert failure_causes._has_remainders(several)
    assert not failure_causes._has_remainders(single)


def test_a_number_that_the_usual_options_have_is_no_cause() -> None:
    """Chunks that are counted from the first key are right where it begins a chunk, of 4 tokens or of another number."""

    def chunked_window(q: Any, k: Any, /, *, chunk_size: int, sides: str) -> Any:
        first = k[..., :1] if k.shape[-1] else 0
        same = ((q - first) // chunk_size)[..., :, None] == ((k - first) // chunk_size)[..., None, :]
        return same & (k[..., None, :] <= q[..., :, None]) if sides == "causal" else same

    [operation] = check(SimpleNamespace(chunked_window=chunked_window), op="chunked_window", seed=11).operations
    text = str((operation.diagnosis or {})["text"])
    assert "multiple of 4" not in text, text


def test_a_small_error_is_no_evidence_of_a_mistake_that_gives_anything() -> None:
    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        right = posref.sinusoidal(positions, dim, dtype=np.float64, **options)
        return np.where(positions[..., None] < 0, right + 9e-8 * np.sign(right), right)

    assert "2^32" not in told(sinusoidal, "sinusoidal")["text"]
