"""Cases with many tokens, queries or keys, and with positions beyond 2**17, of every operation that has them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.scaling import (
    DynamicNTK,
    DynamicYaRN,
    Linear,
    Llama3,
    LongRoPE,
    NTKAlpha,
    NTKAware,
    NTKFixed,
    NTKMixed,
    Proportional,
    Scaling,
    YaRN,
    YaRNByTurns,
)  # fmt: skip
from posref.spec import REGISTRY

from ...model import Case
from .facts import facts_of
from .made_calls import call, has_one_position, is_bounded, letters, shifted, spread
from .second_cases import rotates_alone, with_scaling

TWENTY = 2**20
LISTS = (1.0, 1.5, 4.0), (2.0, 6.0, 16.0)
SCALINGS: dict[str, tuple[Scaling, dict[str, Any]]] = {
    "linear": (Linear(8.0), {}),
    "ntk": (NTKAware(4.0), {}),
    "ntk-alpha": (NTKAlpha(100.0), {}),
    "ntk-fixed": (NTKFixed(8.0), {}),
    "ntk-mixed": (NTKMixed(8.0), {}),
    "ntk-mixed-half": (NTKMixed(6.0, mix=0.5), {}),
    "dynamic": (DynamicNTK(4.0, 32768), {"length": TWENTY}),
    "llama3": (Llama3(16.0, 8192), {}),
    "llama3-small": (Llama3(4.0, 600), {}),
    "yarn": (YaRN(4.0, 262144), {}),
    "yarn-given": (YaRN(16.0, 65536, beta_fast=24, beta_slow=2, attention_factor=1.125), {}),
    "yarn-turns": (YaRNByTurns(8.0, 131072), {}),
    "yarn-dynamic": (DynamicYaRN(65536, beta_fast=20, beta_slow=2, truncate=False), {"length": TWENTY}),
    "longrope": (LongRoPE(*LISTS, 4096, max_length=TWENTY), {"length": TWENTY}),
    "longrope-short": (LongRoPE(*LISTS, TWENTY, max_length=4 * TWENTY), {"length": TWENTY}),
    "longrope-given": (LongRoPE(*LISTS, 4096, max_length=TWENTY, attention_factor=1.25), {"length": TWENTY - 7}),
    "proportional": (Proportional(0.75, factor=8.0), {}),
}
FEW = ("linear", "dynamic", "yarn-given", "longrope", "longrope-short")  # of what is made of rotations
FAR = (131072, 1000003, 7, 262143, 131079, 1048575)


def far(count: int) -> npt.NDArray[Any]:
    """Return positions beyond 2**17, with one near."""
    return np.asarray([FAR[i % len(FAR)] + i // len(FAR) for i in range(count)])


def _named(op: str, name: str, comment: str = "", params: dict[str, Any] | None = None, **how: Any) -> Case:
    options, arrays = call(op, name, params, **how)
    return Case(f"{op}/{name}", options, arrays, comment)


def _long(op: str) -> Iterator[Case]:
    """Yield calls with more tokens than a tile holds: one head, few lanes."""
    small: dict[str, Any] = {"G": 1, "g": 1, "H": 1}
    if "Q" in letters(op):
        yield _named(op, "long/keys", places=shifted(0), Q=2, K=257, **small)
        yield _named(op, "long/queries", places=spread, Q=131, K=3, **small)
        for queries, keys in ((9, 12), (17, 18), (33, 48)):
            yield _named(op, f"long/{keys}-keys", places=shifted(0), Q=queries, K=keys, **small)
    elif {"T", "*P"} & letters(op) and not has_one_position(op):
        yield _named(op, "long/tokens", "from 0 on", places=shifted(0), T=131, **small)
        yield _named(op, "long/no-order", places=spread, T=193, **small)


def _distant(op: str) -> Iterator[Case]:
    """Yield calls with positions beyond 2**17, with every scaling that the operation may have."""
    if is_bounded(op):
        return
    params = {**facts_of(op).options, "centre": 1000000} if "centre" in REGISTRY[op].domains else None
    yield _named(op, "distant/plain", "", params, places=far)
    if "scaling" in REGISTRY[op].domains:
        for name in SCALINGS if rotates_alone(op) else FEW:
            scaling, options = SCALINGS[name]
            params = {**with_scaling(op), "scaling": scaling, **options}
            yield _named(op, f"distant/{name}", "", params, places=far)


def possible(op: str) -> Iterator[Case]:
    """Yield the cases of an operation, those that it leaves out too."""
    if facts_of(op).usual is not None:
        yield from (*_long(op), *_distant(op))


def cases(op: str) -> Iterator[Case]:
    """Yield the cases of an operation that it does not leave out."""
    yield from (case for case in possible(op) if facts_of(op).needs(case.id))
