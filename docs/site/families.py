"""A page for each family of models in `posref.presets`: parameters, sources, and five lines that run."""

from itertools import groupby

from posref.presets import MARKS, Preset, presets

OTHERS = "Other models"
FAMILIES = {  # how the names of a family's presets begin
    "Llama": ("llama", "code-llama"),
    "Qwen": ("qwen",),
    "DeepSeek": ("deepseek",),
    "Gemma": ("gemma",),
    "Mistral": ("mistral", "mixtral", "ministral"),
    "GLM": ("glm",),
    "gpt-oss": ("gpt-oss",),
    "Phi": ("phi",),
    "Kimi": ("kimi",),
    "MiniMax": ("minimax",),
    "MiMo": ("mimo",),
    "OLMo": ("olmo",),
    "Cohere Command": ("command",),
    "EXAONE": ("exaone", "k-exaone"),
    "ERNIE": ("ernie",),
    "ModernBERT": ("modernbert",),
    "GPT-J and GPT-NeoX": ("gpt-j", "gpt-neox", "codegen"),
}
LAYERS = {"full": "those with full attention", "sliding": "those with a sliding window"}  # how a preset's name ends


def families() -> dict[str, list[Preset]]:
    """Return the presets of each family; other names come last."""
    result: dict[str, list[Preset]] = {name: [] for name in (*FAMILIES, OTHERS)}
    for preset in presets.values():
        family = next((name for name, starts in FAMILIES.items() if preset.name.startswith(starts)), OTHERS)
        result[family].append(preset)
    return result


def slug(family: str) -> str:
    """Return the name of a family's page."""
    return family.lower().replace(" ", "-")


def links(up: str = "") -> str:
    """Return links to all families' pages."""
    return ", ".join(f"[{family}]({up}{slug(family)}.md)" for family in families())


def index() -> str:
    """Return the page of all families."""
    lines = [
        "# Models",
        "",
        "`posref.presets[NAME]` has the RoPE parameters of a released model, each checked against a source.",
    ]
    lines += ["`posref.from_config` reads the config.json of other models: see [model types](types.md).", ""]
    for family, members in families().items():
        lines += [f"[{family}]({slug(family)}.md)", f": {', '.join(f'`{preset.name}`' for preset in members)}", ""]
    return "\n".join([*lines, "```{toctree}", ":hidden:", *map(slug, families()), "types", "```", ""])


def page(family: str) -> str:
    """Return the page of one family: a section for each set of parameters."""
    lines = [f"# {family}", ""]
    for _, same in groupby(families()[family], key=lambda p: str((p.rope, p.mrope, p.factors, p.verified, p.note))):
        members = list(same)
        lines += [f"## {', '.join(preset.name for preset in members)}", "", *_facts(members), *_code(members[0])]
    return "\n".join(lines)


def _facts(members: list[Preset]) -> list[str]:
    preset = members[0]
    function, options = preset.op, preset.options
    lines = [f":Operation: [{function}](../encodings/{function}.md)"]
    lines += [f":{name}: {_value(value)}" for name, value in options.items()]
    lines += [f":Softmax scale: multiplied by {preset.factors['softmax']:.6g}"] if preset.factors["softmax"] != 1 else []
    kind = preset.name.rsplit("-", 1)[-1]
    reads = "`posref.rope_from_config(config, layer=5)` reads the parameters of layer 5"
    lines += [f":Layers: {LAYERS[kind]}; {reads}"] if kind in LAYERS else []
    lines += [f":Sizes: {_sizes(members)}"] if preset.sizes else []
    lines += [f":Note: {preset.note}"] if preset.note else []
    return [*lines, f":Sources: {'; '.join(MARKS[mark] for mark in preset.verified)}", ""]


def _value(value: object) -> str:
    """Return a value as in code; long lists are cut."""
    if isinstance(value, float):
        return f"{value:.15g}"
    if type(value).__module__ != "posref.scaling":
        return f"`{value!r}`"
    fields = {name: part for name, part in vars(value).items() if part is not None}
    return f"`{type(value).__name__}({', '.join(f'{name}={_short(part)}' for name, part in fields.items())})`"


def _short(value: object) -> str:
    if isinstance(value, tuple) and len(value) > 4:
        return f"({value[0]!r}, {value[1]!r}, ... {value[-1]!r})"
    return f"{value:.15g}" if isinstance(value, float) else repr(value)


def _sizes(members: list[Preset]) -> str:
    """Return the known sizes; if they differ, with the models that have each."""
    sizes: dict[str, list[str]] = {}
    for preset in members:
        if preset.sizes is not None:
            heads, keys, channels, tokens = vars(preset.sizes).values()
            said = f"{heads} query heads of {channels} channels, {keys} key heads; context of {tokens} tokens"
            sizes.setdefault(said, []).append(preset.name)
    alike = len(sizes) == 1 and all(preset.sizes for preset in members)
    return ". ".join(said if alike else f"{', '.join(names)}: {said}" for said, names in sizes.items())


def _code(preset: Preset) -> list[str]:
    """Return five lines that rotate queries."""
    function, options = preset.op, preset.options
    heads = preset.sizes.heads if preset.sizes else 8
    width = preset.sizes.head_size if preset.sizes else options.get("rotary_dim") or 2 * sum(options["sections"])
    places = "np.stack([np.arange(10)] * 3)  # frame, row, column" if "sections" in options else "np.arange(10)"
    length = ", length=10" if "length is not None" in getattr(options["scaling"], "requires", ()) else ""
    return [
        "```python",
        "import numpy as np",
        "import posref",
        "",
        f'preset = posref.presets["{preset.name}"]',
        f"positions = {places}",
        f"q = np.ones((1, {heads}, 10, {width}), np.float32)",
        f"q = posref.{function}(q, positions, **preset.{function}{length})",
        "```",
    ]
