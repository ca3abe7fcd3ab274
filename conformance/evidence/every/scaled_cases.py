"""Words of records: the context extensions at every operation that takes one, near and beyond 2**17 positions."""

from collections.abc import Iterator
from typing import Any

from posref.scaling import (
    Clipped,
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
)
from posref.spec import REGISTRY

from ...model import Case
from .edge_cases import one
from .facts import facts_of
from .made_calls import call, far, letters

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
    "clipped": (Clipped(2), {}),
}
FEW = ("linear", "dynamic", "yarn-given", "longrope", "longrope-short")  # of what is made of rotations
LONG = LongRoPE((1.0, 2.0, 3.0), (2.0, 4.0, 7.0), 9, max_length=36, attention_factor=1.25)
NEUTRAL = YaRN(4.0, 64, attention_factor=1.0), YaRN(12.0, 500, beta_fast=16, beta_slow=2, attention_factor=1.0)
FEW_WORDS = ("ntk-mixed", "ntk-mixed-mix", "yarn-turns", "yarn-turns-factor", "yarn-turns-betas")
EXTENDED: dict[str, dict[str, Any]] = {  # words of records at rope_frequencies, where they differ from another case
    "neutral-factor": {"scaling": NEUTRAL[0]},
    "neutral-factor-betas": {"scaling": NEUTRAL[1]},
    "ntk-mixed": {"scaling": NTKMixed(3.0)},
    "ntk-mixed-mix": {"scaling": NTKMixed(3.0, mix=1.25)},
    "yarn-dynamic": {"scaling": DynamicYaRN(80, beta_slow=2, truncate=False), "length": 300},
    "longrope-given": {"scaling": LONG, "length": 40},
    "yarn-turns": {"scaling": YaRNByTurns(3.0, 200)},
    "yarn-turns-factor": {"scaling": YaRNByTurns(3.0, 200, attention_factor=1.25)},
    "yarn-turns-betas": {"scaling": YaRNByTurns(5.0, 300, beta_fast=24, beta_slow=2, attention_factor=1.125)},
    "ntk": {"scaling": NTKAware(3.0)},
    "llama3": {"scaling": Llama3(8.0, 90)},
    "longrope-mscales": {"scaling": LongRoPE(*LISTS, 9, short_mscale=1.25, long_mscale=1.5), "length": 40},
}


def with_scaling(op: str) -> dict[str, Any]:
    """Return the options of a call that has a scaling: the lists of the scalings here are of three pairs."""
    return {**facts_of(op).options, **({"sections": [1, 1, 1]} if "sections" in REGISTRY[op].domains else {})}


def rotates_alone(op: str) -> bool:
    """Return whether an operation rotates by positions of one axis, and nothing is summed over keys afterwards."""
    domains = REGISTRY[op].domains
    return {"scaling", "layout"} <= {*domains} and "sections" not in domains and "K" not in letters(op)


def _distant(op: str) -> Iterator[Case]:
    """Yield calls with positions beyond 2**17, with every scaling that the operation may have."""
    for name in SCALINGS if rotates_alone(op) else FEW:
        scaling, options = SCALINGS[name]
        params, arrays = call(op, f"distant/{name}", {**with_scaling(op), "scaling": scaling, **options}, places=far)
        yield Case(f"{op}/distant/{name}", params, arrays)


def _rotations(op: str) -> Iterator[Case]:
    """Yield rotations with scalings, and options of theirs, that no other generated case has."""
    options = with_scaling(op)
    for layout, scaling in zip(("half", "interleaved"), NEUTRAL, strict=True):
        name, comment = f"neutral-factor-{layout}", "1 is given, not 0.1 ln s + 1"
        yield one(op, name, comment, {**options, "layout": layout, "scaling": scaling})
    if "K" in letters(op):
        yield one(op, "yarn", params={**options, "scaling": YaRN(4.0, 64)})
        yield one(op, "linear", params={**options, "scaling": Linear(2.5)})
        yield one(op, "dynamic", params={**options, "scaling": DynamicNTK(3.0, 8), "length": 40})
        return
    for name in list(EXTENDED)[2:] if rotates_alone(op) else FEW_WORDS:
        yield one(op, name, params={**options, **EXTENDED[name]})


def _frequencies(op: str) -> Iterator[Case]:
    """Yield calls of operations that make frequencies, or a table of them."""
    for name, options in EXTENDED.items():
        yield one(op, name, params={"dim": 6, "base": 10000.0, **options})


def cases(op: str) -> Iterator[Case]:
    """Yield the cases of an operation."""
    domains = REGISTRY[op].domains
    if "scaling" in domains:
        if REGISTRY[op].arrays:
            yield from _distant(op)
        yield from (_rotations if "layout" in domains else _frequencies)(op)
