"""Right, with tensors in safetensors files instead of base64."""

import base64
import json
from pathlib import Path

import right


def reply(request):
    data = Path(request["files"]["inputs"]).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    for name, tensor in request["inputs"].items():
        begin, end = header[f"in/{name}"]["data_offsets"]
        tensor["data"] = base64.b64encode(data[8 + size :][begin:end]).decode()
    message = right.reply(request)
    for name, tensor in message.get("outputs", {}).items():
        body = base64.b64decode(tensor.pop("data"))
        header = json.dumps({name: tensor | {"data_offsets": [0, len(body)]}}).encode()
        Path(request["files"]["outputs"]).write_bytes(len(header).to_bytes(8, "little") + header + body)
    return message


right.main(reply, right.STATED | {"tensors": "file"})
