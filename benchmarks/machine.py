"""Measures how fast this machine is at the moment: without it, seconds of different hours cannot be compared.

A virtual machine shares its processors' caches and memory with other machines, and often has only half its speed.
"""

import os
import time
from pathlib import Path

import numpy as np

_PASSES = 20_000_000
_NUMBERS = 50_000_000


def peak_mib(pid: int) -> float:
    """The most memory that a running process has had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def at_the_moment() -> str:
    """One line: the number of cores, and the CPU seconds of one core for a bare Python loop and for filling new
    memory."""
    began = time.process_time()
    for _ in range(_PASSES):
        pass
    looped = time.process_time()
    filled = np.ones(_NUMBERS)
    took = time.process_time() - looped
    return (
        f"{os.cpu_count()} cores; {_PASSES:,} passes of a loop: {looped - began:.2f} s; "
        f"{filled.nbytes >> 20} MiB of new memory: {took:.2f} s"
    )
