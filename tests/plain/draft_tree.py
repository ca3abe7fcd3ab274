"""
As Medusa computes it (FasterDecoding/Medusa, commit 10a2697): medusa/model/utils.py, lines 47-55 and 83-88, and tree_decoding,
which adds the length of the text. A root is Medusa's node 0, so its path is empty here.
"""

import torch

backend = "torch"


def draft_tree(verified, parents, /):
    trees = parents.broadcast_to((*verified.shape, parents.shape[-1]))
    position_ids = torch.zeros(trees.shape, dtype=torch.int64)
    flat, found = trees.reshape(-1, trees.shape[-1]) if trees.numel() else trees[:0], position_ids.view(-1, 1)[:0]
    found = position_ids.view(-1, trees.shape[-1]) if trees.numel() else found
    for row, tree in enumerate(flat):
        medusa_choices = []
        for node, parent in enumerate(tree.tolist()):
            medusa_choices.append([] if parent < 0 else [*medusa_choices[parent], node])
        for node, path in enumerate(medusa_choices):
            found[row, node] = len(path)
    return position_ids + verified[..., None]
