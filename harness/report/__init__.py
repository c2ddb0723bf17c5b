"""A verdict for people and machines to read. Nothing here knows how it was reached."""

from harness.report.files import write
from harness.report.text import show

__all__ = ["show", "write"]
