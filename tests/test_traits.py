"""Traits of cases in words, as scopes and diagnoses say them, and the failing cases that a report shows first."""

from typing import Any

import numpy as np
import pytest
from sample import stored

import posref
from posref.conformance import check_call
from posref.conformance.judge import Verdict
from posref.conformance.model import Call, LoadedCase
from posref.conformance.reports.document import class_names, failing
from posref.conformance.vocabulary.traits import HAS, HAVING, LACKS, traits_of, which_alternative


def told(function: Any, op: str) -> str:
    """Return the diagnosis of a function, from stored cases alone."""
    found = check_call(function, op=op, experiments=0).operations[0].diagnosis
    return str(found["text"])


def test_every_trait_has_words_for_having_and_for_lacking_it() -> None:
    assert set(HAVING) <= set(HAS) == set(LACKS)
    assert all(HAS[axis] != LACKS[axis] for axis in HAS)


def test_ids_below_that_of_the_padding_are_told() -> None:
    def positions_from_tokens(tokens: Any, /, *, padding_idx: int) -> Any:
        return posref.positions_from_tokens(np.maximum(tokens, padding_idx), padding_idx=padding_idx)

    assert "Exactly the cases with an id below the padding's fail." in told(positions_from_tokens, "positions_from_tokens")


@pytest.mark.parametrize(
    ("op", "shapes", "way"),
    [
        ("to_float8", {"x": (3, 1, 9), "scale": (3, 1)}, 1),
        ("to_float8", {"x": (3, 1, 9), "scale": (3, 1, 1)}, 2),
        ("cumulative_rope", {"x": (2, 3, 5, 8), "increments": (2, 3, 5, 4), "start": (2, 3, 4)}, 0),
        ("cumulative_rope", {"x": (2, 3, 5, 8), "increments": (5, 4), "start": (4,)}, 1),
        ("cumulative_rope", {"x": (2, 3, 5, 8), "increments": (2, 1, 5, 4), "start": (2, 1, 4)}, 2),
        ("cumulative_rope", {"x": (2, 3, 5, 8), "increments": (3, 1, 5, 4), "start": (3, 1, 4)}, 0),  # fits none
    ],
)
def test_leading_axes_that_do_not_broadcast_are_the_same_in_all_arrays(op: str, shapes: Any, way: int) -> None:
    assert which_alternative(op, Call({}, {name: np.zeros(shape) for name, shape in shapes.items()})) == way


def test_a_matrix_of_one_column_is_told() -> None:
    def permute_qk_weights(weight: Any, /, **options: Any) -> Any:
        return weight.copy() if weight.shape[-1:] == (1,) else posref.permute_qk_weights(weight, **options)

    assert "with one column" in told(permute_qk_weights, "permute_qk_weights")


def test_cases_that_are_larger_than_all_others_are_told_by_their_size() -> None:
    def attention_logits(q: Any, k: Any, /, **options: Any) -> Any:
        out = np.array(posref.attention_logits(q, k, **options))
        out[..., 64:] += 1
        return out.astype(q.dtype)

    assert " keys or more (12 is right)" in told(attention_logits, "attention_logits")


def test_the_trait_of_single_calls_is_told_and_their_sequences_are_counted() -> None:
    def sliding_window(q_positions: Any, k_positions: Any, /, **options: Any) -> Any:
        out = posref.sliding_window(q_positions, k_positions, **options)
        return ~out if q_positions.shape[-1] == 1 else out

    text = told(sliding_window, "sliding_window")
    assert text.startswith("Exactly the cases with one query fail. In these your output matches the reference")
    assert "if True forbids" in text


def test_a_result_of_another_shape_is_told() -> None:
    text = told(lambda positions, /: posref.packed_documents(positions)[..., :-1], "packed_documents")
    assert "gave values to compare: out must have shape " in text


def test_integers_and_masks_have_no_class_and_no_error() -> None:
    assert class_names("t5_buckets", "angle64", "angle32") == ("exact", "exact")
    assert class_names("t5_buckets", None, "angle32") == ("none", "exact")
    assert class_names("rope", "angle64", "angle32") == ("angle64", "angle32")
    verdict = Verdict("out", "fail", 9, 9, index=(3,), got=2.0, expected=1.0, error=1.0, position=-4.0, exact=True)
    assert verdict.message("angle32") == "out[3] at position -4: got 2, expected 1"


@pytest.mark.thorough(dear=True)
def test_positions_keep_their_sign() -> None:
    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        return posref.sinusoidal(np.maximum(positions, -1), dim, **options)

    operation = check_call(sinusoidal, op="sinusoidal").operations[0]
    asked = [np.ravel(call.inputs["positions"]) for case in stored("sinusoidal") for call in case.calls]
    nearest, *others = sorted({p for p in np.concatenate(asked).tolist() if p < -1}, reverse=True)
    assert operation.first_failing_position == nearest
    assert others
    assert all(c.worst is None or c.worst["position"] < -1 for c in operation.failing)


def test_the_smallest_plain_call_comes_first() -> None:
    def case(id_: str, kind: str = "value", flags: tuple[str, ...] = (), call: str = "", values: int = 1) -> dict[str, Any]:
        return {"id": id_, "kind": kind, "verdict": "fail", "flags": flags, "call": call, "values": values}

    cases = [
        case("sequence", kind="sequence"), case("view", flags=("non-contiguous",)), case("options", call="a=1, b=2"),
        case("large", call="a=1", values=9), case("small", call="a=1", values=3),
    ]  # fmt: skip
    assert [c["id"] for c in failing(cases)] == ["small", "large", "options", "view", "sequence"]


@pytest.mark.parametrize(
    ("mask", "word"),
    [
        (np.tri(4, dtype=bool), "causal"),
        (np.tri(2, 4, 2, dtype=bool), "causal"),
        (np.tri(2, 4, dtype=bool), "other"),
        (np.tri(4, 2, -2, dtype=bool), "causal"),
        (np.tri(4, k=1, dtype=bool), "other"),
    ],
)
def test_in_a_causal_mask_the_last_query_sees_the_last_key(mask: Any, word: str) -> None:
    """Of a decoder, which has more keys than queries, too."""
    queries, keys = mask.shape
    inputs = {"q": np.ones((queries, 8)), "k": np.ones((keys, 8)), "v": np.ones((keys, 8)), "mask": mask}
    call = Call({}, inputs, {"out": np.ones((queries, 8))})
    case = LoadedCase("attention/a/case", "attention", "value", "core", "", ("float32",), (call,))
    assert traits_of(case, "float32").words["masks"] == {word}
