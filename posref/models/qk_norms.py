"""
Norms of queries and keys: tables/qk_norms.json, measured on the classes of transformers 5.23.0 (``python tests/qk_norms.py``).

A row has

- ``first``, "norm" or "rope"; ``over``, the channels of one "head" or of all "heads" together; ``layers``, "all" with attention
  or those that are "rotating";
- ``kind``, "rms", "layer", or "unit" (of ZAYA, by reading); ``weight``, false for a norm without one; ``weight_offset``, 1 if
  weights are stored less 1;
- ``eps``, a number, or a key of the file with its default; ``when``, a key, the value for which the model has norms, and its
  default; ``wide``, a key, the value for which the norms are over all heads together, and its default.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.fields import number
from posref.models.layers import layers_on
from posref.models.model_types import table, why_not

LAYER_NORM = "layer norm of queries and keys"
UNIT_NORM = "queries and keys of length sqrt(D), keys times a learned factor of their head"
TOGETHER = "all heads of queries together, or of keys: H * D channels"
ORDER = {"norm": "before the rotation", "rope": "after the rotation"}
NO_WEIGHT = "none: pass ones"


def norms_of(config: Mapping[str, Any], model: str, rotations: list[Entry | None]) -> list[Entry | None]:
    """Return the norms of a model's queries and keys: one entry if all layers are alike, else one for each. Empty without."""
    row = table("qk_norms").get(model, {})
    switch, value, default = row.get("when", ("", None, None))
    if not row or config.get(switch, default) != value:
        return []
    wide, value, default = row.get("wide", ("", None, ""))
    row = {**row, "over": "heads"} if config.get(wide, default) == value else row
    eps = row["eps"]
    if isinstance(eps, list):
        eps = number("eps", (eps[0],), config, {eps[0]: eps[1]}, low=0, strict=True)
    rotating = [entry is not None for entry in rotations]
    on = layers_on("attention", config, {}) if row["layers"] == "all" and not all(rotating) else rotating
    norms = [_entry(row, eps, entry) if has else None for entry, has in zip(rotations, on, strict=True)]
    return norms[:1] if all(entry == norms[0] for entry in norms) else norms


def _entry(row: Mapping[str, Any], eps: float, rotation: Entry | None) -> Entry:
    """Return the norm of a layer: with its rotation in one operation, where both are of one head."""
    if row["kind"] != "rms":
        words = LAYER_NORM if row["kind"] == "layer" else UNIT_NORM
        return Entry(words, None, why_not(words))
    options = {"eps": eps, "weight_offset": row["weight_offset"]}
    conventions = {} if row["weight"] else {"weight": NO_WEIGHT}
    if rotation is None or rotation.operation not in FUSED or row["over"] == "heads":
        order = {"order": ORDER[row["first"]]} if rotation is not None and rotation.operation in ROTATIONS else {}
        return Entry("rms_norm", options, {**({"width": TOGETHER} if row["over"] == "heads" else {}), **order, **conventions})
    rotated = rotation.options or {}
    operation, names = FUSED["rope" if rotated["scaling"] is not None else rotation.operation]  # norm_mrope takes no scaling
    options |= {"precedence": f"{row['first']}_first", **{name: rotated[name] for name in names if name in rotated}}
    return Entry(operation, options, conventions)


ROTATIONS = ("rope", "mrope", "axial_rope")
FUSED = {
    "rope": ("norm_rope", ("layout", "lanes")),
    "mrope": ("norm_mrope", ("sections", "arrangement", "layout", "base")),
}
