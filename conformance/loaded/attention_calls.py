"""Attention as a layer calls it, against the file's mask, scale, sinks, softcap and bias."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import posref
from posref.models.arguments import Entry

from ..checks.assertion import call_of, results_on_host
from ..judge import judge
from .file_facts import LayerFacts
from .recording import Attention, Softmax

MISSING = "the sinks of the file are missing"
QUERIES = 12  # of the first, second and last head, that are judged by value in a call; what queries see is judged in all


@dataclass(frozen=True)
class Terms:
    """What a softmax of attention is made of."""

    mask: torch.Tensor
    scale: float
    softcap: float | None
    sinks: torch.Tensor | None
    bias: torch.Tensor | None


def mask_of(entry: Entry | None, queries: int, keys: int, *, causal: bool, device: Any) -> torch.Tensor:
    """Return which of the last `queries` positions sees which of `keys`."""
    at = torch.arange(keys, device=device)
    late = at[keys - queries :]
    if entry is not None:
        mask: torch.Tensor = getattr(posref, entry.operation)(late, at, **(entry.options or {}))
        return mask
    return late[:, None] >= at if causal else torch.ones(queries, keys, dtype=torch.bool, device=device)


def mask_difference(
    visible: torch.Tensor, entry: Entry | None, causal: bool | None, others: Mapping[str, Entry | None]
) -> str | None:
    """Return how the keys that queries see, (H, Q, K), differ from the file's, in words; None if they do not."""
    queries, keys = visible.shape[-2:]
    causals = (True, False) if causal is None else (causal,)
    if any(_same(visible, mask_of(entry, queries, keys, causal=way, device=visible.device)) for way in causals):
        return None
    says = f"the file says {mask_text(entry, causals[0])}"
    for words, other in others.items():
        if _same(visible, mask_of(other, queries, keys, causal=causals[0], device=visible.device)):
            return f"its queries see what {words} would; {says}"
    if _same(visible, mask_of(None, queries, keys, causal=True, device=visible.device)):
        return f"every query sees all keys up to itself: no window; {says}"
    if bool(visible.all()):
        return f"every query sees all keys, later ones too; {says}"
    want = mask_of(entry, queries, keys, causal=causals[0], device=visible.device)
    for window in range(1, keys + 1):
        for counting, sides in (("with_query", "causal"), ("without_query", "both")):
            near = Entry("sliding_window", {"window": window, "counting": counting, "sides": sides})
            if _same(visible, mask_of(near, queries, keys, causal=True, device=visible.device)):
                return f"a window of {window} ({sides}, {counting}) fits; {says}"
    wrong = visible != want
    head, query, key = (int(i) for i in wrong.nonzero()[0])
    verb = "sees" if visible[head, query, key] else "does not see"
    return f"query {query} {verb} key {key}, and {int(wrong.sum())} pairs differ in all; {says}"


def mask_text(entry: Entry | None, causal: bool | None) -> str:
    """Return a mask in words."""
    if entry is None:
        return {True: "a causal mask", False: "all keys", None: "a causal mask or all keys"}[causal]
    return f"{entry.operation} {', '.join(f'{name}={value}' for name, value in (entry.options or {}).items())}"


def _same(visible: torch.Tensor, mask: torch.Tensor) -> bool:
    return bool((visible == mask).all())


def bias_difference(call: Softmax, bias: torch.Tensor) -> str | None:
    """Return how the logits of queries of zeros differ from the file's bias, but for a number for each query; None if not."""
    logits, want = call.logits.double(), bias.double().expand(call.logits.shape[-3:])
    apart = torch.where(call.visible, logits[0] - want, torch.zeros_like(want))
    seen = call.visible.sum(-1, keepdim=True).clamp(min=1)
    apart = torch.where(call.visible, apart - apart.sum(-1, keepdim=True) / seen, apart)
    # the bias is rounded once, and once more where the mask is added; its mean is off by as much
    allowed = 4 * torch.finfo(call.logits.dtype).eps * float(want.abs().max())
    if float(apart.abs().max()) <= allowed:
        return None
    head, query, key = (int(i) for i in (apart.abs() == apart.abs().max()).nonzero()[0])
    return f"the bias of head {head}, query {query}, key {key} is off by {float(apart[head, query, key]):.4g} from the file's"


