"""
The limits of files: how many bytes, and how much inside, posref reads of a file; a larger one is refused.

Every reader of files takes its limit from here. `targets/limits.py` has those of a target and of its messages.
"""

# ---- files by what they are: bytes
SUITE_FILE = 64 * 2**20  # of any file of a suite
SUITE_DOCUMENT = 4 * 2**20  # of a JSON file of a suite
NAMED_FILE = 1 << 28  # that a user names
REPORT = 1 << 26  # of an earlier check
ANSWERS = 1 << 22  # about an implementation that answered elsewhere

# ---- JSON
JSON_DOCUMENT = 16 * 2**20  # bytes of a document; the parsed objects may take about twenty times as much
DEPTH = 32  # of objects and lists inside one another; tensors have at most 8 axes
DIGITS = 20  # no 64-bit integer has more, and longer ones take time that grows with the square

# ---- tensors (safetensors)
TENSOR_NAME = 255  # bytes
TENSOR_AXES = 8
TENSOR_HEADER = 2**20  # bytes
EMPTY_TENSOR = 2**20  # places of the other axes of a tensor without values
REFUSED_CALL = 2**16  # places of an axis in a call to be refused, where no expected values bound them

# ---- GGUF
GGUF_HEADER = 1 << 28  # bytes: vocabularies take some millions
GGUF_ARRAY = 1 << 12  # elements of an array; longer ones are vocabularies, and are not kept
GGUF_ELEMENTS = 1 << 20  # of all arrays that are kept
GGUF_PAIRS, GGUF_TENSORS = 1 << 14, 1 << 17
GGUF_STRINGS = 1 << 22  # of a vocabulary
GGUF_AXES = 4
