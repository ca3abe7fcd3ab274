"""Ask every operation's first case on PyTorch's DTensor, in a group of one process, and print those that are off as JSON."""

import json
import os
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh

from posref.conformance.calls import bind
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.spec import REGISTRY

PORT = "29534"


def placed(x: Any, mesh: Any, *, shard: bool) -> Any:
    """Return an array on the mesh, cut along its last axis but one if it has one and `shard`, else whole on every device."""
    tensor = torch.from_numpy(np.array(x))
    return distribute_tensor(tensor, mesh, [Shard(tensor.ndim - 2) if shard and tensor.ndim > 1 else Replicate()])


def off() -> dict[str, str]:
    mesh, found = init_device_mesh("cpu", (1,)), {}
    for group in load_groups(INSTALLED):
        for case in (case for case in group.cases if case.tier == "smoke"):
            call = case.calls[0]
            for shard in (False, True):
                inputs = {name: placed(x, mesh, shard=shard) for name, x in call.inputs.items() if x is not None}
                positional, keywords = bind(case.op, inputs, call.params)
                try:
                    out = REGISTRY[case.op].function(*positional, **keywords)
                except Exception as error:
                    found[f"{case.op} {shard}"] = f"{type(error).__name__}: {error}"[:600]
                    continue
                first = out[0] if isinstance(out, tuple) else out
                whole = first.full_tensor() if isinstance(first, DTensor) else torch.as_tensor(first)
                expected = call.expected[REGISTRY[case.op].outputs[0]]
                # chosen: which rows a shard holds is asked here, not rounding, which the suite judges on plain tensors
                if not np.allclose(whole.to(torch.float64).numpy(), expected, rtol=1e-5, atol=1e-5, equal_nan=True):
                    found[f"{case.op} {shard}"] = "other values"
    return found


if __name__ == "__main__":
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": PORT, "RANK": "0", "WORLD_SIZE": "1"}
    dist.init_process_group("gloo")
    print(json.dumps(off()))
    dist.destroy_process_group()
