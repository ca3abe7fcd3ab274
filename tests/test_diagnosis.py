"""What a diagnosis says where no single deviation explains all failures, and what it never says."""

import re
from collections import Counter
from collections.abc import Callable
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
from posref.conformance import check, check_call
from posref.conformance.diagnosis import hypotheses
from posref.conformance.diagnosis.explanation import _blame, diagnose
from posref.conformance.diagnosis.hypotheses import JITTER, Observation, score
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.tools.deviation import contradict
from posref.conformance.model import Answer

SAID = {  # by the defect's file
    "apply_strides_ignored": "Exactly the cases with an input that is not contiguous, or is a broadcast view fail",
    "learned_last_row": "Only the last row of the table is wrong.",
    "logits_scale_103": "the scale is 1.03 times what it should be",
    "shaw_last_row_for_first": "Only the first row of the table is wrong.",
    "sinusoidal_base_1000": "your output equals the definition, within angle32, if base is 1000 (asked: 10000, ",
    "table_coarse_sine": "unexplained: no known mistake gives these values.",
    "table_wrapped_20000": "your output equals the definition, within angle32, if positions wrap at 20000.",
}


def told(function: Callable[..., Any], op: str) -> dict[str, Any]:
    """Return the diagnosis of a function."""
    found = check_call(function, op=op).operations[0].diagnosis
    assert found is not None
    return dict(found)


@few(3, "name", SAID)
def test_a_defect_without_a_name_is_told(name: str) -> None:
    (found,) = [op.diagnosis for op in report_on(named(name)).operations if op.diagnosis]
    assert SAID[name] in found["text"]
    assert found["names"] == []


def test_several_causes_are_each_named_with_their_cases() -> None:
    report = report_on(named("linear_and_llama3"))
    (found,) = [op.diagnosis for op in report.operations if op.diagnosis]
    groups = {tuple(group["names"]): group["cases"] for group in found["groups"]}
    assert set(groups) == {("llama3-bands-exchanged",), ("linear-ignored",)}
    single = sorted(case.id for case in report.failures if case.kind == "value")
    assert sorted(id_ for cases in groups.values() for id_ in cases) == single
    assert found["text"].startswith("2 mistakes: ")
    assert f" {len(report.failures) - len(single)} sequences of calls fail too." in found["text"]


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


