"""The wheel carries image recipes, scenarios and suites as ``harness/_data``; everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = ("docker", "scenarios", "suites")


class BuildWithData(build_py):
    """Copies the folders that harness/resources.py looks for. An editable install has them in the repo."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in FOLDERS:
            shutil.copytree(name, Path(self.build_lib, "harness", "_data", name), dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithData})
