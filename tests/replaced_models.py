"""
Small models of transformers whose position code is replaced by posref and what from_config says. Their outputs must stay.

    python tests/replaced_models.py              # every type that builds small; a line for each that differs or is in part
    python tests/replaced_models.py llama gemma2 # these alone
    python tests/replaced_models.py --keys       # and with each key of the file changed, in turn
    python tests/replaced_models.py --write      # renew tests/replaced_models.txt

Models run in float64: a mode turns each float32 of their code into float64. What is replaced: functions that rotate, norms of
queries and keys, tables of positions, biases, and attention where transformers chooses its function: mask, scale, softcap,
sinks and bias. Where a model computes its softmax itself, only which keys its queries see is compared.
"""

import inspect
import math
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers
from loaded_models import LARGEST, limited, small_config
from torch.overrides import TorchFunctionMode
from transformers import CONFIG_MAPPING
from transformers.vision_utils import get_vision_position_ids, get_vision_window_index

import posref
from posref.conformance.loaded.attention_calls import mask_of, sinks_of
from posref.conformance.loaded.file_facts import FileFacts, facts_of
from posref.conformance.loaded.recording import NORMALIZES, ROTATES, ROTATING_MODULE, Attention
from posref.models.arguments import Entry

FILE = Path(__file__).with_suffix(".txt")  # what becomes of every type
NOT_BUILT = "not built small"
TOKENS, DECODED = 23, 19  # primes, so that their axes are known, and longer than windows
TOLERANCE = 1e-6
TABLE = re.compile(r"^(?!([xyhw]|row|col|\w*2d)_).*(pos|wpe)", re.I)
PROJECTS = re.compile(r"(^|[._])(q|query|q_?proj|q_lin|k|key|k_?proj|k_lin)$", re.I)
NARROW = {torch.float32: torch.float64, torch.complex64: torch.complex128}
POSITIONS = ("learned", "sinusoidal")
NAMES = {"vision": "vision|visual|image", "audio": "audio|speech|sound", "text": "text|language"}  # of a part's modules
PLAIN = ("attention", {})  # of parts without positions
ROTATIONS = ("rope", "mrope", "axial_rope")
COLUMNS = ("columns, then rows", "columns, then rows, both from 1")
CELLS = (4, 12)  # rows and columns of an image that comes as a sequence; else it has 7 x 7
FITTED = (5, 9)  # those of an image to which a table of 7 x 7 is fitted
ROW_BY_ROW = ("hunyuan_vl_vision",)  # its patches do not come in blocks that are merged
COUNTS = (TOKENS, DECODED, 48, 49)
IN_ATTENTION = ("mask", "scale", "softcap", "sinks")


class Wide(TorchFunctionMode):
    """Compute in float64 what the code of a model computes in float32."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args = [NARROW.get(x, x) if isinstance(x, torch.dtype) else x for x in args]
        options = {name: NARROW.get(x, x) if isinstance(x, torch.dtype) else x for name, x in (kwargs or {}).items()}
        return (torch.Tensor.double if function is torch.Tensor.float else function)(*args, **options)


@contextmanager
def wide() -> Iterator[None]:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Wide(), torch.no_grad():
            yield
    finally:
        torch.set_default_dtype(default)


PIXELS = {"image_size": 56, "patch_size": 8, "max_source_positions": TOKENS, "depth": 3, "embed_dim": 64, "out_hidden_size": 64,
          "num_mel_bins": 16, "conv_dim": [8] * 7, "num_conv_pos_embeddings": 16, "position_embedding_size": 16}  # fmt: skip


def class_of(config: Any) -> Any:
    """Return the model class of a configuration: AutoModel's, else the first of its file that has it."""
    if type(config) in transformers.MODEL_MAPPING:
        kind = transformers.MODEL_MAPPING[type(config)]
        return kind[0] if isinstance(kind, tuple) else kind
    code = vars(import_module(type(config).__module__.replace("configuration_", "modeling_")))
    kinds = [x for x in code.values() if inspect.isclass(x) and issubclass(x, transformers.PreTrainedModel)]
    return next(x for x in kinds if x.config_class is type(config) and not x.__name__.endswith("PreTrainedModel"))


def small(model_type: str, **changes: Any) -> Any:
    """Return a small configuration, with small images and sounds where it has them."""
    sizes = {name: value for name, value in PIXELS.items() if hasattr(CONFIG_MAPPING[model_type](), name)}
    try:
        return small_config(model_type, **{**sizes, **changes})
    except Exception:  # whatever a configuration says of sizes that do not go together
        return small_config(model_type, **changes)


