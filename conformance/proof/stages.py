"""The stages that composed operations go through, so that a failing check can name the first wrong one."""

from collections.abc import Callable, Mapping
from typing import Any

from posref.rotary.axial_rope import in_turn
from posref.rotary.axial_table import axes_of_pairs

from ..witness.lists import at, broadcast, build, shape

Call = Callable[[str, Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]
Stages = Callable[[Call, Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def stages(op: str, call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of every stage of `op` by name, in order; `call` computes one operation in some number system."""
    return STAGES[op](call, inputs, params) if op in STAGES else {}


def _rope(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    dim = params.get("rotary_dim") or _last_axis(inputs["x"])
    return _rotary(call, dim, inputs["positions"], params)


def _rotation_matrix(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    return _rotary(call, params["dim"], inputs["position"], params)


def _rotary(call: Call, dim: int, positions: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: params[name] for name in ("base", "scaling", "length") if name in params}
    found = call("rope_frequencies", {}, {"dim": dim, **options})
    table = {"attention_factor": found["attention_factor"]}
    return found | call("rope_table", {"positions": positions, "inv_freq": found["inv_freq"]}, table)


def _mrope(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: params[name] for name in ("base", "scaling", "length") if name in params}
    found = call("rope_frequencies", {}, {"dim": 2 * sum(params["sections"]), **options})
    table = {name: params[name] for name in ("sections", "arrangement")} | {"attention_factor": found["attention_factor"]}
    return found | call("axial_table", {"positions": inputs["positions"], "inv_freq": found["inv_freq"]}, table)


def _xpos(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    dim = params.get("rotary_dim") or _last_axis(inputs["x"])
    options = {name: params[name] for name in ("role", "centre", "scale_base", "gamma") if name in params}
    scales = call("xpos_scales", {"positions": inputs["positions"]}, {"dim": dim, **options})["out"]
    return _rotary(call, dim, inputs["positions"], params) | {"scales": scales}


def _axial_rope(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: params[name] for name in ("dims", "base", "allocation", "unit") if name in params}
    table = {"sections": [dim // 2 for dim in params["dims"]], "arrangement": params["arrangement"]}
    inv_freq = call("axial_frequencies", {}, options)["out"]
    places = in_turn(axes_of_pairs("axial_rope", **table))
    inv_freq = [inv_freq[i] for i in places] if isinstance(inv_freq, list) else inv_freq[places]
    return {"inv_freq": inv_freq} | call("axial_table", {"positions": inputs["positions"], "inv_freq": inv_freq}, table)


def _mixed_rope(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    return call("mixed_table", {name: inputs[name] for name in ("positions", "frequencies")}, {})


def _liere(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    return {"rotations": call("liere_rotations", {name: inputs[name] for name in ("positions", "generators")}, {})["out"]}


def _cayley_string(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    return {"basis": call("cayley", {"skew": inputs["skew"]}, {})["out"]} | _mixed_rope(call, inputs, params)


def _pope(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    return {"inv_freq": call("rope_frequencies", {}, {"dim": 2 * _last_axis(inputs["x"]), "base": params["base"]})["inv_freq"]}


def _fope(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    return {"inv_freq": call("rope_frequencies", {}, {"dim": _last_axis(inputs["x"]), "base": params["base"]})["inv_freq"]}


def _alibi(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    return {"slopes": call("alibi_slopes", {}, {"heads": params["heads"]})["out"]}


def _t5_bias(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    relative = _relative(inputs["q_positions"], inputs["k_positions"])
    options = {name: params[name] for name in ("bidirectional", "max_distance") if name in params}
    options["num_buckets"] = len(inputs["table"])
    return {"buckets": call("t5_buckets", {"relative_positions": relative}, options)["out"]}


def _attention(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    arrays = {name: inputs[name] for name in ("q", "k", "bias") if name in inputs}
    return {"logits": call("attention_logits", arrays, params)["out"]}


def _extension(op: str, *options: str) -> Stages:
    def stages(call: Call, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        dim = params.get("rotary_dim") or _last_axis(inputs["q"])
        rotation = {name: params[name] for name in ("base", "scaling", "length") if name in params}
        found = call("rope_frequencies", {}, {"dim": dim, **rotation})
        places = {name: inputs[name] for name in ("q_positions", "k_positions")}
        return found | {"relative": call(f"{op}_distances", places, {name: params[name] for name in options})["out"]}

    return stages


def _last_axis(x: Any) -> int:
    """Return the size of the last axis of an array or of nested lists."""
    if hasattr(x, "shape"):
        return int(x.shape[-1])
    return _last_axis(x[0]) if isinstance(x[0], list) else len(x)


def _relative(q: Any, k: Any) -> Any:
    """Return key minus query positions of arrays or of nested lists."""
    if hasattr(q, "shape"):
        return k[..., None, :] - q[..., :, None]
    (*q_batch, rows), (*k_batch, columns) = shape(q), shape(k)

    def element(*index: int) -> Any:
        *batch, i, j = index
        return at(k, (*batch, j)) - at(q, (*batch, i))

    return build((*broadcast(q_batch, k_batch), rows, columns), element)


STAGES: dict[str, Stages] = {
    "rope": _rope,
    "rotation_matrix": _rotation_matrix,
    "mrope": _mrope,
    "xpos": _xpos,
    "axial_rope": _axial_rope,
    "mixed_rope": _mixed_rope,
    "liere": _liere,
    "cayley_string": _cayley_string,
    "pope": _pope,
    "fope": _fope,
    "alibi": _alibi,
    "t5_bias": _t5_bias,
    "attention": _attention,
    "rerope": _extension("rerope", "window"),
    "leaky_rerope": _extension("leaky_rerope", "window", "factor"),
    "self_extend": _extension("self_extend", "group", "window", "shift"),
    "dual_chunk": _extension("dual_chunk", "chunk_size", "local_size"),
    "streaming_llm": _extension("streaming_llm", "sinks", "window", "counting"),
}
