"""Cases of the further context extensions of RoPE, at rope_frequencies, through rope and in rotation_matrix."""

from typing import Any

from posref.scaling import (
    DynamicYaRN,
    LongRoPE,
    NTKAlpha,
    NTKFixed,
    NTKMixed,
    Proportional,
    Scaling,
    YaRNByTurns,
)

from ..model import Case, Flag, Step
from .numbers import floats
from .rope import BASE, seed_of, sequence

FLAGS = {
    "ntk-alpha": Flag("alpha ignored, or not raised to d/(d-2)"),
    "ntk-fixed": Flag("the base multiplied, and the division by s^(2/d) forgotten"),
    "ntk-mixed": Flag("pairs counted from 0, or the exponent fixed"),
    "yarn-turns": Flag("the paper's ramp over turns and the code's ramp over the pair's index taken for each other"),
    "yarn-dynamic": Flag("YaRN's factor fixed, or its factor on cos and sin not following the length"),
    "longrope-switch": Flag(
        "always the short list, or always the long one, or the switch at the original length itself",
        "mlx-lm #660, #707, mlxcel #1358, TVM #18422",
    ),
    "longrope-gain": Flag("the factor on cos and sin dropped, or from the wrong ratio"),
    "longrope-mscale": Flag("an override for one of the lists ignored, or used for both", "mlx-lm #660, mlxcel #1358"),
    "longrope-stale": Flag("the list of an earlier call kept"),
    "proportional": Flag(
        "the exponent's denominator is the rotated part, or the wrong channels rotate", "neuronx-distributed-inference #106"
    ),
}

PHI35_SHORT = (
    1.0, 1.0199999809265137, *(1.0299999713897705,) * 2, *(1.0499999523162842,) * 5, 1.0699999332427979, 1.0999999046325684,
    1.1099998950958252, *(1.1599998474121094,) * 2, 1.1699998378753662, 1.2899998426437378, 1.339999794960022,
    1.679999828338623, 1.7899998426437378, 1.8199998140335083, 1.8499997854232788, 1.8799997568130493, 1.9099997282028198,
    1.9399996995925903, 1.9899996519088745, *(2.0199997425079346,) * 6, *(2.0299997329711914,) * 9, 2.0799996852874756,
    2.0899996757507324, 2.189999580383301, 2.2199995517730713, 2.5899994373321533, 2.729999542236328, 2.749999523162842,
    2.8399994373321533,
)  # fmt: skip
PHI4_LONG = (
    1, 1.118320672, 1.250641126, 1.398617824, 1.564103225, 1.74916897, 1.956131817, 2.187582649, 2.446418898, 2.735880826,
    3.059592084, 3.421605075, 3.826451687, 4.279200023, 4.785517845, 5.351743533, 5.984965424, 6.693110555, 7.485043894,
    8.370679318, 9.36110372, 10.4687158, 11.70738129, 13.09260651, 14.64173252, 16.37415215, 18.31155283, 20.47818807,
    22.90118105, 25.61086418, 28.64115884, 32.03, 32.1, 32.13, 32.23, 32.6, 32.61, 32.64, 32.66, 32.7, 32.71, 32.93, 32.97,
    33.28, 33.49, 33.5, 44.16, 47.77,
)  # fmt: skip
PHI4 = LongRoPE((1.0,) * 48, PHI4_LONG, 4096, max_length=131072)  # Phi-4-mini, 96 of 128 lanes
SIX = (1.0, 1.25, 1.5, 2.5, 3.0, 4.5)
SIX_LONG = (1.5, 2.25, 4.0, 7.0, 11.0, 16.5)
SMALL = LongRoPE(SIX, SIX_LONG, 32, max_length=256)
GIVEN_FACTOR = LongRoPE(SIX, SIX_LONG, 48, max_length=96, factor=6.0)
MSCALES = LongRoPE(SIX, SIX_LONG, 20, max_length=200, short_mscale=1.125, long_mscale=1.375)
ONE_MSCALE = LongRoPE(SIX[:5], SIX_LONG[:5], 24, factor=3.0, long_mscale=0.875)
TURNS = YaRNByTurns(6, 500)
TURNS_NARROW = YaRNByTurns(4, 300, beta_fast=9, beta_slow=2.5)


