"""
Charts of positional encodings, for notebooks and pages. `posref plot` draws the same ones.

`KINDS` lists the kinds of charts. `chart` returns the data of a chart, as arrays with the names of the axes. `save` draws
charts with matplotlib (``pip install 'posref[plots]'``).
"""

from typing import Any

from posref.spec import REGISTRY

from .calls import TOKENS, Asked
from .charts import Chart, Lines, Map, Points, save
from .kinds import KINDS, Kind, kinds_of

__all__ = ["KINDS", "Chart", "Kind", "Lines", "Map", "Points", "chart", "kinds_of", "save"]


def __dir__() -> list[str]:
    """Return only the public names, without what is imported."""
    return __all__


def chart(op: str, kind: str | None = None, /, *, tokens: int = TOKENS, title: str = "", **options: Any) -> Chart:
    """
    Return the chart of an operation.

    Parameters
    ----------
    op : str
        The operation: "sinusoidal", "rope", "alibi" or another one from `posref list`.
    kind : str, optional
        The name of one of `kinds_of(op)`. By default the first one.
    tokens : int
        The number of positions, from 2 to 4096.
    title : str, optional
        By default the operation and the given options.
    **options
        Options of the operation. The others are taken from the operation's first conformance case, with larger sizes.

    Returns
    -------
    Chart
        `Lines`, a `Map` or `Points`. ``arrays()`` returns every number in it.

    Raises
    ------
    ValueError
        If the operation, the kind or an option is unknown, `tokens` is out of range, or the operation refuses the options.

    Examples
    --------
    >>> found = chart("alibi", "bias", tokens=4, heads=8, form="causal")
    >>> found.arrays()["head 0/y"].tolist()
    [-0.0, -0.5, -1.0, -1.5]
    """
    if op not in REGISTRY:
        msg = f"chart: op must be the name of an operation; got {op!r}."
        raise ValueError(msg)
    unknown = sorted(set(options) - set(REGISTRY[op].domains))
    if unknown:
        msg = f"chart: options of {op} must be among {', '.join(REGISTRY[op].domains)}; got {', '.join(unknown)}."
        raise ValueError(msg)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or not 2 <= tokens <= 4096:
        msg = f"chart: tokens must be an int from 2 to 4096; got {tokens!r}."
        raise ValueError(msg)
    kinds = {kind_of_chart.name: kind_of_chart for kind_of_chart in kinds_of(op)}
    if kind is not None and kind not in kinds:
        msg = f"chart: kind must be one of {', '.join(kinds)} for {op}; got {kind!r}."
        raise ValueError(msg)
    chosen = kinds[kind] if kind is not None else next(iter(kinds.values()))
    return chosen.chart(Asked(op, options, tokens, title))
