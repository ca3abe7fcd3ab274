"""What the functions of positions are, in words."""

from .record import About

ABOUT: dict[str, About] = {
    "positions_from_mask": About(
        "Positions from a padding mask",
        "Rows of a batch are padded to one length. A token's position is the number of tokens before it, padding not counted, "
        "so that a row gets the same positions however much padding stands in front of it.",
    ),
    "positions_from_tokens": About(
        "RoBERTa's positions from token ids",
        "RoBERTa keeps a row of its position table for padding. Tokens are numbered from the row after that one, padding "
        "always has its own row, and a token's row does not depend on how much padding there is.",
    ),
    "packed_documents": About(
        "Documents of a packed row",
        "Several documents are packed into one row, and positions start again in each. A document begins wherever a position "
        "is not one more than the one before. Attention may then look only at tokens of its own document.",
    ),
    "visible_windows": About(
        "Compressed windows that a query sees",
        "DeepSeek-V4 compresses every few keys to one. A query may look at a compressed key once all tokens of its window are "
        "there, so the number of windows that it sees is the number of tokens so far, divided and rounded down.",
    ),
    "zigzag_shard": About(
        "Zig-zag shard of a sequence",
        "In causal attention late tokens have more to do. Context parallelism cuts a sequence into twice as many chunks as "
        "there are devices, and gives each device one from the front and one from the back, so that all have equal work.",
    ),
    "striped_shard": About(
        "Striped shard of a sequence",
        "Tokens are dealt to devices like cards, one by one in turn. Every device then has early and late tokens in equal "
        "number, so that in causal attention all have nearly the same work, and every one knows its own positions.",
    ),
}
