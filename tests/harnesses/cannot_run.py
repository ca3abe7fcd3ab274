"""Says at start why it cannot run."""

import right

right.main(stated={"protocol": 1, "error": "no \x1b[31mGPU\x1b[0m found"})