def made(config: Any) -> Any:
    """Return a model in float64 with random weights whose attention is not uniform."""
    config._attn_implementation = config._experts_implementation = "eager"
    kind = class_of(config)
    with torch.device("meta"):
        size = sum(x.numel() for x in kind._from_config(deepcopy(config)).parameters())
    if size > LARGEST:
        raise ValueError(f"{size:.1e} parameters")
    torch.manual_seed(0)
    with wide():
        model = kind._from_config(config, attn_implementation="eager", dtype=torch.float64).eval()
        for name, weight in model.named_parameters():
            owner = type(model.get_submodule(name.rpartition(".")[0])).__name__
            if "Sinusoid" in owner:
                continue
            if not weight.requires_grad:  # sinusoids that are kept as weights
                continue
            if weight.dim() > 1:
                torch.nn.init.normal_(weight, std=0.15)
            elif "norm" in name or "sink" in name:
                torch.nn.init.uniform_(weight, 0.5, 1.5)
    return model.double()


@dataclass
class Replacement:
    """The code of a model replaced by posref; `wrong`, the kind of component that is replaced by something else."""

    model: torch.nn.Module
    facts: FileFacts
    wrong: str = ""
    used: set[tuple[str, int | None, str]] = field(default_factory=set)  # component, layer and kind
    odd: list[str] = field(default_factory=list)  # what a model does that the file does not say
    stack: list[torch.nn.Module] = field(default_factory=list)
    rotated: list[torch.Tensor] = field(default_factory=list)
    depth: int = 0
    projected: dict[str, torch.Tensor] = field(default_factory=dict)
    calls: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = {module: name for name, module in self.model.named_modules()}

    def place(self) -> tuple[str, int]:
        """Return the part and the layer of the module that runs."""
        parts = tuple(dict.fromkeys(name.partition(" ")[0] for name in self.facts.components))
        named = [module for module in reversed(self.stack) if isinstance(getattr(module, "layer_idx", None), int)]
        name = self.names.get(self.stack[-1], "")
        inside = (part for part in parts if re.search(rf"(^|\.)({NAMES.get(part, part)})[a-z_]*\.", name))
        having = [
            part for part in parts if any(any(self.facts.components.get(name, ())) for name in (part, f"{part} attention"))
        ]
        part = next(inside, (self.facts.parts or having or parts)[0])
        if "indexer" in self.facts.components and any("ndexer" in type(module).__name__ for module in self.stack):
            part = "indexer"
        numbers = [int(number) for number in re.findall(r"(?:^|\.)(\d+)(?=\.|$)", name)]
        return part, named[0].layer_idx if named else numbers[0] if numbers else 0

    def entry(self, component: str, layer: int, kind: str) -> Entry | None:
        """Return the entry of a layer, which is then used."""
        self.used.add((component, layer, kind))
        return self.facts.entry(component, layer)

    # ---- what is replaced ----------------------------------------------------------------------------------------------
    def rotation(self, before: list[torch.Tensor], after: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return queries and keys rotated as the file says."""
        part, layer = self.place()
        name = (
            part if self.facts.entry(part, layer) or f"{part} attention" not in self.facts.components else f"{part} attention"
        )
        entry = self.facts.entry(name, layer)
        unknown = entry is not None and (entry.operation not in ROTATIONS or entry.options is None)
        if unknown or "compressed keys" in self.facts.components:
            return after
        counts = [next((n for n in COUNTS if n in x.shape[:-1]), None) for x in before]
        if None in counts or (entry is not None and entry.conventions.get("positions", COLUMNS[0]) not in COLUMNS):
            return after
        self.used.add((name, layer, "rotation"))
        if entry is None:
            return before
        found = [self.turned(x, n, entry).to(y.dtype) for x, n, y in zip(before, counts, after, strict=True)]
        self.rotated += found
        self.projected |= dict(zip("qk", found, strict=False))
        return found

    def turned(self, x: torch.Tensor, count: int, entry: Entry) -> torch.Tensor:
        """Return heads rotated as an entry says, with tokens on the axis that has their number."""
        axis = next(axis for axis in reversed(range(x.ndim - 1)) if x.shape[axis] == count)
        at = torch.arange(count)
        options = dict(entry.options or {})
        if entry.operation == "mrope":
            at = torch.stack([at, 7 + 2 * at, 3 + 5 * at % count, at])[: len(options["sections"])]
        elif entry.operation == "axial_rope":
            at = self.cells(count)[-len(options["dims"]) :]
            at = at.flip(0) + COLUMNS.index(entry.conventions["positions"]) if "positions" in entry.conventions else at
        if "length is not None" in getattr(options.get("scaling"), "requires", ()):
            options["length"] = int(at.max()) + 1
        at = at * (-1 if self.wrong == "rotation" else 1)
        result: torch.Tensor = getattr(posref, entry.operation)(x.movedim(axis, -2), at, **options)
        return result.movedim(-2, axis)

    def cells(self, count: int) -> torch.Tensor:
        """Return the frame, row and column of each patch."""
        if count == CELLS[0] * CELLS[1]:
            merge = getattr(self.model.config, "spatial_merge_size", 1)
            at = get_vision_position_ids(torch.tensor([[1, *CELLS]]), merge).T
            if hasattr(self.model.config, "fullatt_block_indexes"):  # patches come window by window
                sizes = (getattr(self.model.config, key) for key in ("window_size", "patch_size"))
                index, _ = get_vision_window_index(torch.tensor([[1, *CELLS]]), merge, *sizes)
                at = at.reshape(2, -1, merge**2)[:, index].reshape(2, -1)
        else:
            at = cells_of(*(math.isqrt(count),) * 2)
        return torch.cat([torch.zeros_like(at[:1]), at])

    def norm(self, module: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        part, layer = self.place()
        entry = self.facts.entry(f"{part} norm", layer)
        if entry is None or entry.options is None:
            self.odd += [] if entry or torch.equal(x, y) else [f"{part}: layer {layer} has a norm of queries and keys"]
            return y
        self.used.add((f"{part} norm", layer, "norm"))
        late = any(x.numel() == r.numel() and any(torch.equal(w.reshape(x.shape), x) for w in (r, r.transpose(1, 2)))
                   for r in self.rotated if r.ndim > 2)  # fmt: skip
        said = str(entry.options.get("precedence", "")) or {"b": "norm_first", "a": "rope_first"}.get(
            entry.conventions.get("order", " ")[0], ""
        )
        if said and late != (said == "rope_first"):
            self.odd.append(f"{part}: layer {layer} norms {'after' if late else 'before'} it rotates")
        weight = next((w for w in module.parameters() if w.shape == x.shape[-1:]), torch.ones(x.shape[-1]).double())
        eps = entry.options["eps"] * (1 if self.wrong != "norm" else 1e4)
        result: torch.Tensor = posref.rms_norm(x, weight, eps=eps, weight_offset=entry.options["weight_offset"])
        return result

    def table(self, module: torch.nn.Module, y: torch.Tensor) -> torch.Tensor:
        """Return the rows of positions, of a learned table or of sinusoids."""
        part, _ = self.place()
        names = (part, f"{part} input", *self.facts.parts)
        part = next((name for name in names if self.facts.entry(name, 0) is not None), part)
        entry = self.facts.entry(part, 0)
        if entry is None or entry.operation not in POSITIONS or entry.options is None or y.shape[-2] not in COUNTS:
            return y
        at = torch.arange(y.shape[-2]) + (self.wrong == "table")
        if entry.operation == "sinusoidal":
            options = {name: value for name, value in entry.options.items() if name != "dim"}
            rows = posref.sinusoidal(at + self.first(part, entry), y.shape[-1], **options, dtype=torch.float64)
        else:
            weights = (w for w in (*module.parameters(), *module.buffers()) if w.shape[-1:] == y.shape[-1:] and w.ndim == 2)
            weight = next(weights, None)
            if weight is None or weight.shape[0] < y.shape[-2] + entry.options["offset"]:
                return y
            rows = posref.learned(at, weight, **entry.options)
        if rows.shape[-1] != y.shape[-1]:
            return y
        self.used.add((part, None, "table"))
        return rows.to(y.dtype).expand(y.shape)

    def fitted(self, module: torch.nn.Module, run: Callable[[], torch.Tensor], y: torch.Tensor) -> torch.Tensor | None:
        """Return embeddings of patches with the rows of a learned table, if the module adds those of its own to something."""
        part, _ = self.place()
        names = [name for name in (part, f"{part} input") if self.facts.entry(name, 0) is not None]
        entries = [(name, entry) for name in names if (entry := self.facts.entry(name, 0)) and entry.operation == "learned"]
        own = [w for name, w in module.named_parameters() if TABLE.search(name.removesuffix(".weight")) and w.ndim > 1]
        if len(entries) != 1 or len(own) != 1 or part in self.facts.parts or own[0].shape[-1] != y.shape[-1]:
            return None
        name, entry = entries[0]
        fit = self.facts.entry(f"{part} table", 0)
        kept = own[0].clone()
        without = run_with(run, own[0], 0 * kept)
        theirs = (y - without).reshape(-1, y.shape[-1])
        twice = run_with(run, own[0], 2 * kept)
        own[0].copy_(kept)
        there = theirs.any(-1)
        if (
            entry.options is None
            or not there.any()
            or not torch.allclose(twice - without, 2 * (y - without), rtol=1e-9, atol=1e-9)
        ):
            return None
        table, count = kept.reshape(-1, kept.shape[-1]), int(there.sum())
        whole = count == len(table) - entry.options["offset"]
        if not whole and (fit is None or fit.options is None or "(width" in fit.conventions.get("size", "")):
            return None  # a table that is tiled, or has height and width exchanged
        if whole or fit is None:
            rows = posref.learned(torch.arange(count), table, **entry.options)
        else:
            rows = self.resampled(table, count, part, fit)
            if rows is None:
                return None
            self.used.add((f"{part} table", None, "table"))
        self.used.add((name, None, "table"))
        theirs[there] = rows.roll(1, 0) if self.wrong == "table" else rows
        return without + theirs.reshape(y.shape)

    def resampled(self, table: torch.Tensor, count: int, part: str, fit: Entry) -> torch.Tensor | None:
        """Return the rows of a table of a square of patches, fitted to the image."""
        options = fit.options or {}
        prefix, last = options["prefix"], self.facts.part(part).get("num_detection_tokens", 0)  # YOLOS keeps those of detection
        own, lacks = len(table) - prefix - last, prefix if "does not have" in str(self.facts.entry(part, 0)) else 0
        sizes = [size for size in (CELLS, FITTED) if math.prod(size) == count + lacks - last - prefix]
        old = math.isqrt(own)
        if not sizes or old**2 != own:
            return None
        rows, columns = sizes[0]
        new = (max(sizes[0]),) * 2 if "square" in fit.conventions.get("size", "") else sizes[0]
        fitted = posref.resample(table[: prefix + own], new, old_size=(old, old), **options)
        merged = sizes[0] == CELLS and self.model.config.model_type not in ROW_BY_ROW
        down, across = self.cells(rows * columns)[1:] if merged else cells_of(rows, columns)
        return torch.cat([fitted[lacks:prefix], fitted[prefix:][down * new[1] + across], table[len(table) - last :]])

    def first(self, part: str, entry: Entry) -> int:
        """Return the first position of sinusoids, by their convention."""
        said = entry.conventions.get("positions", "the first is 0").removeprefix("the first is ")
        return int(self.facts.part(part).get("pad_token_id") or 0) + 1 if said == "pad_token_id + 1" else int(said)

    def attention(self, module: Any, q: Any, k: Any, v: Any, options: Any, result: Any) -> Any:
        """Return what attention gives with the terms of the file."""
        part, layer = self.place()
        cross = q.shape[-2] != k.shape[-2]
        facts = self.facts.layer(part, layer)
        named = [name for what in facts.unjudged for name in re.findall(r"\((\w+)\)", what)]
        if "compressed keys" in self.facts.components or any(hasattr(posref, name) for name in named):
            return result
        tokens = part in self.facts.parts
        sides = self.sides(part, layer) or (None if tokens and facts.mask is None else "both")
        if sides is None:
            weights = result[1] if isinstance(result[1], torch.Tensor) else torch.ones(1, 1)
            ahead = bool(weights.triu(1).any())
            self.odd.append(f"{part}: sides are not said, {'both' if ahead else 'causal'}")
            return result
        self.calls[module] = self.calls.get(module, 0) + q.shape[0]
        if self.calls[module] > 1 and facts.mask is None and not tokens:
            self.odd.append(f"{part}: layer {layer} attends in windows")
        kinds = [kind for kind in IN_ATTENTION if self.facts.entry(f"{part} {kind}", layer) is not None]
        alone = f"{part} attention" if self.facts.entry(f"{part} attention", layer) == PLAIN else f"{part} calls"
        self.used |= {(f"{part} {kind}", layer, kind) for kind in kinds} | {(alone, layer, "attention")}
        call = Attention(module, q, k, v, result[0], None, options)
        sinks = sinks_of(call) if facts.sinks else None
        mask = mask_of(None if cross else facts.mask, q.shape[-2], k.shape[-2], causal=sides == "causal" and not cross,
                       device=q.device)  # fmt: skip
        if facts.mask is not None and not tokens:  # of cells: theirs
            theirs = options["mask"]
            mask = torch.ones_like(mask) if theirs is None else theirs if theirs.dtype == torch.bool else theirs > -1e30
        scale = facts.scale if facts.scale is not None else q.shape[-1] ** -0.5
        if self.wrong == "mask":
            mask = mask & (torch.arange(mask.shape[-2])[:, None] != torch.arange(mask.shape[-1]) + 2)
        passed = options.get("scaling", options.get("scale"))
        if passed == 1 and scale != 1 and self.projected:  # queries were scaled before, and keys may have been
            q, k = (x * self.rescaled(name, x) for name, x in (("q", q), ("k", k)))
        bias = None if cross else options.get("position_bias")  # that is replaced where it is made
        out = posref.attention(
            q, k, v, mask=mask, scale=scale * (2 if self.wrong in ("scale", "attention") else 1), bias=bias,
            softcap=facts.softcap and facts.softcap * (0.5 if self.wrong == "softcap" else 1),
            sinks=None if sinks is None else sinks + (self.wrong == "sinks"),
        )  # fmt: skip
        return (out.transpose(1, 2).to(result[0].dtype).reshape(result[0].shape).contiguous(), *result[1:])

    def rescaled(self, name: str, x: torch.Tensor) -> float:
        """Return the factor from the heads that attention gets to those that were projected, which have other lengths."""
        before = self.projected.get(name)
        if before is None or before.numel() != x.numel():
            return 1.0
        factor = before.norm() / x.norm()
        if not torch.allclose(before.abs().flatten().sort()[0], factor * x.abs().flatten().sort()[0], rtol=1e-9):
            self.odd.append(f"{name} is scaled, and not by one number")
        return float(factor)

    def bias(self, module: torch.nn.Module, *counts: int) -> torch.Tensor | None:
        """Return the bias of buckets."""
        part, layer = self.place()
        entry = self.facts.entry(part, layer)
        if entry is None or entry.operation != "t5_bias" or entry.options is None or not set(counts) <= set(COUNTS):
            return None
        self.used.add((part, None, "bias"))
        q, k = (torch.arange(count) * (-1 if self.wrong == "bias" else 1) for count in counts)
        options = {name: value for name, value in entry.options.items() if name != "num_buckets"}
        result: torch.Tensor = posref.t5_bias(q, k, module.relative_attention_bias.weight, **options)
        return result[None]

    def sides(self, part: str, layer: int) -> str | None:
        """Return which keys the queries of a part see."""
        for name in (part, f"{part} attention", *(f"{part} {kind}" for kind in IN_ATTENTION)):
            for entry in (self.facts.entry(name, layer), *self.facts.components.get(name, [])):
                if entry is not None and "sides" in entry.conventions:
                    return entry.conventions["sides"]
        return None

    def softmax(self, weights: torch.Tensor) -> None:
        """Compare the keys that queries see where a model computes its softmax itself."""
        part, layer = self.place()
        sides, counts = self.sides(part, layer), weights.shape[-2:]
        if counts[0] != counts[1] or counts[0] not in (TOKENS, DECODED) or sides is None:
            return
        mask = mask_of(self.facts.layer(part, layer).mask, *counts, causal=sides == "causal", device=weights.device)
        if self.wrong == "mask":
            mask = mask.roll(1, -2)
        self.used |= {(f"{part} mask", layer, "mask")} if self.facts.entry(f"{part} mask", layer) else set()
        if not bool(((weights > 0) == mask).all()):
            self.odd.append(f"{part}: queries of layer {layer} see other keys")

    # ---- where ---------------------------------------------------------------------------------------------------------
    @contextmanager
    def placed(self) -> Iterator[None]:
        """Replace functions in a ``with`` block."""
        with ExitStack() as undo:
            for name, module in self.model.named_modules():
                self.follow(name, module, undo)
            for code in {sys.modules[type(module).__module__] for module in self.model.modules()}:
                for name, function in list(vars(code).items()):
                    if inspect.isfunction(function) and ROTATES.match(name):
                        put(code, name, self.rotating(function), undo)
            inside: list[int] = []
            for owner in (torch, torch.nn.functional):
                put(owner, "softmax", self.normalizing(owner.softmax, inside), undo)
            interface = transformers.modeling_utils.AttentionInterface
            choose = interface.get_interface

            def get_interface(own: Any, implementation: Any, default: Any) -> Any:
                function = choose(own, implementation, default)

                def attend(module: Any, *args: Any, **options: Any) -> Any:
                    inside.append(1)
                    try:
                        result = function(module, *args, **options)
                    finally:
                        inside.pop()
                    names = ("query", "key", "value")
                    q, k, v, *rest = (*args[:3], *(options.pop(name) for name in names[len(args[:3]) :]), *args[3:])
                    mask = rest[0] if rest else options.get("attention_mask")
                    return self.attention(module, q, k, v, {**options, "mask": mask}, result)

                return attend

            put(interface, "get_interface", get_interface, undo)
            yield

    def follow(self, name: str, module: torch.nn.Module, undo: ExitStack) -> None:
        def enter(module: torch.nn.Module, args: Any) -> None:
            self.stack.append(module)

        def leave(module: torch.nn.Module, args: Any, options: Any, result: Any) -> Any:
            tensors = [x for x in args if isinstance(x, torch.Tensor)]
            new = None
            projects = PROJECTS.search(name)
            if projects and isinstance(result, torch.Tensor) and result.ndim == 3:
                self.projected[projects[2][0].lower()] = result
            if NORMALIZES.search(name) and isinstance(result, torch.Tensor) and result.shape == tensors[0].shape:
                self.stack.pop()
                new = self.norm(module, tensors[0], result)
                self.stack.append(module)
            elif ROTATING_MODULE.search(type(module).__name__) and isinstance(result, tuple) and len(tensors) > 1:
                heads = [x for x in tensors if x.ndim > 2]
                if [x.shape for x in heads] == [getattr(x, "shape", None) for x in result]:
                    new = tuple(self.rotation(heads, list(result)))
            elif isinstance(result, torch.Tensor) and result.ndim in (2, 3) and TABLE.search(name.rpartition(".")[2]):
                new = self.table(module, result) if result.is_floating_point() else None
            elif isinstance(result, torch.Tensor) and any(TABLE.search(own) for own in children(module)):
                new = self.fitted(module, lambda: module.forward(*args, **options), result)
            self.stack.pop()
            return new

        if hasattr(module, "compute_bias"):
            self.replace_bias(module, undo)
        undo.callback(module.register_forward_pre_hook(enter).remove)
        undo.callback(module.register_forward_hook(leave, with_kwargs=True).remove)

    def replace_bias(self, module: torch.nn.Module, undo: ExitStack) -> None:
        original = module.compute_bias

        def compute_bias(*args: Any, **options: Any) -> Any:
            theirs = original(*args, **options)
            ours = self.bias(module, *theirs.shape[-2:])
            return theirs if ours is None else ours.reshape(theirs.shape)

        put(module, "compute_bias", compute_bias, undo)

    def rotating(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def rotate(*args: Any, **options: Any) -> Any:
            self.depth += 1
            try:
                result = function(*args, **options)
            finally:
                self.depth -= 1
            if self.depth or not self.stack:
                return result
            after = list(result) if isinstance(result, tuple) else [result]
            arguments = inspect.signature(function).bind(*args, **options).arguments.values()
            before = [x for x in arguments if isinstance(x, torch.Tensor)][: len(after)]
            if [x.shape for x in before] != [x.shape for x in after]:
                self.odd.append(f"{function.__name__} is not read")
                return result
            new = self.rotation(before, after)
            return tuple(new) if isinstance(result, tuple) else new[0]

        return rotate

    def normalizing(self, function: Callable[..., Any], inside: list[int]) -> Callable[..., Any]:
        def softmax(logits: Any, *args: Any, **options: Any) -> Any:
            weights = function(logits, *args, **options)
            if not inside and self.stack and getattr(logits, "ndim", 0) in (3, 4):
                self.softmax(weights)
            return weights

        return softmax

    def left(self) -> list[str]:
        """Return the components whose layers were not all replaced or compared."""
        found = []
        seen = {(component, layer) for component, layer, _ in self.used}
        for name, entries in self.facts.components.items():
            layers = range(len(entries)) if len(entries) > 1 else (0,)
            for layer in layers:
                entry = self.facts.entry(name, layer)
                if entry is not None and not {(name, layer), (name, None)} & seen:
                    found.append(f"{name} ({entry.operation})")
                    break
        return found


def cells_of(rows: int, columns: int) -> torch.Tensor:
    """Return the row and column of each cell."""
    return torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")).reshape(2, -1)


def children(module: torch.nn.Module) -> Iterator[str]:
    """Yield the names of a module's own parameters and of the tables in it."""
    yield from module._parameters
    yield from (name for name, inner in module.named_children() if isinstance(inner, torch.nn.Embedding))


def run_with(run: Callable[[], torch.Tensor], weight: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    weight.copy_(value)
    return run()


def put(owner: Any, name: str, value: Any, undo: ExitStack) -> None:
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


def inputs_of(model: Any, facts: FileFacts) -> Iterator[dict[str, Any]]:
    """Yield inputs that a model may take: tokens, with positions on several axes for M-RoPE, or an image or a sound."""
    names = inspect.signature(model.forward).parameters
    fits = any(name.endswith(" table") for name in facts.components)
    if "input_ids" not in names:
        beside = {"decoder_input_ids": 10 + torch.arange(DECODED)[None] * 7 % 50} if "decoder_input_ids" in names else {}
        yield from ({**beside, **signal} for signal in signals(model.config, next(iter(names)), fits))
        return
    ids = 10 + torch.arange(TOKENS)[None] * 7 % 50
    options: dict[str, Any] = {"input_ids": ids}
    if "decoder_input_ids" in names:
        options["decoder_input_ids"] = ids[:, :DECODED].flip(-1)
    if "use_cache" in names:
        options["use_cache"] = False
    if "attention_mask" in names:  # without one some texts see all keys
        options["attention_mask"] = torch.ones_like(ids)
    rotations = [e for part in facts.parts for e in facts.distinct(part).values() if e.operation == "mrope" and e.options]
    if rotations and "position_ids" in names:
        at = torch.arange(TOKENS)
        axes = torch.stack([at, 7 + 2 * at, 3 + 5 * at % TOKENS, at])
        options["position_ids"] = axes[: len(rotations[0].options["sections"]), None]
    if "pixel_values" in names:
        yield from ({**options, **image} for image in signals(model.config, "pixel_values", fits))
    yield options
    yield {
        **options,
        "bbox": (torch.arange(TOKENS * 4) % 23 + torch.tensor([0, 0, 30, 30]).repeat(TOKENS)).reshape(1, TOKENS, 4),
    }


def signals(config: Any, name: str, fits: bool) -> Iterator[dict[str, Any]]:
    """Yield random images or sounds of several forms."""
    torch.manual_seed(1)
    vision = getattr(config, "vision_config", config)
    channels = next((n for n in (getattr(vision, key, None) for key in ("num_channels", "in_channels")) if n), 3)
    size, patch = (n[0] if isinstance(n, list | tuple) else n or 56 for n in (
        getattr(vision, key, None) for key in ("image_size", "patch_size")))  # fmt: skip
    bins = next((n for n in (getattr(config, key, None) for key in ("num_mel_bins", "n_mels", "feature_size")) if n), 80)
    width = channels * getattr(vision, "temporal_patch_size", getattr(vision, "patch_temporal", 1)) * patch**2
    if name == "pixel_values":
        image = torch.randn(1, channels, *(n * patch for n in FITTED)) if fits else None
        yield from ({name: image, **more} for more in ({"interpolate_pos_encoding": True}, {}) if fits)
        yield {name: torch.randn(1, channels, size, size)}
        yield {name: torch.randn(1, 4, channels, size, size)}
        yield {name: torch.randn(48, width), "grid_thw": torch.tensor([[1, *CELLS]])}
        yield {name: torch.randn(48, channels, patch, patch), "grid_thw": torch.tensor([[1, *CELLS]])}
    elif name == "hidden_states":
        yield {name: torch.randn(48, width), "grid_thw": torch.tensor([[1, *CELLS]])}
        yield {name: torch.randn(1, TOKENS, config.hidden_size)}
    else:
        yield from ({name: torch.randn(1, *shape)} for shape in ((bins, 2 * TOKENS), (8 * TOKENS, bins), (3000,), (1, 3000)))


def outputs(model: Any, options: dict[str, Any]) -> torch.Tensor:
    torch.manual_seed(2)  # of masked autoencoders and vocoders
    result = model(**options)
    return next(x for x in result.to_tuple() if isinstance(x, torch.Tensor) and x.is_floating_point())


def first_pass(model: Any, facts: FileFacts) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return the outputs of the first inputs that a model takes."""
    errors = []
    for options in inputs_of(model, facts):
        try:
            return outputs(model, options), options
        except Exception as error:  # whatever a model says of inputs
            errors.append(error)
    raise errors[-1]


@dataclass
class Outcome:
    """What becomes of one type."""

    off: float  # of the largest output
    odd: list[str]
    left: list[str]
    weak: list[str]  # kinds that may be wrong and not change outputs
    kinds: list[str]

    @property
    def text(self) -> str:
        """What was replaced, and what is left."""
        named = {"odd": self.odd, "left": self.left, "without effect": self.weak}
        words = [f"{name}: {', '.join(those)}" for name, those in named.items() if those]
        return "; ".join([f"{self.word}, by {', '.join(self.kinds) or 'nothing'}", *words])

    @property
    def word(self) -> str:
        """Whether outputs are equal."""
        return "differs" if self.off > TOLERANCE or self.odd else "in part" if self.left or not self.kinds else "equal"


def replaced(model_type: str, *, controls: bool = True, **changes: Any) -> Outcome:
    """Return whether a small model with posref in place of its position code gives the same outputs."""
    config = small(model_type, **changes)
    model = made(config)
    return compared(model, facts_of({**config.to_dict(), "model_type": model_type}, model), controls=controls)


def compared(model: Any, facts: FileFacts, *, controls: bool) -> Outcome:
    """Compare the outputs of a model with those that posref gives it."""
    with wide():
        expected, options = first_pass(model, facts)
        if not bool(torch.isfinite(expected).all()):
            raise ValueError("its outputs are not finite")
        one = Replacement(model, facts)
        with one.placed():
            off = away(outputs(model, options), expected)
        kinds = sorted({kind for _, _, kind in one.used})
        weak = []
        for kind in kinds if controls else ():
            other = Replacement(model, facts, wrong=kind)
            with other.placed():
                if away(outputs(model, options), expected) < 100 * TOLERANCE and not set(other.odd) - set(one.odd):
                    weak.append(kind)
    return Outcome(off, sorted(set(one.odd)), one.left(), weak, kinds)


def away(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


# ---- keys ----------------------------------------------------------------------------------------------------------------
PLACES = re.compile(
    r"ttention|otary|[Mm]ask|osition|rope|Layer\.__init__|Block\.__init__|Model\.(__init__|forward)|Encoder|Decoder"
)
NOT_POSITIONS = re.compile(
    r"dropout|dropped|token_id|initializer|gradient|output_|return_dict|vocab_size|chunk_size_feed|^_|cache|dtype"
)


def keys_read(model_type: str) -> list[str]:
    """Return the keys of a configuration that code of attention, masks and positions reads."""
    config = small(model_type)
    kind, found = type(config), dict[str, None]()
    real = kind.__getattribute__

    def traced(self: Any, name: str) -> Any:
        if not name.startswith("_") and PLACES.search(sys._getframe(1).f_code.co_qualname):
            found[name] = None
        return real(self, name)

    kind.__getattribute__ = traced
    try:
        model = made(config)
        with wide():
            first_pass(model, facts_of({**config.to_dict(), "model_type": model_type}, model))
    finally:
        del kind.__getattribute__
    file = config.to_dict()
    own = {getattr(config, "attribute_map", {}).get(name, name): None for name in found}
    return [name for name in own if name in file and not NOT_POSITIONS.search(name)]


def others_of(value: Any) -> list[Any]:
    """Return other values of a key."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [2 * value, value // 2, value + 3] if isinstance(value, int) else [1.5 * value + 0.1]
    if value is None:
        return [5, True]
    if isinstance(value, list) and len(set(map(str, value))) > 1:
        return [value[::-1]]
    if isinstance(value, dict):
        changed = [{**value, name: other} for name, inner in value.items() for other in others_of(inner)]
        return [*changed, {**value, "rope_type": "linear", "factor": 4.0}] if "rope_theta" in value else changed
    return []


def silent(model_type: str) -> Iterator[tuple[str, str]]:
    """Yield each key with another value: the key and what becomes of it."""
    known = small(model_type).to_dict()
    for key in keys_read(model_type):
        for value in others_of(known[key]):
            try:
                with limited(20):
                    config = small(model_type, **{key: value})
                    model = made(config)
            except Exception:  # no model has this value
                continue
            try:
                with limited(20):
                    facts = facts_of({**config.to_dict(), "model_type": model_type}, model)
            except ValueError as error:
                yield key, f"refused: {str(error)[:100]}"
                continue
            try:
                with limited(20):
                    outcome = compared(model, facts, controls=False)
            except Exception as error:
                if not isinstance(error, RuntimeError | IndexError | ValueError | TypeError | AttributeError):
                    raise
                yield key, f"{value!r} raises {type(error).__name__}: {str(error)[:100]}"
                continue
            yield key, f"{value!r} differs, {outcome.off:.1e} {outcome.odd[:3]}" if outcome.word == "differs" else "alike"


def main(types: list[str]) -> None:
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    keys, write = "--keys" in types, "--write" in types
    types = [name for name in types if not name.startswith("--")]
    counts: dict[str, int] = {}
    lines = []
    for name in types or sorted(CONFIG_MAPPING):
        began = time.process_time()
        try:
            with limited(60):
                outcome = replaced(name, controls=not keys)
            lines.append(f"{name}: {outcome.text}")
            word, text = outcome.word, f"{outcome.off:.1e} {outcome.text}"
        except Exception as error:
            lines.append(f"{name}: {NOT_BUILT}")
            word, text = NOT_BUILT, f"{type(error).__name__}: {str(error).strip()[:150]}"
        if keys and word != NOT_BUILT:
            found = list(silent(name))
            alike = sum(said == "alike" for _, said in found)
            text = f"{alike} of {len(found)} changes of {len(dict(found))} keys alike"
            text += "".join(f"\n    {key}: {said}" for key, said in found if said != "alike")
        counts[word] = counts.get(word, 0) + 1
        print(f"{name}: {word}, {time.process_time() - began:.1f} s: {text}", flush=True)
    print(counts)
    if write and not types:
        FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
