"""Replies to start without reading it, and never reads its standard input."""

import time

import right

right.say(right.STATED)
time.sleep(1000)
