"""How fast this machine is at the moment: seconds measured in two hours compare only beside it.

A virtual machine shares its processors' memory and caches with others that come and go; half its speed is common.
"""

import os
import time

_PASSES = 20_000_000


def at_the_moment() -> str:
    """One line: the cores, and the seconds that a bare Python loop takes on one of them."""
    began = time.process_time()
    for _ in range(_PASSES):
        pass
    return f"{os.cpu_count()} cores; {_PASSES:,} passes of a loop: {time.process_time() - began:.2f} s"
