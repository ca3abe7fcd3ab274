"""Never replies."""

import time

import right

right.main(lambda request: time.sleep(1000))