def test_a_mistake_that_gives_all_wrong_values_is_said_though_it_is_not_always_made() -> None:
    """The last of an odd number of heads is not rotated: no trait of cases tells that, and most other cases pass."""

    def apply_rope(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
        out = np.array(posref.apply_rope(x, cos, sin, **options))
        if out.ndim == 4 and out.shape[1] > 1 and out.shape[1] % 2:
            out[:, -1] = np.broadcast_to(x, out.shape)[:, -1]
        return out

    found = told(apply_rope, "apply_rope")
    assert found["names"] == ["last-head-unrotated"]
    assert re.match(
        r"in all \d+ failing cases, your output .* But not always: \d+ cases, in which that would show too, pass", found["text"]
    )


def test_an_optional_array_that_is_missing_is_a_feature() -> None:
    def deberta_scores(q: Any, k: Any, /, *rest: Any, **options: Any) -> Any:
        terms = 1 + sum(options.get(name) is not None for name in ("rel_k", "rel_q"))
        scores = np.asarray(posref.deberta_scores(q, k, *rest, **options), dtype=np.float64)
        return (scores * np.sqrt(terms / 3)).astype(q.dtype)

    assert "Exactly the cases with rel_k or rel_q missing fail." in told(deberta_scores, "deberta_scores")["text"]


def test_a_small_limit_that_few_passing_cases_have_is_not_said() -> None:
    """The centre's side is lost: only cases of one or two tokens lie on one side of it, by chance."""

    def xpos_scales(positions: Any, dim: int, /, *, centre: int, **options: Any) -> Any:
        return posref.xpos_scales(centre + np.abs(positions - centre), dim, centre=centre, **options)

    assert "or more" not in told(xpos_scales, "xpos_scales")["text"]


def place(change: Callable[[Any, Any], Any]) -> str:
    """Return the diagnosis of logits that are changed somewhere."""

    def attention_logits(q: Any, k: Any, /, *, bias: Any = None, scale: Any = None) -> Any:
        out = np.array(posref.attention_logits(q, k, bias=bias, scale=scale))
        return change(out, k).astype(q.dtype)

    return str(told(attention_logits, "attention_logits")["text"])


def test_the_place_of_wrong_values_is_said() -> None:
    keys = place(lambda out, k: np.where(np.arange(out.shape[-1]) >= 4, out + 1, out))
    assert re.search(r"Only keys from 4 on( \(\d+ of \d+\))? are wrong\.", keys)
    last = place(lambda out, k: np.where(np.arange(out.shape[-1]) == out.shape[-1] - 1, 0, out))
    assert re.search(r"Only the last key( \(\d+ of \d+\))? is wrong\. The wrong values are 0\.", last)


def test_a_vector_has_places_and_one_wrong_token_is_counted() -> None:
    def packed_documents(positions: Any, /) -> Any:
        out = np.array(posref.packed_documents(positions))
        out[..., 4:] += 1
        return out

    text = told(packed_documents, "packed_documents")["text"]
    assert re.search(r"nly tokens from 4 on( \(\d+ of \d+\))? are wrong\. The wrong values are 1 too large\.", text)

    def one(positions: Any, /) -> Any:
        out = np.array(posref.packed_documents(positions))
        out[..., 256:257] += 1
        return out

    assert "In packed_documents/packed/long, 1 of 257 tokens is wrong: 256." in told(one, "packed_documents")["text"]


@pytest.mark.thorough
def test_axes_are_named_by_what_varies_along_them() -> None:
    """Tables of shape (T, 1, n) number tokens before heads; those of shape (T, n) leave an axis of heads before tokens."""

    def tokens(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
        out = np.array(posref.apply_rope(x, cos, sin, **options))
        if cos.ndim > 2 and cos.shape[-2] == 1 < cos.shape[-3]:
            out[..., 2, :, :] = x[..., 2, :, :]
        return out

    assert "In the failing cases, only token 2 is wrong. The wrong values are the input's own." in place_of_rotation(tokens)

    def heads(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
        out = np.array(posref.apply_rope(x, cos, sin, **options))
        if cos.ndim == 2 and x.ndim > 2 and x.shape[-3] > 1:
            out[..., 1, :, :] *= 2
        return out

    text = place_of_rotation(heads)
    assert "In the failing cases, only head 1 is wrong. The wrong values are 2 times what they should be." in text


def place_of_rotation(apply_rope: Callable[..., Any]) -> str:
    """Return what is said of a rotation."""
    return str(told(apply_rope, "apply_rope")["text"])


def test_a_row_of_a_batch_is_named_and_not_its_number_among_all_rows() -> None:
    def rows(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
        out = np.array(posref.apply_rope(x, cos, sin, **options))
        if x.ndim == 4 and x.shape[0] > 1:
            out[1] = 0
        return out

    assert "In the failing cases, only batch row 1 is wrong. The wrong values are 0." in place_of_rotation(rows)


def test_values_that_are_right_for_any_reason_do_not_count() -> None:
    """The query's own key has bias 0, at an even distance: it is neither inside nor outside a place."""

    def alibi(q: Any, k: Any, /, *, heads: int, form: str, **options: Any) -> Any:
        even = (q[..., :, None] - k[..., None, :]) % 2 == 0
        bias = posref.alibi(q, k, heads=heads, form=form, **options)
        return np.where(even[..., None, :, :], 3 * bias, bias) if form == "distance" else bias

    text = told(alibi, "alibi")["text"]
    assert "nly values at even distances" in text
    assert "The wrong values are 3 times" in text


def test_wrong_masks_and_integers_have_words_of_their_own() -> None:
    def chunked_window(q: Any, k: Any, /, **options: Any) -> Any:
        return posref.chunked_window(q, k, **options) | (q[..., :, None] - k[..., None, :] == 3)

    assert "All wrong values are True." in told(chunked_window, "chunked_window")["text"]

    def packed_documents(positions: Any, /) -> Any:
        return posref.packed_documents(positions) % 3

    assert "The wrong values are the right ones modulo 3." in told(packed_documents, "packed_documents")["text"]


def test_integers_are_equal_to_the_definition_and_not_within_a_class() -> None:
    def t5_buckets(relative_positions: Any, /, **options: Any) -> Any:
        return posref.t5_buckets(-relative_positions, **options)

    assert told(t5_buckets, "t5_buckets")["text"].startswith("your output equals the definition if ")


@pytest.mark.thorough
def test_siblings_and_exchanged_arguments_are_tried() -> None:
    def chunked_window(q: Any, k: Any, /, *, chunk_size: int, sides: str) -> Any:
        return posref.sliding_window(q, k, window=chunk_size, counting="without_query", sides=sides)

    text = told(chunked_window, "chunked_window")["text"]
    assert "if sliding_window is computed in its place (window is the chunk, counting='without_query')." in text

    def axial_rope(x: Any, positions: Any, /, **options: Any) -> Any:
        return posref.axial_rope(x, np.stack([positions[1], positions[0], *positions[2:]]), **options)

    assert "if coordinates 0 and 1 are exchanged." in told(axial_rope, "axial_rope")["text"]

    def lambda_window(q: Any, k: Any, /, *, num_sinks: int, window: int, counting: str) -> Any:
        if not num_sinks:
            raise NotImplementedError
        return posref.lambda_window(q, k, num_sinks=window, window=num_sinks, counting=counting)

    assert "sinks and window are exchanged" in told(lambda_window, "lambda_window")["text"]


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


@pytest.mark.thorough
def test_a_number_that_one_position_shows_is_not_named() -> None:
    def rope(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
        return posref.rope(x, np.where(np.abs(positions) == 65537, 1, positions), layout=layout, base=base)

    text = told(rope, "rope")["text"]
    assert "equals the definition" not in text
    assert "65537" in text


def test_a_stage_is_blamed_for_what_it_explains() -> None:
    found = {"names": ["sign-flipped"]}
    assert _blame("apply_rope", found, {"apply_rope": [["sign-flipped"]]}) == "the first wrong stage is apply_rope"
    assert _blame("apply_rope", found, {"apply_rope": [["layout-half"]]}) == "apply_rope fails too, for another reason"


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
    assert found["text"].startswith("the first wrong stage is learned; ")


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


def test_cases_made_for_size_do_not_blame_an_option_that_they_alone_have() -> None:
    """All calls of the kernel tier have one window; what they share besides is their size."""

    def sliding_window(q: Any, k: Any, /, *, window: int, **options: Any) -> Any:
        seen = np.array(posref.sliding_window(q, k, window=window, **options))
        for tile in range(0, seen.shape[-1] if seen.shape[-1] > 64 else 0, 64):
            seen[..., tile : tile + 64] |= seen[..., tile : tile + 64].any(-1, keepdims=True)
        return seen

    report = check_call(sliding_window, op="sliding_window", tier="kernel")
    assert report.operations[0].diagnosis is not None
    text = report.operations[0].diagnosis["text"]
    assert "window=" not in text
    assert "129 keys or more" in text


def test_a_limit_from_above_is_not_said_where_the_place_is_known() -> None:
    """Few heads are in cases of large tables; that is no reason."""

    def window_bias(*args: Any, **options: Any) -> Any:
        out = np.array(posref.window_bias(*args, **options))
        out[..., 1:, :, :] = out[..., :1, :, :]
        return out

    text = told(window_bias, "window_bias")["text"]
    assert "nly heads after the first are wrong." in text
    assert "at most" not in text


def test_sizes_are_named_by_what_they_count() -> None:
    def rolled(x: Any, /) -> Any:
        return np.roll(posref.relative_shift(x), 1, axis=-1)

    assert "Exactly the cases with 2 columns or more fail." in told(rolled, "relative_shift")["text"]

    def repeated(x: Any, /) -> Any:
        out = np.array(posref.relative_shift(x))
        if out.shape[-2] > 1:
            out[..., -1, :] = out[..., -2, :]
        return out

    text = told(repeated, "relative_shift")["text"]
    assert "Exactly the cases with 2 queries or more fail. Only the last query is wrong." in text


def test_a_mistake_in_calls_of_one_token_is_named_whatever_their_shape() -> None:
    """A vector has no axis of tokens, and is one; positions are no reason, where the first ones are right."""

    def apply_rope(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
        one = x.ndim < 2 or x.shape[-2] == 1
        return np.array(x) if one else posref.apply_rope(x, cos, sin, **options)

    found = told(apply_rope, "apply_rope")
    assert found["text"].startswith("Exactly the cases with one token fail. In these your output equals the definition")
    assert found["names"] == ["not-rotated"]


def test_a_number_of_an_option_is_not_said_where_another_limits_it() -> None:
    (found,) = [op.diagnosis for op in report_on(named("lambda_sinks_within_window")).operations if op.diagnosis]
    assert "sinks is" not in found["text"]
    assert "only values whose key comes before the query" in found["text"]


def test_a_number_that_explains_all_failures_is_told_with_the_trait_that_they_have() -> None:
    def learned(positions: Any, table: Any, /, *, offset: int = 0, **options: Any) -> Any:
        return posref.learned(positions, table, offset=max(offset - 1, 0), **options)

    text = told(learned, "learned")["text"]
    assert text.startswith("Exactly the cases with offset not 0 fail. In these your output equals the definition")
    assert "if offset is one less than asked (asked: " in text
    assert "half" not in text


def test_two_failing_cases_are_too_few_for_a_cause_that_others_speak_against() -> None:
    def alibi_slopes(heads: int, /, **options: Any) -> Any:
        return posref.alibi_slopes(heads, **options) * (2 if heads in (3, 7) else 1)

    found = check_call(alibi_slopes, op="alibi_slopes")
    assert 2 <= len(found.failures) <= 4
    assert "in which that would show" not in found.operations[0].diagnosis["text"]


def test_positions_in_a_narrow_dtype_are_told_of_any_operation() -> None:
    def axial_rope(x: Any, positions: Any, /, **options: Any) -> Any:
        return posref.axial_rope(x, round_to(positions, "bfloat16"), **options)

    assert "if positions are held in bfloat16." in told(axial_rope, "axial_rope")["text"]


def test_positions_that_wrap_are_told_beside_what_else_is_wrong() -> None:
    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        return posref.sinusoidal(np.trunc(positions) % 50_000, dim, **options)

    text = told(sinusoidal, "sinusoidal")["text"]
    assert "positions wrap at 50000, and negative ones too" in text
    assert "fractional positions are truncated to integers (positions-truncated)" in text


def test_a_table_that_is_found_again_by_its_shape_has_no_wrong_name() -> None:
    tables: dict[Any, Any] = {}

    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        key = (positions.shape, dim, tuple(options.items()))
        return tables.setdefault(key, posref.sinusoidal(positions, dim, **options))

    text = told(sinusoidal, "sinusoidal")["text"]
    assert text.startswith("unexplained: no known mistake gives these values.")
    assert "equals the definition" not in text


@pytest.mark.parametrize("width", ["int8", "uint8", "int16", "uint16"])
def test_a_narrow_integer_type_of_positions_is_said(width: str) -> None:
    """Fractions pass, so nothing but whole positions went through the type."""

    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        whole = np.asarray(positions) == np.floor(positions)
        held = np.asarray(positions).astype(np.int64).astype(width).astype(np.float64)
        return posref.sinusoidal(np.where(whole, held, positions), dim, **options)

    assert f"if positions are held in {width}: " in told(sinusoidal, "sinusoidal")["text"]


def test_an_integer_type_of_the_result_is_said() -> None:
    def deberta_rows(relative: Any, /, **options: Any) -> Any:
        return posref.deberta_rows(relative, **options).astype(np.uint8).astype(np.int64)

    assert "if the result is held in uint8." in told(deberta_rows, "deberta_rows")["text"]


def test_an_argument_that_is_negated_is_named() -> None:
    def cumulative_rope(x: Any, increments: Any, start: Any, /, **options: Any) -> Any:
        return posref.cumulative_rope(x, increments, -start, **options)

    assert "if start is negated." in told(cumulative_rope, "cumulative_rope")["text"]


def test_a_missing_option_is_named_by_the_number_that_it_has_instead() -> None:
    def positions_from_mask(mask: Any, /, *, padding: int) -> Any:
        return posref.positions_from_mask(mask, padding=0)

    assert "if padding is 0 (asked: " in told(positions_from_mask, "positions_from_mask")["text"]


def test_two_passing_cases_among_many_failing_ones_are_named_and_no_number_of_theirs() -> None:
    """The one case that passes has an even number of channels, by chance."""

    def decomposed_bias(q: Any, h: Any, w: Any, /, **options: Any) -> Any:
        out = np.array(posref.decomposed_bias(q, h, w, **options))
        return out if out.size < 2 else out + np.sin(np.arange(out.size)).reshape(out.shape).astype(out.dtype)

    text = told(decomposed_bias, "decomposed_bias")["text"]
    assert "odd number" not in text
    assert "Of the cases that have values, only decomposed_bias/" in text


def test_each_wrong_call_of_a_sequence_is_counted() -> None:
    """Calls are counted from 1, as the lines of failures count them, and none is left out."""

    def wrong_in(*counts: int) -> str:
        def shaw_scores(q: Any, *arrays: Any, **options: Any) -> Any:
            out = posref.shaw_scores(q, *arrays, **options)
            return out + np.sin(np.arange(out.size)).reshape(out.shape).astype(out.dtype) if q.shape[-2] in counts else out

        shaw_scores.dtypes = ("float32",)  # type: ignore[attr-defined]
        report = check_call(shaw_scores, op="shaw_scores", case="shaw_scores/sequence/decode")
        found = report.operations[0].diagnosis
        assert found is not None
        return str(found["text"])

    assert "In shaw_scores/sequence/decode, 2 of 3 calls are wrong: 1 and 3." in wrong_in(4)
    assert "1 of 3 calls is wrong: 2." in wrong_in(1)
    assert "of 3 calls" not in wrong_in(1, 4)


@pytest.mark.thorough
def test_a_number_of_the_one_passing_case_is_no_trait_of_the_others() -> None:
    """The bias of two channels is 0, for any slope: of all widths it alone passes."""

    def sandwich(q: Any, k: Any, /, *, heads: int, **options: Any) -> Any:
        wrong = np.arange(heads) / np.arange(1, heads + 1)
        return (posref.sandwich(q, k, heads=heads, **options) * wrong[:, None, None]).astype(np.float32)

    assert "Of the cases that have values, only sandwich/cosines/two-channels passes." in told(sandwich, "sandwich")["text"]


def test_a_place_that_few_units_have_by_chance_is_not_said() -> None:
    def sliding_window(q: Any, k: Any, /, *, window: int, sides: str, **options: Any) -> Any:
        seen = posref.sliding_window(q, k, window=window, sides=sides, **options)
        return seen & (k[..., None, :] - q[..., :, None] != window - 1) if sides == "both" else seen

    text = told(sliding_window, "sliding_window")["text"]
    assert "Exactly the cases with counting=without_query and sides=both fail." in text
    assert "before the last" not in text


def test_an_option_that_does_not_arrive_has_its_default() -> None:
    """Its namesake of the sinusoids inside is another option."""

    def sine_2d(mask: Any, dim: int, /, *, scale: float = 0.0, **options: Any) -> Any:
        return posref.sine_2d(mask, dim, **options)

    assert "if scale is 6.28318531 (asked: 3, 5)." in told(sine_2d, "sine_2d")["text"]


@pytest.mark.thorough
def test_one_axis_with_the_positions_of_another_is_told() -> None:
    def mrope(x: Any, positions: Any, /, **options: Any) -> Any:
        return posref.mrope(x, np.stack([positions[min(k, 1)] if k == 2 else p for k, p in enumerate(positions)]), **options)

    assert "if positions along axis 2 are those of axis 1." in told(mrope, "mrope")["text"]


def test_reals_of_a_narrower_dtype_are_told() -> None:
    def cumulative_angles(increments: Any, start: Any, /, **options: Any) -> Any:
        out = round_to(posref.cumulative_angles(increments, start, **options), "bfloat16")
        return round_to(np.asarray(out) * (1 + np.arange(out.shape[-2])[:, None] % 2), "bfloat16").astype(start.dtype)

    assert "The wrong values are numbers that bfloat16 holds." in told(cumulative_angles, "cumulative_angles")["text"]


def test_another_dtype_has_no_other_name() -> None:
    """Float16 alone would be explained by another place of eps too."""

    def norm_rope(x: Any, weight: Any, cos: Any, sin: Any, /, *, eps: float, **options: Any) -> Any:
        return posref.norm_rope(x, weight, cos, sin, eps=1e-5, **options)

    norm_rope.dtypes = ("float32", "float16")  # type: ignore[attr-defined]
    said = [op.diagnosis["text"] for op in check_call(norm_rope, op="norm_rope").operations if op.diagnosis]
    assert len(said) == 2
    for text in said:
        assert "if eps is 1e-05 (asked: " in text
        assert "norm-eps" not in text


@pytest.mark.thorough
def test_what_explains_one_dtype_is_no_explanation_of_a_few_cases_of_another() -> None:
    """A table with one frequency does not tell the base."""

    def sinusoidal(positions: Any, dim: int, /, *, dtype: Any, base: float = 10_000.0, **options: Any) -> Any:
        return posref.sinusoidal(positions, dim, base=500.0 if dtype == np.float16 else 1000.0, dtype=dtype, **options)

    sinusoidal.dtypes = ("float32", "float16")  # type: ignore[attr-defined]
    single, half = (op.diagnosis["text"] for op in check_call(sinusoidal, op="sinusoidal").operations if op.diagnosis)
    assert "if base is 1000 (asked: " in single
    assert "if base is 500 (asked: " in half
    assert "base is 1000 " not in half


def test_shapes_come_first_where_most_failing_cases_have_no_values() -> None:
    def alibi(q: Any, k: Any, /, **options: Any) -> Any:
        return np.swapaxes(posref.alibi(q, k, **options), -1, -2)

    text = told(alibi, "alibi")["text"]
    assert re.match(r"\d+ cases gave no values to compare: out must have shape \(1, 1, 4\)", text)


def test_values_come_first_where_as_many_failing_cases_have_none() -> None:
    wrong, silent = [case for case in stored("alibi") if case.kind == "value" and "float32" in case.dtypes][:2]
    call = wrong.calls[0]
    outputs = {name: -x for name, x in call.expected.items()}
    answers = [(Answer(wrong, "float32", [outputs]), True), (Answer(silent, "float32", []), True)]
    text = diagnose("alibi", answers, "angle32", messages={silent.id: "it has no shape"})["text"]
    assert text.startswith("your output equals the definition, within angle32, if ")
    assert text.endswith(f" 1 case gave no values to compare: it has no shape ({silent.id}).")


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
