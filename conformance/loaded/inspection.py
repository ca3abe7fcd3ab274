"""
A loaded model against its file, in one call: buffers, then one forward pass whose rotations and attention are judged.

The pass has tokens at far positions, where a wrong table no longer looks right, and a prime number of tokens, so that their
axis is known. Where a window is longer than the pass, a second pass has a shorter one, in the file and in the model's
configuration.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

import posref
from posref.models.config import text_of

from ..errors import TargetError
from . import attention_calls, head_norms, head_rotations
from .attention_calls import mask_text
from .buffers import compare_buffers
from .file_facts import FileFacts, LayerFacts, facts_of
from .head_rotations import Positions, rotation_text
from .model_report import Difference, ModelReport, NotJudged
from .recording import Attention, Recording, Rotation, recorded
from .steps import Step, query_factors, unused

TOKENS, FAR = 53, 30_011  # a prime number of tokens; the first far position
DECODED = 47  # tokens of a decoder beside an encoder: another prime, so that cross attention is told from self-attention
SHORT = 11  # tokens of a window that is made shorter
WINDOW_KEY = re.compile(r"window|chunk_size|local_attention")
SPECIAL = re.compile(r"token_(id|index)s?$")


def inspect_model(model: Any, config: Any = None, layers: Any = None, functions: Iterable[str] = ()) -> ModelReport:
    """
    Compare a loaded PyTorch model with its file; `posref.testing.assert_model` describes the arguments.

    Raise TargetError if the model is no PyTorch module, or the file cannot be read.
    """
    if not isinstance(model, torch.nn.Module):
        msg = f"assert_model: model must be a torch.nn.Module; got {type(model).__name__}."
        raise TargetError(msg)
    whole = getattr(model, "_orig_mod", model)
    config = getattr(whole, "config", None) if config is None else config
    if config is None:
        msg = "assert_model: config must be the model's config.json: the model has no config of its own."
        raise TargetError(msg)
    try:
        facts = facts_of(config, whole)
    except ValueError as error:
        raise TargetError(str(error)) from error
    kind = facts.config.get("model_type")
    dtype = next((str(x.dtype).removeprefix("torch.") for x in whole.parameters()), "no parameters")
    attention = getattr(getattr(whole, "config", None), "_attn_implementation", None) or "its own"
    report = ModelReport(f"{type(whole).__name__} ({kind}), {dtype}, attention: {attention}")
    compare_buffers(whole, facts, report)
    if whole is not model:
        report.not_judged.append(NotJudged("model", None, "compiled code", "its modules were run uncompiled"))
    Inspection(whole, facts, report, layers, frozenset(functions)).run()
    return report


class Inspection:
    """The passes of one model, and what is judged in them."""

    def __init__(
        self, model: torch.nn.Module, facts: FileFacts, report: ModelReport, layers: Any, functions: frozenset[str]
    ) -> None:
        self.model, self.facts, self.report, self.functions = model, facts, report, functions
        self.layers = None if layers is None else {int(layer) for layer in layers}
        self.names = {module: name for name, module in model.named_modules()}

    def run(self) -> None:
        """Make the passes and judge them."""
        if any(x.device.type == "meta" for x in self.model.parameters()):
            self._skip("forward pass", "parameters are on the meta device")
            return
        if not self.facts.parts:
            self._skip("forward pass", "the file has no part that reads tokens")
            return
        for name in self.facts.components:
            if not name.startswith((*self.facts.parts, "indexer")):
                self.report.not_judged.append(NotJudged(name, None, "encoding", "a pass of tokens does not run it"))
        recording, positions = self._pass()
        if recording is None:
            return
        self._describe(recording)
        self._compare_rotations(recording, positions)
        self._compare_norms(recording)
        self._compare_tables(recording)
        self._compare_attentions(recording, self.facts)
        self._compare_steps(recording, positions, self.facts)
        modules = [call.module for call in recording.attentions] + [call.module for call in recording.softmaxes]
        for part in [part for part in self.facts.parts if part not in {self._place(module)[0] for module in modules}]:
            self._leave(part, None, "attention", "no attention function and no softmax of heads, queries and keys is seen")
        if self._has_short_frequencies() and positions.tokens[0] > 0:
            self._compare_rotations(self._forward(_positions(0), placed=True), _positions(0))
            self.report.passed += f", and one at positions 0 to {TOKENS - 1}"
        if recording.softmaxes:
            self._compare_softmaxes()
        long = self._long_windows()
        if long:
            self._compare_shorter(long)

    def _skip(self, what: str, why: str) -> None:
        self.report.not_judged.append(NotJudged("model", None, what, why))

    # ---- passes ---------------------------------------------------------------------------------------------------------
    def _pass(self) -> tuple[Recording | None, Positions]:
        """Run the model at far positions, or at those that it takes."""
        longest = text_of(self.facts.config).get("max_position_embeddings")
        starts = [FAR, 0]
        if isinstance(longest, int) and TOKENS < longest < FAR:
            starts.insert(1, longest - TOKENS)
        errors: list[str] = []
        rotates = any(self.facts.distinct(part) for part in self.facts.parts)
        for start in starts if rotates and self._takes("position_ids") else [None]:
            positions = _positions(start or 0)
            try:
                recording = self._forward(positions, placed=start is not None)
            except Exception as error:  # whatever a model raises: its words are in the report
                errors.append(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160] if str(error) else ''}")
                continue
            first, last = int(positions.tokens[0]), int(positions.tokens[-1])
            self.report.passed = f"one pass of {TOKENS} tokens at positions {first} to {last}"
            return recording, positions
        self._skip("forward pass", f"it raises {errors[0]}")
        return None, _positions(0)

    def _has_short_frequencies(self) -> bool:
        """Return whether a short sequence has other frequencies than a long one."""
        entries = [entry for part in self.facts.parts for entry in self.facts.distinct(part).values()]
        return any("length is not None" in getattr((entry.options or {}).get("scaling"), "requires", ()) for entry in entries)

    def _takes(self, name: str) -> bool:
        parameters = inspect.signature(self.model.forward).parameters
        return name in parameters

    def _forward(self, positions: Positions, *, placed: bool, silent: bool = False) -> Recording:
        """Run the model once and return what its layers did. Modules keep the state that they had."""
        device = next(self.model.parameters()).device
        ids = torch.as_tensor(_tokens(self.facts.config, self.model), device=device)[None]
        tokens = "input_ids" if self._takes("input_ids") else next(iter(inspect.signature(self.model.forward).parameters))
        options: dict[str, Any] = {tokens: ids}
        if self._takes("decoder_input_ids"):
            options["decoder_input_ids"] = ids[:, :DECODED].flip(-1)
        if self._takes("use_cache"):
            options["use_cache"] = False
        if placed:
            axes = max((len(e.options["sections"]) for part in self.facts.parts for e in self.facts.distinct(part).values()
                        if e.operation == "mrope" and e.options), default=0)  # fmt: skip
            at = positions.axes[:axes, None] if axes else positions.tokens[None]
            options["position_ids"] = torch.as_tensor(np.ascontiguousarray(at), device=device)
        with (
            _same_state(self.model),
            torch.no_grad(),
            recorded(self.model, silent=silent, functions=self.functions) as recording,
        ):
            self.model(**options)
        return recording

    # ---- layers ---------------------------------------------------------------------------------------------------------
    def _place(self, module: torch.nn.Module) -> tuple[str, int | None]:
        """Return the component and the layer of a module."""
        name = self.names.get(module, "")
        part = next((part for part in self.facts.parts if re.search(rf"(^|\.){part}\.", name)), self.facts.parts[0])
        if "ndexer" in type(module).__name__ and "indexer" in self.facts.components:
            part = "indexer"
        numbers = [int(number) for number in re.findall(r"(?:^|\.)(\d+)(?=\.|$)", name)]
        layer = getattr(module, "layer_idx", None)
        return part, layer if isinstance(layer, int) else numbers[0] if numbers else None

    def _wanted(self, layer: int | None) -> bool:
        return layer is not None and (self.layers is None or layer in self.layers)

    def _describe(self, recording: Recording) -> None:
        """Write what the file says of each layer that ran."""
        modules = [call.module for call in recording.attentions] + [call.module for call in recording.rotations]
        for part, layer in dict.fromkeys(map(self._place, modules)):
            if layer is not None and self._wanted(layer):
                facts = self.facts.layer(part, layer)
                words = [rotation_text(facts.position)]
                norm = self.facts.entry(f"{part} norm", layer)
                words += [head_norms.norm_text(norm)] if norm is not None and norm.options else []
                words += [mask_text(facts.mask, None)] if facts.mask else []
                words += [f"scale {facts.scale:.6g}"] if facts.scale is not None else []
                words += [f"softcap {facts.softcap:g}"] if facts.softcap is not None else []
                words += ["sinks"] if facts.sinks else []
                self.report.file[part, layer] = "; ".join(words)
        self.report.file = dict(sorted(self.report.file.items()))

    def _note(self, part: str, layer: int, what: str, text: str | None, off: float | None = None) -> None:
        if text is not None and text_of(self.facts.config).get("per_layer_config"):
            self._leave(part, layer, what, "the file's per_layer_config, which from_config does not read, may say otherwise")
            return
        self.report.judged.append((part, layer, what))
        if text is not None:
            self.report.differences.append(Difference(part, layer, what, text, off))

    def _leave(self, part: str, layer: int | None, what: str, why: str) -> None:
        self.report.not_judged.append(NotJudged(part, layer, what, why))

    # ---- rotations ------------------------------------------------------------------------------------------------------
    def _compare_rotations(self, recording: Recording, positions: Positions) -> None:
        calls: dict[tuple[str, int], list[Rotation]] = {}
        for rotation in recording.rotations:
            part, layer = self._place(rotation.module)
            if layer is not None and self._wanted(layer):
                calls.setdefault((part, layer), []).append(rotation)
        for (part, layer), rotations in sorted(calls.items()):
            self._compare_rotations_of(part, layer, rotations, positions)
        self._note_unseen_rotations(recording, set(calls))
        for name, why in recording.misread.items():
            self._leave(name, None, "call", why)

    def _compare_rotations_of(self, part: str, layer: int, rotations: list[Rotation], positions: Positions) -> None:
        """Judge the rotations of one layer, up to the first that differs."""
        facts = self.facts.layer(part, layer)
        others = {f"the options of layer {n}": entry for n, entry in self.facts.distinct(part).items()}
        if facts.position is not None and facts.rotation is None:
            self._leave(part, layer, "rotation", f"the file says {facts.position.operation}")
            return
        at = positions if part != "decoder" or not self._takes("decoder_input_ids") else _positions(0, DECODED)
        for rotation in rotations:
            name = "query" if rotation.which == 0 else "key"
            try:
                text = head_rotations.difference(rotation, facts.rotation, at, others)
            except ValueError as error:
                self._leave(part, layer, "rotation", str(error))
                continue
            if text is None:
                self._note(part, layer, "rotation", None)
            elif rotation is not rotations[0] and f"{part} values" in facts.unjudged:
                self._leave(part, layer, "rotation of values", text[0])
            else:
                self._note(part, layer, "rotation", f"{name}: {text[0]}", text[1])
                break

    def _note_unseen_rotations(self, recording: Recording, seen: set[tuple[str, int]]) -> None:
        """Say of layers that attend what is known where no rotation was seen, and the file has one."""
        places = (self._place(call.module) for call in recording.attentions)
        attending = {(part, layer) for part, layer in places if layer is not None}
        for part, layer in sorted(attending - seen):
            if not self._wanted(layer) or self.facts.layer(part, layer).rotation is None:
                continue
            if any(place[0] == part for place in seen) and not recording.misread:
                self._note(part, layer, "rotation", "no function rotates here; the file says a rotation")
            else:
                self._leave(part, layer, "rotation", "it is not seen: the model rotates in a method or inline")

    # ---- tables ---------------------------------------------------------------------------------------------------------
    def _compare_tables(self, recording: Recording) -> None:
        """Judge the rows that a part reads of a learned table by lookups; positions of such parts begin at 0."""
        for part in self.facts.parts:
            entry = next(iter(self.facts.components.get(part, [])), None)
            if entry is None or entry.operation != "learned" or "offset" not in (entry.options or {}):
                continue
            count = DECODED if part == "decoder" and self._takes("decoder_input_ids") else TOKENS
            first = [rows[0] for rows in recording.rows if len(rows) == count]
            want = (entry.options or {})["offset"]
            if not first:
                self._leave(part, None, "table", "no lookup of rows that follow each other is seen")
            elif want in first:
                self.report.judged.append((part, None, "table"))
            else:
                words = f"position 0 reads row {first[0]}; the file says row {want}"
                self.report.differences.append(Difference(part, None, "table", words, None))

    # ---- norms ----------------------------------------------------------------------------------------------------------
    def _compare_norms(self, recording: Recording) -> None:
        """Judge the norms of queries and keys of types whose norms are known."""
        seen: set[tuple[str, int]] = set()
        for norm in recording.norms:
            part, layer = self._place(norm.owner)
            component = f"{part} norm"
            if layer is None or not self._wanted(layer) or "ndexer" in type(norm.owner).__name__:
                continue
            if component not in self.facts.components:
                self._leave(part, layer, "norm", "norms of queries and keys are not known of this type")
                continue
            seen.add((part, layer))
            try:
                rotates = self.facts.layer(part, layer).rotation is not None
                text = head_norms.difference(norm, self.facts.entry(component, layer), rotates=rotates)
            except ValueError as error:
                self._leave(part, layer, "norm", str(error))
                continue
            self._note(part, layer, "norm", text and f"{self.names[norm.module].rpartition('.')[2]}: {text}")
        for part, layer in map(self._place, (call.module for call in recording.attentions)):
            if layer is None or not self._wanted(layer) or (part, layer) in seen:
                continue
            if self.facts.entry(f"{part} norm", layer) is not None:
                self._leave(part, layer, "norm", "it is not seen: no module with the name of such a norm runs")

    # ---- attention ------------------------------------------------------------------------------------------------------
    def _compare_attentions(self, recording: Recording, facts: FileFacts, *, values: bool = True) -> None:
        for call in recording.attentions:
            part, layer = self._place(call.module)
            if layer is None or not self._wanted(layer):
                continue
            file = facts.layer(part, layer)
            if call.q.shape[-2] != call.k.shape[-2] or call.visible is None:
                self._leave(part, layer, "attention", "queries and keys are not those of one sequence")
                continue
            self._compare_mask(call.visible, facts, part, layer)
            if values:
                self._compare_values(call, file, part, layer)

    def _compare_mask(self, visible: torch.Tensor, facts: FileFacts, part: str, layer: int) -> None:
        """Judge which query sees which key."""
        mask, entries = facts.layer(part, layer).mask, facts.components.get(f"{part} mask", [])
        others = {f"layer {n}": entry for n, entry in enumerate(entries) if entry != mask}
        text = attention_calls.mask_difference(visible, mask, self._causal(part), others)
        window = re.match(r"a window of (\d+)", text or "")
        unread = [
            name for name, value in facts.part(part).items() if WINDOW_KEY.search(name) and window and value == int(window[1])
        ]
        if unread and not entries:
            self._leave(part, layer, "mask", f"it has the window of {unread[0]}, a key that from_config does not read here")
        else:
            self._note(part, layer, "mask", text)

    def _compare_softmaxes(self) -> None:
        """Judge the masks and biases of modules that compute attention themselves, in a pass with queries of zeros."""
        try:
            recording = self._forward(_positions(0), placed=False, silent=True)
        except Exception as error:  # as in the first pass
            self._skip("attention", f"a pass with queries of zeros raises {type(error).__name__}")
            return
        at = torch.arange(TOKENS, device=next(self.model.parameters()).device)
        for call in recording.softmaxes:
            part, layer = self._place(call.module)
            if layer is None or not self._wanted(layer) or call.visible.shape[-2:] != (TOKENS, TOKENS):
                continue
            facts = self.facts.layer(part, layer)
            self.report.file.setdefault((part, layer), rotation_text(facts.position))
            self._compare_mask(call.visible, self.facts, part, layer)
            if facts.bias is not None and facts.bias.operation == "alibi":
                bias = posref.alibi(at, at, **(facts.bias.options or {}))
                self._note(part, layer, "bias", attention_calls.bias_difference(call, bias))
            self._leave(part, layer, "attention values", "the module computes attention itself: its scale is not seen")

    def _compare_values(self, call: Attention, file: LayerFacts, part: str, layer: int) -> None:
        beside = [name for name in file.unjudged if name not in self._before_call(part)]
        if beside:
            self._leave(part, layer, "attention values", f"the file has {', '.join(beside)}")
            return
        if f"{part} temperature" in file.unjudged:
            self._leave(part, layer, "temperature", "posref does not define its factors on queries")
        try:
            bias = self._bias(call, file, part)
            scales = {f"of layer {n}": e.options["scale"] for n, e in enumerate(self.facts.components.get(f"{part} scale", []))
                      if e is not None and e.options and e.options.get("scale")}  # fmt: skip
            text = attention_calls.value_difference(call, file, bias, scales)
            if text is not None and text.startswith("scale 1 fits") and attention_calls.scaled_before(call, file):
                text = attention_calls.scale_before_difference(call, file)
        except ValueError as error:
            self._leave(part, layer, "attention values", str(error))
            return
        self._note(part, layer, "attention", text)

    # ---- from step to step ----------------------------------------------------------------------------------------------
    def _compare_steps(self, recording: Recording, positions: Positions, facts: FileFacts) -> None:
        """Judge whether attention reads what norms and rotations give, and the factors on queries between them."""
        for module in dict.fromkeys(call.module for call in recording.attentions):
            part, layer = self._place(module)
            calls = [call for call in recording.attentions if call.module is module]
            tokens, heads = calls[0].q.shape[-2], [x for call in calls for x in (call.q, call.k)]
            if layer is None or not self._wanted(layer) or any(x.shape[-2] != tokens for x in heads):
                continue
            turned = [event for event in recording.rotations if event.module is module]
            steps = [Step("norm", self.names[event.module].rpartition(".")[2], event.before, event.after)
                     for event in recording.norms if event.owner is module]  # fmt: skip
            steps += [Step("rotation", "query" if event.which == 0 else "key", event.before, event.after) for event in turned]
            for step in unused(steps, heads, tokens):
                self._note(part, layer, step.what, f"{step.name}: its result is not used: attention reads what it was before")
            sources = [step.after for step in reversed(steps)] + [x for x in [calls[0].projected] if x is not None]
            factors = query_factors(sources, calls[0].q)
            file = facts.layer(part, layer)
            scaled = attention_calls.scaled_before(calls[0], file)
            if factors is None and file.temperature is not None:
                self._leave(part, layer, "temperature", "no queries are seen that are those of attention but for a factor")
            elif factors is not None and not scaled and f"{part} temperature" not in file.unjudged:
                # layers that do not rotate may get no positions: they count from 0
                starts = (0, positions.tokens[0]) if file.rotation is None else (0,)
                at = [positions.tokens - start for start in starts]
                what = "attention" if file.temperature is None else "temperature"
                self._note(part, layer, what, attention_calls.factor_difference(*factors, file.temperature, at))

    def _before_call(self, part: str) -> set[str]:
        """Return the components that change queries or values before the attention function gets them."""
        made = {entry.operation for entry in self.facts.components.get(f"{part} values", []) if entry is not None}
        return {f"{part} temperature"} | (set() if "shaw_values" in made else {f"{part} values"})

    def _bias(self, call: Attention, file: LayerFacts, part: str) -> torch.Tensor | None:
        """Return the bias that the file gives a call, from the module's own table where it is learned."""
        passed = call.options.get("position_bias")
        if file.bias is None:
            if isinstance(passed, torch.Tensor) and bool(passed.any()):
                msg = "a bias is passed that the file does not name"
                raise ValueError(msg)
            return None
        at = torch.arange(call.k.shape[-2], device=call.q.device)
        if file.bias.operation == "alibi":
            result: torch.Tensor = posref.alibi(at, at, **(file.bias.options or {}))
            return result.double()
        tables = [
            (name, module)
            for module, name in self.names.items()
            if "relative_attention_bias" in name or name.endswith("relative_bias")
        ]
        near = [module for name, module in tables if name.startswith(self.names[call.module])]
        near += [module for name, module in tables if re.search(rf"(^|\.){part}\.", name) or len(self.facts.parts) == 1]
        if not near:
            msg = "the table of the bias is not found"
            raise ValueError(msg)
        weight = near[0].weight.detach().double()
        bias: torch.Tensor = posref.t5_bias(at, at, weight, **(file.bias.options or {}))
        return bias

    def _causal(self, part: str) -> bool | None:
        """Return whether queries see only earlier keys, None where the file does not say."""
        if part == "encoder":
            return False
        entries = [entry for entry in self.facts.components.get(part, []) if entry is not None]
        sides = {entry.conventions.get("sides") for entry in entries}
        if sides in ({"causal"}, {"both"}):
            return sides == {"causal"}
        encoder = {"is_decoder", "add_cross_attention"} <= set(self.facts.config) and not self.facts.config["is_decoder"]
        return True if not encoder and re.search("CausalLM|ConditionalGeneration", type(self.model).__name__) else None

    # ---- windows longer than the pass -----------------------------------------------------------------------------------
    def _long_windows(self) -> dict[str, int]:
        """Return the keys of the file's text that make windows longer than the pass."""
        text = text_of(self.facts.config)
        return {
            name: value for name, value in text.items()
            if WINDOW_KEY.search(name) and isinstance(value, int) and not isinstance(value, bool) and value > TOKENS
        }  # fmt: skip

    def _compare_shorter(self, long: Mapping[str, int]) -> None:
        """Judge masks in a pass where windows are shorter, in the file and in the model's configuration."""
        try:
            facts = facts_of(_shortened(self.facts.config, long), self.model)
        except ValueError:
            self._skip("window", f"{', '.join(long)} cannot be made shorter than the pass")
            return
        layers = [(part, n) for part, n in self.report.file if facts.layer(part, n).mask != self.facts.layer(part, n).mask]
        if not layers:
            return
        text = self.model.config.get_text_config() if hasattr(self.model, "config") else None
        lost = {name: getattr(text, name) for name, value in long.items() if getattr(text, name, value) != value}
        for part, layer in layers if lost else ():
            words = ", ".join(f"{name} {value} where the file says {long[name]}" for name, value in lost.items())
            self._note(part, layer, "mask", f"the loaded configuration has {words}")
        if lost:
            return
        with _shorter(self.model, long) as changed:
            try:
                recording = self._forward(_positions(0), placed=False) if changed else None
            except Exception as error:  # as in the first pass
                self._skip("window", f"a pass with a shorter window raises {type(error).__name__}")
                return
        if recording is None:
            self._skip("window", f"the pass is shorter than {', '.join(long)}, which the model does not keep by that name")
            return
        self._compare_attentions(recording, facts, values=False)


