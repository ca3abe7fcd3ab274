"""Right, but it wants 400 MiB for it."""

import right


def reply(request):
    hoard = bytearray(400 * 2**20)
    return right.reply(request) | {"message": str(len(hoard))}


right.main(reply)
