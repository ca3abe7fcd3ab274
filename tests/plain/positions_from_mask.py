"""As transformers' generation has it (5.23.0): generation/utils.py, lines 905-907; the value at padding is an argument here."""

backend = "torch"


def positions_from_mask(mask, /, *, padding):
    position_ids = mask.long().cumsum(-1) - 1
    return position_ids.masked_fill(mask == 0, padding)
