"""A verdict as people and machines want to read it. Nothing here knows how it was reached."""

from harness.report.files import write
from harness.report.text import show

__all__ = ["show", "write"]
