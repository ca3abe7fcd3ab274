"""At which position every value of a result stands, so that a failure can say from where on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Call

OF_PAIRS = (  # whose results end with queries and keys
    "alibi", "t5_bias", "shaw_scores", "rerope", "leaky_rerope", "self_extend", "dual_chunk", "rerope_distances",
    "leaky_rerope_distances", "self_extend_distances", "dual_chunk_distances", "sliding_window", "chunked_window",
    "lambda_window", "mla_logits", "streaming_llm", "streaming_llm_distances",
)  # fmt: skip
OF_AXES = ("axial_table", "mrope", "axial_rope", "mixed_rope", "liere", "cayley_string", "circulant_string")
BANDS = ((0, 64), (64, 4096), (4096, 65536), (65536, None))


def places(op: str, call: Call, output: str) -> npt.NDArray[np.float64] | None:
    """Return the absolute position of every value of an output (for a bias or mask the farther of query and key), or None."""
    shape = call.expected[output].shape
    inputs = call.inputs
    if call.cotangents and output != "x":  # of gradients, only those of x stand at its positions
        return None
    if op in ("rope", "sinusoidal", "rope_table", "learned", "xpos", "xpos_scales", "pope", "fope") and "positions" in inputs:
        return np.broadcast_to(np.abs(inputs["positions"])[..., None], shape).astype(np.float64)
    if op in (
        "axial_table",
        "mrope",
        "axial_rope",
        "mixed_rope",
        "liere",
        "cayley_string",
        "circulant_string",
    ):  # the largest of a token's positions
        largest = np.max(np.abs(inputs["positions"]), axis=0)
        return np.broadcast_to(largest[..., None], shape).astype(np.float64)
    if op == "rotation_matrix":
        return np.broadcast_to(np.abs(inputs["position"])[..., None, None], shape).astype(np.float64)
    if op in ("rotated_values", "rotary_linear_attention") and len(shape) >= 2:  # of a result, its query's
        return np.broadcast_to(np.abs(inputs["q_positions"])[..., None], shape).astype(np.float64)
    if op == "t5_buckets":
        return np.abs(inputs["relative_positions"]).astype(np.float64)
    if op in ("logn_scale", "attention_temperature"):
        return np.abs(inputs["positions"]).astype(np.float64)
    if op in OF_PAIRS and len(shape) >= 2:
        q, k = (np.abs(inputs[n]).astype(np.float64) for n in ("q_positions", "k_positions"))
        far = np.maximum(q[..., :, None], k[..., None, :])
        if op == "alibi" and call.params.get("form") == "key":
            far = k[..., None, :]
        if op in ("alibi", "t5_bias", "mla_logits"):
            far = far[..., None, :, :]
        return np.broadcast_to(far, shape)
    return None


def in_band(where: npt.NDArray[np.float64], band: tuple[float, float | None]) -> npt.NDArray[Any]:
    """Return which positions lie in a band."""
    low, high = band
    return (where >= low) & (where < (np.inf if high is None else high))
