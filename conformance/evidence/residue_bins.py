"""Residue bins: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Step, after, argument, before, cases_of, deviations_of, form_case, narrowed, option
from .tools.hints import BRANCH, INTEGERS, SIGN

OP = "residue_bins"
USUAL: dict[str, Any] = {"left": 2, "right": 1, "order": "query_minus_key", "outside": "last"}
KERNEL: tuple[dict[str, Any], ...] = (USUAL,)
KERNEL_SIZES: dict[str, Any] = {"Q": 129, "K": 257, "R": (2,)}
ROW, COLUMN = "query_minus_key", "key_minus_query"

_cases = cases_of(OP)

# Residues, chains, entities and copies of seven tokens; tokens 2 and 3 are atoms of one residue.
RESIDUE = np.asarray([1, 2, 9, 9, 1, 2, 1])
CHAIN = np.asarray([1, 1, 1, 1, 2, 2, 3])
ENTITY = np.asarray([1, 1, 1, 1, 1, 1, 2])
COPY = np.asarray([1, 1, 1, 1, 2, 2, 1])
FAR = np.asarray([0, 31, 32, 33, 34, 64, 65, 66, 256, 257, 300, 2049])


def _same(ids: Any) -> Any:
    return ids[..., :, None] == ids[..., None, :]


def _case(
    name: str, q: Any, k: Any = None, same: Any = None, left: int = 2, right: int = 2, order: str = ROW,
    outside: str = "last", comment: str = "", **rest: Any,
) -> Case:  # fmt: skip
    """Return a case of residue_bins; keys are the queries unless given."""
    inputs = {"q_residues": q, "k_residues": q if k is None else k, **({} if same is None else {"same": same})}
    options = {"left": left, "right": right, "order": order, "outside": outside}
    return _cases(name, options, inputs, comment, **rest)


def _form(name: str, q: Any, k: Any, same: Any, comment: str = "", form: str = "") -> Case:
    return form_case(OP, name, {"q_residues": q, "k_residues": k, "same": same}, USUAL, comment, form=form)


BATCH = np.stack([RESIDUE, RESIDUE[::-1] + 3])
CHAINS = np.stack([CHAIN, CHAIN[::-1]])


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("chains/small", (4, 6, 5, 1), None, _same(np.asarray([1, 1, 1, 2])), tier="smoke"),
        _case("chains/chain-rule", COPY, None, ~_same(CHAIN), 1, 1, comment="Boltz-1's chain bins"),
        _case("chains/chai", FAR, None, _same(np.asarray([1] * 5 + [2] * 7)), 33, 32),
        _case("chains/one-side", RESIDUE, None, _same(CHAIN), 0, 4),
        _case("monomer/bfloat16", (255, 256, 257, 258, 299, 298, 300), left=32, right=32),
        _case("monomer/far", (0, 2047, 2049, 65537, 131071), left=8, right=8),
        _case("empty/queries", np.zeros(0, dtype=np.int64), (1, 2)),
        _form("batch-one", BATCH[:1], BATCH[:1, :4], _same(CHAINS)[:1, :, :4]),
        _form("length-one", (4,), (3,), np.ones((1, 1), dtype=bool)),
        Case(f"{OP}/sequence/crops", kind="sequence", comment="one crop after another",
             steps=tuple(Step(USUAL, {"q_residues": q, "k_residues": q, "same": _same(c)})
                         for q, c in ((RESIDUE, CHAIN), (RESIDUE[3:], CHAIN[3:]), (RESIDUE + 40, ENTITY)))),
        _case("refused/fractions", (1.5, 2.0), comment="indices are integers", kind="reject"),
        _case("refused/mask", (1, 2), None, np.ones((2, 2)), comment="a mask is boolean", kind="reject"),
    )  # fmt: skip


def _ignored(*args: Any, same: Any = None, **options: Any) -> Any:
    return args, {**options, "same": None if same is None else np.ones_like(same)}


def _inverted(*args: Any, same: Any = None, **options: Any) -> Any:
    return args, {**options, "same": None if same is None else ~np.asarray(same)}


def _other_bin(bins: Any, *args: Any, left: int, right: int, outside: str, same: Any = None, **options: Any) -> Any:
    """Give pairs of two chains the last of the clipped bins."""
    return bins if same is None else np.where(np.asarray(same), bins, left + right if outside == "last" else 1)


def _outside(given: str, used: str) -> Any:
    return option(outside=lambda word: used if word == given else word)


_deviation = deviations_of(OP)
_bins = deviations_of("offset_bins")
CHAINS_APART = "Pairs of two chains have a bin of their own, after all others: 2k + 1."
LIMITS = "Clip the offset to -left and right, then add left."

DEVIATIONS = (
    _deviation("residue-sign", "the offset has the wrong sign",
               option(order=lambda word: COLUMN if word == ROW else ROW), hint=SIGN),
    _deviation("residue-row-less-column", "the offset is always row less column", option(order=lambda word: ROW), hint=BRANCH),
    _deviation("residue-chains-ignored", "pairs of two chains are counted as one chain", before(_ignored), hint=CHAINS_APART),
    _deviation("residue-rule", "the mask is of the pairs that are not comparable", before(_inverted),
               hint="Chain bins: AlphaFold 3's code counts copies of the same entity, Boltz-1 those of other chains."),
    _deviation("residue-no-bin-of-its-own", "pairs of two chains share a bin with clipped offsets", after(_other_bin),
               hint=CHAINS_APART),
    _deviation("residue-first", "the bin of other chains is 0", _outside("last", "first"), hint=CHAINS_APART),
    _deviation("residue-last", "the bin of padding is the last", _outside("first", "last"),
               hint="ESMFold keeps bin 0 for padding: add 1 to all others."),
    _deviation("residue-sides-exchanged", "left and right are exchanged",
               before(lambda *args, left, right, **options: (args, {**options, "left": right, "right": left})), hint=LIMITS),
    _bins("residue-modulo", "far offsets wrap around",
          lambda function: lambda offsets, /, *, left, right: (offsets + left) % (left + right + 1), hint=LIMITS),
    _bins("residue-clipped-early", "the farthest bins are missing", lambda f: lambda x, /, *, left, right: np.clip(
          x, 1 - left, right - 1) + left, hint=LIMITS),
    _bins("residue-off-by-one", "every bin is one too low, but the first", lambda f: lambda x, /, *, left, right: np.maximum(
          np.clip(x, -left, right) + left - 1, 0), hint=LIMITS),
    _deviation("residue-bfloat16", "indices are held in bfloat16", before(lambda q, k, /, **o: (
               tuple(narrowed("bfloat16")(n).astype(np.int64) for n in (q, k)), o)), hint=INTEGERS),
    _deviation("residue-arange", "rows are 0, 1, 2, ...",
               argument(0, lambda q: np.broadcast_to(np.arange(q.shape[-1]), q.shape)),
               hint="Pass the residues' own indices: a crop does not begin at 0."),
)  # fmt: skip