def _three(name: str, flags: str, dim: int, scaling: Scaling, comment: str = "", **options: Any) -> tuple[Case, ...]:
    """Return cases of one extension: its frequencies, rotations of both layouts, and the matrix."""
    words, options = tuple(flags.split()), {"base": BASE, "scaling": scaling, **options}
    last = max(options.get("length") or 300, 2) - 1
    x = floats(*((3, 2, 5) if dim <= 24 else (5,)), dim, seed=seed_of(name), bits=24)
    y = floats(5, dim, seed=seed_of(name) + 1)
    positions = (0, 1, 7, last // 2, last)
    mixed = "interleaved_to_half" if dim % 4 else "interleaved"
    cases = (
        Case(f"rope_frequencies/{name}", {"dim": dim, **options}, {}, words, comment),
        Case(f"rope/{name}", {**options, "layout": "half"}, {"x": x, "positions": positions}, words, comment),
        Case(f"rope/{name}-{mixed.replace('_', '-')}", {**options, "layout": mixed}, {"x": y, "positions": positions}, words),
    )
    if dim > 24:  # a matrix of a real head's size says no more
        return cases
    matrix = {"dim": dim, **options, "layout": mixed}
    return (*cases, Case(f"rotation_matrix/{name}", matrix, {"position": last}, words, comment))


def _refused(name: str, dim: int, scaling: Scaling, comment: str, **options: Any) -> Case:
    params = {"dim": dim, "base": BASE, "scaling": scaling, **options}
    return Case(f"rope_frequencies/refused/{name}", params, {}, ("refuse-option",), comment, "reject")


def _lengths(scaling: Scaling, dim: int, lengths: tuple[int, ...]) -> tuple[Case, ...]:
    """Return sequences in which the length rises, falls and meets the original one."""
    name = type(scaling).__name__.lower()
    options = {"base": BASE, "scaling": scaling}
    frequencies = tuple(Step({"dim": dim, **options, "length": n}) for n in lengths)
    calls = tuple(
        Step(
            {**options, "layout": "half", "length": n},
            {"x": floats(3, dim, seed=seed_of(f"{name}{i}")), "positions": (0, n // 3, n - 1)},
        )
        for i, n in enumerate(lengths)
    )
    flag, comment = "longrope-stale" if isinstance(scaling, LongRoPE) else "yarn-dynamic", "long, short, at the limit, long"
    return (
        sequence(f"rope_frequencies/sequence/{name}", flag, comment, frequencies),
        sequence(f"rope/sequence/{name}", flag, comment, calls),
    )


CASES = (
    *_three("ntk-alpha/hunyuan", "ntk-alpha true-size", 128, NTKAlpha(1000.0), "HunYuan"),
    *_three("ntk-alpha/small", "ntk-alpha", 10, NTKAlpha(6.5), base=5e5),
    *_three("ntk-alpha/less", "ntk-alpha", 12, NTKAlpha(0.75)),
    *_three("ntk-fixed/4", "ntk-fixed", 20, NTKFixed(4.0)),
    *_three("ntk-fixed/two-pairs", "ntk-fixed", 4, NTKFixed(2.5), base=500.0),
    *_three("ntk-mixed/4", "ntk-mixed", 20, NTKMixed(4.0)),
    *_three("ntk-mixed/mix", "ntk-mixed", 12, NTKMixed(6.0, mix=0.5), base=5e5),
    *_three("yarn-turns/6", "yarn-turns", 20, TURNS),
    *_three("yarn-turns/narrow", "yarn-turns", 12, TURNS_NARROW, base=500.0),
    *_three("yarn-turns/step", "yarn-turns yarn-singular", 14, YaRNByTurns(5, 400, beta_fast=3, beta_slow=3)),
    *_three("yarn-turns/llama-2", "yarn-turns true-size", 128, YaRNByTurns(16, 4096), "Llama 2, 64k"),
    *_three("yarn-dynamic/below", "yarn-dynamic", 12, DynamicYaRN(64), length=33),
    *_three("yarn-dynamic/far-below", "yarn-dynamic", 14, DynamicYaRN(900, beta_fast=16), base=500.0, length=100),
    *_three("yarn-dynamic/at", "yarn-dynamic", 10, DynamicYaRN(64), length=64),
    *_three("yarn-dynamic/one-above", "yarn-dynamic", 12, DynamicYaRN(64), length=65),
    *_three("yarn-dynamic/above", "yarn-dynamic", 20, DynamicYaRN(600, beta_fast=20, beta_slow=2), length=3000),
    *_three("yarn-dynamic/unrounded", "yarn-dynamic yarn-truncate", 24, DynamicYaRN(700, truncate=False), length=1500),
    *_three("longrope/below", "longrope-switch longrope-gain", 12, SMALL, length=20),
    *_three("longrope/at", "longrope-switch", 12, SMALL, "the short list still", length=32),
    *_three("longrope/one-above", "longrope-switch", 12, SMALL, length=33),
    *_three("longrope/factor", "longrope-gain", 12, GIVEN_FACTOR, "factor goes before max_length", length=49, base=5e5),
    *_three("longrope/mscale-short", "longrope-mscale", 12, MSCALES, length=20),
    *_three("longrope/mscale-long", "longrope-mscale", 12, MSCALES, length=21),
    *_three("longrope/mscale-far", "longrope-mscale", 12, MSCALES, base=5e5, length=190),
    *_three("longrope/factor-short", "longrope-gain", 12, GIVEN_FACTOR, length=31),
    *_three("longrope/one-mscale", "longrope-mscale longrope-gain", 10, ONE_MSCALE, "no override for the short list", length=9),
    *_three("longrope/one-mscale-long", "longrope-mscale", 10, ONE_MSCALE, length=25),
    *_three("longrope/given", "longrope-gain", 12,
            LongRoPE(SIX, SIX_LONG, 30, attention_factor=1.0625, short_mscale=1.5), length=12),
    *_three("longrope/shorter", "longrope-gain", 12, LongRoPE(SIX_LONG, SIX, 64, max_length=32), "no factor for s <= 1",
            length=70),
    *_three("longrope/phi-4-mini", "longrope-switch true-size", 96, PHI4, length=4097),
    *_three("longrope/phi-3.5-mini", "longrope-switch true-size", 96,
            LongRoPE(PHI35_SHORT, PHI4_LONG, 4096, factor=32.0), "its short list", length=4096),
    *_three("proportional/gemma-4", "proportional true-size", 512, Proportional(0.25), base=1e6),
    *_three("proportional/small", "proportional", 20, Proportional(0.5, factor=2.0)),
    *_three("proportional/factor", "proportional", 12, Proportional(0.75, factor=6.5), base=5e5),
    *_three("proportional/odd-pairs", "proportional", 14, Proportional(0.3), "2 of 7 pairs", base=5e5),
    *_three("proportional/all", "proportional", 6, Proportional(1.0)),
    *_three("proportional/none", "proportional", 10, Proportional(0.0), "nothing turns"),
    *_lengths(SMALL, 12, (40, 9, 33, 32, 64)),
    *_lengths(DynamicYaRN(48), 12, (100, 17, 49, 48, 120)),
    _refused("longrope-length", 12, SMALL, "LongRoPE needs the length"),
    _refused("longrope-list", 10, SMALL, "a list of six entries for five pairs", length=5),
    _refused("longrope-ratio", 12, LongRoPE(SIX, SIX_LONG, 32), "nothing says the factor on cos and sin", length=5),
    _refused("longrope-zero", 12, LongRoPE((0.0, *SIX[1:]), SIX_LONG, 32, factor=2.0), "an entry of 0 divides", length=5),
    _refused("yarn-dynamic-length", 12, DynamicYaRN(64), "DynamicYaRN needs the length"),
    _refused("yarn-turns-betas", 12, YaRNByTurns(4, 2048, beta_fast=1, beta_slow=8), "fast pairs turn more often"),
    _refused("proportional-share", 12, Proportional(1.5), "more than the head"),
    _refused("ntk-alpha-dim", 2, NTKAlpha(4.0), "the power d/(d-2) is infinite"),
    _refused("ntk-mixed-factor", 12, NTKMixed(0.0), "a factor of 0"),
)  # fmt: skip
