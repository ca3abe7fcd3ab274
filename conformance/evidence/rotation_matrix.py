"""RoPE as a matrix: cases and known mistakes."""

from typing import Any

from posref.scaling import DynamicNTK, Llama3, NTKAware, YaRN

from .shared.rotary import BASE, DEEPSEEK_V3, EXTENDED, ROTARY, UNEQUAL, UNROUNDED
from .tools import Case, Step, sequence

USUAL: dict[str, Any] = {"dim": 6, **ROTARY}
SIZES: dict[str, Any] = {"P": ()}
GAPS = ("yarn-mscale-one", "positions-4096-at-0")


def _case(
    name: str, position: Any, dim: int, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of rotation_matrix."""
    params = {"dim": dim, "base": BASE, **params}
    return Case(f"rotation_matrix/{name}", params, {"position": position}, comment, kind, tier)


def _matrices(name: str, *calls: tuple[dict[str, Any], int]) -> Case:
    """Return a case of several calls of rotation_matrix: options and a position."""
    steps = tuple(Step({"dim": 10, "base": BASE, **options}, {"position": position}) for options, position in calls)
    return sequence(f"rotation_matrix/sequence/{name}", "on one instance", steps)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("half/small", 3, 6, tier="smoke", layout="half"),
        _case("interleaved/far", 257, 14, layout="interleaved", base=1e6),
        _case("scaling/ntk-half", 5, 6, layout="half", base=5e5, scaling=NTKAware(2.5)),
        _case("scaling/dynamic-below", 9, 6, layout="interleaved", scaling=DynamicNTK(2, 16), length=10),
        _case("scaling/llama3", 50, 20, layout="half", base=2e4, scaling=Llama3(6, 500, 2, 9)),
        _case("scaling/llama3-interleaved", 7, 12, layout="interleaved", scaling=Llama3(5, 300, 1.5, 24)),
        _case("scaling/yarn-mixed", 8, 10, layout="interleaved_to_half", scaling=UNEQUAL),
        _case("scaling/deepseek-v3", 63, 64, layout="interleaved", scaling=DEEPSEEK_V3),
        _case("yarn/unrounded", 12, 20, layout="interleaved", scaling=UNROUNDED),
        _case("yarn/unrounded-half", 31, 18, layout="half", base=150_000.0, scaling=UNROUNDED),
        _case("yarn/long-original-interleaved", 100, 48, layout="interleaved", scaling=YaRN(8, 200_000)),
        _case("yarn/zero-mscale", 5, 12, layout="half", scaling=YaRN(9, 256, mscale=0.0, mscale_all_dim=0.75)),
        _case("yarn/zero-mscale-all-dim", 9, 14, layout="interleaved", scaling=YaRN(7, 256, mscale=1.25, mscale_all_dim=0.0),),
        _matrices("cache", ({"layout": "half"}, 3), ({"layout": "half"}, 11), ({"layout": "half", "base": 500.0}, 11)),
        _matrices("cache-interleaved", ({"layout": "interleaved"}, 300), ({"layout": "interleaved"}, 2)),
        _matrices("dynamic",
                  *(({"layout": "half", "scaling": DynamicNTK(2, 16), "length": n}, n - 1) for n in (40, 16, 8, 33))),
        _matrices("dynamic-interleaved",
                  *(({"layout": "interleaved", "scaling": DynamicNTK(3, 12), "length": n}, n - 1) for n in (31, 12, 9)),),
        _case("refused/odd", 3, 5, "lanes rotate in pairs", kind="reject", layout="half"),
        *(Case(f"rotation_matrix/{case.name}", {"dim": case.dim, **case.params, "layout": case.layout},
               {"position": case.last}, case.comment) for case in EXTENDED if case.dim <= 24),
    )  # fmt: skip