def _positions(start: int, tokens: int = TOKENS) -> Positions:
    """Return the positions of a pass; those of several axes differ."""
    steps = np.arange(tokens)
    axes = np.stack([start + steps, start + 7 + 2 * steps, start + 3 + (5 * steps) % tokens, start + steps])
    return Positions(start + steps, axes)


def _tokens(config: Mapping[str, Any], model: torch.nn.Module) -> Any:
    """Return tokens that are no special ones."""
    sizes = [m.num_embeddings for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    vocabulary = min(
        (size for size in [text_of(config).get("vocab_size")] if isinstance(size, int)), default=max(sizes, default=2)
    )
    special = set(_special(config))
    usual = [n for n in range(min(vocabulary, 4096)) if n not in special and n > 3] or [0]
    return np.random.default_rng(0).choice(usual, TOKENS)


def _special(config: Any) -> Iterator[int]:
    """Yield the numbers of special tokens in a configuration and its parts."""
    for name, value in config.items() if isinstance(config, dict) else ():
        if isinstance(value, dict):
            yield from _special(value)
        elif SPECIAL.search(str(name)):
            yield from (n for n in (value if isinstance(value, list) else [value]) if isinstance(n, int))


def _shortened(config: Mapping[str, Any], long: Mapping[str, int]) -> dict[str, Any]:
    """Return a copy of a configuration with shorter windows; they stand in its text part, if it has one."""
    changed = dict.fromkeys(long, SHORT)
    if isinstance(config.get("text_config"), dict):
        return {**config, "text_config": {**config["text_config"], **changed}}
    return {**config, **changed}


@contextmanager
def _shorter(model: torch.nn.Module, long: Mapping[str, int]) -> Iterator[bool]:
    """Make the windows of a model's configurations shorter in a ``with`` block; False if it has none of these keys."""
    owners = {id(owner): owner for module in model.modules() for owner in (getattr(module, "config", None), module)}
    changed = []
    for owner in owners.values():
        for name, value in long.items():
            if vars(owner).get(name) == value if hasattr(owner, "__dict__") else False:
                changed.append((owner, name, value))
                setattr(owner, name, SHORT)
    try:
        yield bool(changed)
    finally:
        for owner, name, value in changed:
            setattr(owner, name, value)


@contextmanager
def _same_state(model: torch.nn.Module) -> Iterator[None]:
    """Restore what a pass changes: buffers that rotary modules write, plain attributes, and the mode of training."""
    kept = [(module, dict(module._buffers), copy.copy(vars(module))) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, buffers, attributes in kept:
            for name in set(vars(module)) - set(attributes):
                del vars(module)[name]
            vars(module).update(attributes)
            module._buffers.clear()
            module._buffers.update(buffers)
