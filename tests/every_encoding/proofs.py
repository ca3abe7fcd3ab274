"""How expected values are proved: a call in parts is the whole, and the second witness shares no code with the first."""

import ast
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sources import absolute_imports

import posref.conformance.witness
from posref.conformance.evidence.tools.numbers import floats
from posref.conformance.model import Case
from posref.conformance.proof import witnesses
from posref.conformance.vocabulary.axes import rows_of

from .composed import NOUNS
from .encoding import Encoding, part
from .judging import has_rows

WITNESSES = Path(posref.conformance.witness.__path__[0])
FEW = (  # of operations whose own cases have too few rows
    Case("cayley/parts/four", {}, {"skew": floats(4, 3, 3, seed=1)}),
    Case("conv_positions/parts/four", {"groups": 2}, {"x": floats(4, 3, 2, seed=1), "weight": floats(2, 1, 3, seed=2),
         "bias": floats(2, seed=3)}),
    Case("peg/parts/four", {"residual": True}, {"x": floats(4, 2, 2, 2, seed=1), "weight": floats(2, 1, 3, 3, seed=2),
         "bias": floats(2, seed=3)}),
    Case("positions_from_mask/parts/four", {"padding": 1}, {"mask": np.tri(4, 5, 1)[:, ::-1] > 0}),
    Case("positions_from_tokens/parts/four", {"padding_idx": 1}, {"tokens": 1 + np.tri(4, 5, 1, dtype=np.int64)[:, ::-1]}),
    Case("packed_documents/parts/four", {}, {"positions": np.arange(20).reshape(4, 5) % 3}),
    Case("decode_delta/parts/twelve", {}, {"positions": np.arange(72).reshape(2, 12, 3), "mask": np.ones((12, 3)) > 0}),
    Case("draft_tree/parts/four", {}, {"verified": np.arange(4), "parents": np.arange(20).reshape(4, 5) % 5 - 1}),
    Case("rotation_matrix/parts/four", {"dim": 6, "base": 500.0, "layout": "half"}, {"position": [0, 7, 300, 5]}),
)  # fmt: skip


def small_of_several_parts(encoding: Encoding) -> Case | None:
    """Return a small case of an operation whose rows make several prove."""
    op = encoding.op
    for case in (*(few for few in FEW if few.op == op), *encoding.built):
        if case.kind == "value":
            inputs = {n: np.asarray(x) for n, x in case.inputs.items()}
            shapes = witnesses.shapes_of(op, inputs, case.params)
            rows = rows_of(op, inputs, case.params, shapes)
            if witnesses._cost(rows, shapes, {}) < 4000 and len(witnesses._split(rows, shapes, witnesses.PART)) > 1:
                return case
    return None


@part(of=has_rows, dear=True)
def parts_are_bit_for_bit_the_whole(encoding: Encoding) -> None:
    op = encoding.op
    with patch.object(witnesses, "PART", 8):
        case = small_of_several_parts(encoding)
        inputs = {n: np.asarray(x) for n, x in case.inputs.items()}
        whole, _, widths = witnesses.proved(op, inputs, case.params)
        found, _, own = witnesses.proved_in_parts(op, inputs, case.params, witnesses.Effort(jobs=1))
        assert witnesses.shapes_of(op, inputs, case.params) == {n: x.shape for n, x in whole.items()}
    assert all(np.array_equal(found[n], x) and found[n].dtype == x.dtype for n, x in whole.items())
    assert {c: set(of_class) for c, of_class in own.items()} == {c: set(of_class) for c, of_class in widths.items()}
    assert all(np.array_equal(own[c][n], x) for c, of_class in widths.items() for n, x in of_class.items())


@part()
def stages_have_registered_names(encoding: Encoding) -> None:
    """Every tensor of a stage that is stored has a registered name, and the definition gives it."""
    for case in encoding.measured[:1]:
        for call in case.calls:
            _, mid = witnesses.golden_with_stages(encoding.op, call.inputs, call.params)
            assert set(mid) <= NOUNS - {"out", ""}


@part()
def second_witness_shares_no_code(encoding: Encoding) -> None:
    """It imports mpmath, the standard library and other witnesses."""
    assert_apart(WITNESSES / f"{encoding.op}.py")


def assert_apart(path: Path) -> None:
    """Fail where a second witness imports what the first is made of."""
    names = absolute_imports(ast.parse(path.read_text(encoding="utf-8")), "posref.conformance.witness")
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names) | {"mpmath", "posref"}
    of_posref = {name for name in names if name == "posref" or name.startswith("posref.")}
    here = posref.conformance.witness.__name__
    assert all(name == here or name.startswith(f"{here}.") for name in of_posref), of_posref
