"""Right, and then does not go."""

import time

import right

right.main()
time.sleep(1000)
