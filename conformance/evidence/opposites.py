"""Deviations that contradict each other: an implementation that shows two of one group has neither."""

OPPOSITES = tuple(
    frozenset(names.split())
    for names in (
        "positions-plus-1 positions-minus-1",
        "shaw-row-plus-1 shaw-row-minus-1",
        "shaw-key-minus-query shaw-query-minus-key shaw-other-order",
        "layout-half layout-interleaved layout-interleaved-to-half",
        "inside-layout-half inside-layout-interleaved",
        "inverse-ignored inverse-exchanged",
        "trailing-lanes leading-lanes",
        "values-trailing-lanes values-leading-lanes",
        "rotary-dim-ignored rotary-dim-twice",
        "factor-dropped factor-squared",
        "linear-ignored linear-multiplied",
        "llama3-ramp-inverted llama3-bands-exchanged",
        "yarn-truncated yarn-not-truncated",
        "yarn-factor-missing yarn-factor-plain",
        "longrope-always-short longrope-always-long longrope-early",
        "xpos-keys-as-queries xpos-queries-as-keys xpos-roles-exchanged",
        "endpoint-always endpoint-never",
        "sinusoid-interleaved sinusoid-concatenated sin-cos-exchanged sinusoid-halves-exchanged",
        "axes-chunked axes-interleaved axes-round-robin axes-ernie",
        "ladder-shared ladder-own",
        "exponent-half exponent-doubled exponent-floored exponent-zero",
        "positions-arange positions-arange-of-x positions-from-first",
        "not-rotated sign-flipped",
    )
)


def contradict(names: frozenset[str]) -> bool:
    """Return whether deviations that are named together contradict each other."""
    return any(len(names & group) > 1 for group in OPPOSITES)