def value_difference(call: Attention, facts: LayerFacts, bias: torch.Tensor | None, others: Mapping[str, float]) -> str | None:
    """
    Return how the values of a call differ from `posref.attention` with the file's terms and the keys that its queries see.

    Raise ValueError if the call cannot be judged.
    """
    assert call.visible is not None
    if not all(bool(x.isfinite().all()) for x in (call.q, call.k, call.v)):
        msg = "its queries, keys or values are not finite"
        raise ValueError(msg)
    sinks = sinks_of(call) if facts.sinks else None
    terms = Terms(call.visible, _scale_of(call, facts), facts.softcap, sinks, bias)
    tolerance = _outside(call, terms)
    if facts.sinks and sinks is None and tolerance is None:
        return MISSING
    if facts.sinks and sinks is None:
        msg = "the file has sinks, and they are not found in the module"
        raise ValueError(msg)
    if tolerance is None:
        return None
    for words, near in _near(call, terms, others):
        if float((_attention(call, near) - call.out.double()).abs().max()) <= 8 * tolerance:
            return words
    heads, groups = call.q.shape[1], call.k.shape[1]
    k, v = (x.repeat(1, heads // groups, 1, 1) for x in (call.k, call.v))
    if float((_attention(replace(call, k=k, v=v), terms) - call.out.double()).abs().max()) <= 8 * tolerance:
        return f"head h reads key head h % {groups}; heads share by h // {heads // groups}"
    return "no near scale, softcap or sinks give these values"


def factor_difference(
    factors: torch.Tensor, allowed: float, entry: Entry | None, places: Sequence[npt.NDArray[np.int64]]
) -> str | None:
    """Return how factors on queries differ from the file's temperature, at one of some positions; None if they do not."""
    wants = [torch.ones_like(factors)]
    if entry is not None:
        options: dict[str, Any] = dict(entry.options or {})
        wants = [torch.as_tensor(posref.attention_temperature(at, **options), device=factors.device) for at in places]
    if any(bool(((factors / want - 1).abs() <= allowed).all()) for want in wants):
        return None
    ends = "{0:.6g} to {1:.6g}"
    seen, said = (ends.format(float(x[0]), float(x[-1])) for x in (factors, wants[0]))
    return f"before attention queries are multiplied by {seen}; the file says {said if entry else 'no factor'}"


def scaled_before(call: Attention, facts: LayerFacts) -> bool:
    """Return whether the function is called with scale 1 and fits it: then queries were scaled before, or the scale is lost."""
    return _scale_of(call, facts) != 1 and call.options.get("scaling", call.options.get("scale")) == 1


def scale_before_difference(call: Attention, facts: LayerFacts) -> str | None:
    """
    Return how the factor on queries between their projection and the function differs from the file's scale, None if not.

    Raise ValueError if their lengths do not change by one factor, or the projection was not seen.
    """
    before = call.projected
    if before is None or before.numel() != call.q.numel():
        msg = "the function is called with scale 1: queries may be scaled before"
        raise ValueError(msg)
    heads, width = call.q.shape[1], call.q.shape[-1]
    lengths = before.double().reshape(*before.shape[:-1], heads, width).norm(dim=-1).reshape(-1, heads).T
    ratios = call.q[0].double().norm(dim=-1) / lengths
    middle, allowed = float(ratios.median()), 8 * torch.finfo(before.dtype).eps  # two roundings of each channel
    if not bool(((ratios / middle - 1).abs() <= allowed).all()):
        msg = "the function is called with scale 1, and queries are not scaled by one number before"
        raise ValueError(msg)
    want = _scale_of(call, facts)
    if abs(middle / want - 1) <= allowed:
        return None
    where = "" if abs(middle - 1) <= allowed else ", before the function"
    return f"scale {middle:.6g} fits{where}; the file says {want:.6g}"


def _scale_of(call: Attention, facts: LayerFacts) -> float:
    return float(facts.scale if facts.scale is not None else call.q.shape[-1] ** -0.5)


def sinks_of(call: Attention) -> torch.Tensor | None:
    """Return the sinks that a module has, or that its call passes."""
    names = ("sinks", "attention_sink_bias", "sink", "attn_sinks")
    passed = (call.options.get("s_aux"), *(getattr(call.module, name, None) for name in names))
    heads = call.q.shape[1]
    return next((x.detach().reshape(-1).double() for x in passed if isinstance(x, torch.Tensor) and x.numel() == heads), None)


def _near(call: Attention, terms: Terms, others: Mapping[str, float]) -> Iterator[tuple[str, Terms]]:
    """Yield near terms, each with its words."""
    for words, scale in others.items():
        yield f"scale {scale:.6g} ({words}) fits; the file says {terms.scale:.6g}", replace(terms, scale=scale)
    passed = call.options.get("scaling", call.options.get("scale"))
    width = call.q.shape[-1]
    for scale in dict.fromkeys((passed, width**-0.5, 1.0, 1 / width)):
        if isinstance(scale, float | int) and scale != terms.scale:
            yield f"scale {scale:.6g} fits; the file says {terms.scale:.6g}", replace(terms, scale=float(scale))
    if terms.sinks is not None:
        yield MISSING, replace(terms, sinks=None)
    sinks = sinks_of(call)
    if terms.sinks is None and sinks is not None:
        yield "it has sinks; the file says none", replace(terms, sinks=sinks)
    if terms.softcap is not None:
        yield f"the softcap of the file, {terms.softcap:g}, is missing", replace(terms, softcap=None)
    softcap = call.options.get("softcap")
    if isinstance(softcap, float | int) and softcap != terms.softcap:
        yield f"softcap {softcap:g} fits; the file says {terms.softcap}", replace(terms, softcap=float(softcap))
    if terms.bias is not None:
        yield "the bias of the file is missing", replace(terms, bias=None)


def _arguments(call: Attention, terms: Terms) -> dict[str, Any]:
    return {**vars(terms)}


def _attention(call: Attention, terms: Terms) -> torch.Tensor:
    result: torch.Tensor = posref.attention(call.q.double(), call.k.double(), call.v.double(), **_arguments(call, terms))
    return result


def _outside(call: Attention, terms: Terms) -> float | None:
    """Return the largest tolerance of a call whose values are outside of theirs; None if all are inside."""
    heads, queries = call.q.shape[1], call.q.shape[-2]
    rows = np.unique(np.linspace(0, queries - 1, QUERIES).astype(int))
    worst = None
    for head in sorted({0, 1 % heads, heads - 1}):
        group = head * call.k.shape[1] // heads
        arguments = _arguments(call, terms)
        sinks, bias = arguments["sinks"], arguments["bias"]
        q, out = (x[:, head, rows].contiguous() for x in (call.q, call.out))
        k, v = (x[:, group].contiguous() for x in (call.k, call.v))
        options = {
            "mask": terms.mask[head, rows] if terms.mask.ndim == 3 else terms.mask[rows],
            "scale": terms.scale,
            "softcap": terms.softcap,
            "sinks": None if sinks is None else sinks[head : head + 1],
            "bias": None if bias is None else _head(bias, head, queries, k.shape[-2])[rows],
        }
        call_ = call_of("assert_model", "attention", (q, k, v), options)
        outputs = {name: x for name, (x, _) in results_on_host("attention", out, (q,)).items()}
        call_ = replace(call_, expected={name: np.zeros(x.shape) for name, x in outputs.items()})
        judgement = judge("attention", call_, outputs, "angle32", str(out.dtype).removeprefix("torch."), truth="live")
        if judgement.sample is None:
            raise ValueError(judgement.reason)
        if judgement.worst is not None:
            worst = max(worst or 0.0, judgement.worst.tolerance)
    return worst


def _head(bias: torch.Tensor, head: int, queries: int, keys: int) -> torch.Tensor:
    """Return the bias of one head, (Q, K)."""
    bias = bias.reshape(-1, *bias.shape[-2:])
    return bias[head if bias.shape[0] > 1 else 0].expand(queries, keys)
