"""The picture of the lesson on relative positions: what six methods add to the same logits."""

import numpy as np
import numpy.typing as npt

import posref
from posref import plots

TOKENS, WIDTH = 12, 16
Numbers = npt.NDArray[np.float64]


def additions() -> dict[str, Numbers]:
    """Return what each method adds to the logits of drawn queries and keys, over its largest number."""
    rng = np.random.default_rng(3)
    places = np.arange(TOKENS)
    q, k = rng.standard_normal((2, 1, TOKENS, WIDTH))
    nothing = np.zeros_like(k)
    rows = posref.sinusoidal(places, WIDTH, layout="interleaved", dtype=np.float64)
    learned = rng.standard_normal((9, WIDTH))
    clipped = {"left": 4, "right": 4, "order": "key_minus_query"}
    projection = rng.standard_normal((WIDTH, 1, WIDTH))
    one = np.ones(1)
    biases = {
        "sinusoids": (q + rows) @ np.swapaxes(k + rows, 1, 2) - q @ np.swapaxes(k, 1, 2),
        "Shaw": posref.shaw_scores(q, nothing, learned, places, places, **clipped),
        "Transformer-XL": posref.transformer_xl_scores(q, nothing, projection, places, places, layout="sin_cos"),
        "T5": posref.t5_bias(places, places, rng.standard_normal((12, 1)), bidirectional=True, max_distance=16),
        "ALiBi": posref.alibi(places, places, heads=1, form="distance", dtype=np.float64),
        "KERPLE": posref.kerple(places, places, one, one, form="log"),
    }
    return {name: values[0] / np.abs(values).max() for name, values in biases.items()}


def chart() -> plots.Map:
    """Return the six maps, three in a row."""
    values = np.full((2 * TOKENS + 1, 3 * TOKENS + 2), np.nan)
    for number, panel in enumerate(additions().values()):
        top, left = (step * (TOKENS + 1) for step in divmod(number, 3))
        values[top : top + TOKENS, left : left + TOKENS] = panel
    return plots.Map(
        title="sinusoids, Shaw, Transformer-XL; T5, ALiBi, KERPLE",
        x_label="key",
        y_label="query",
        seen="Above: sinusoids, Shaw and Transformer-XL. Below: T5, ALiBi and KERPLE.",
        values=values,
        unit="share of the largest",
        columns=(TOKENS,) * 3,
        rows=(TOKENS,) * 2,
    )
