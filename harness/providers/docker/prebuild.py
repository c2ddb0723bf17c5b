"""Builds the images of the default version before a run needs them: ``python -m harness.providers.docker.prebuild``.

With ``--lacking`` it builds nothing, and prints the Debian packages that this machine lacks to build them.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from docker import DockerClient

from harness.cluster.spec import DEFAULT_VERSION
from harness.core.errors import EnvironmentLacks, ScenarioError
from harness.providers.docker.engine import connect
from harness.providers.docker.images import kafka_image, lacking, toolbox_image


def main(connect: Callable[[], DockerClient] = connect, only_look: bool = False) -> int:
    """Build what is missing, and report progress on stderr. Returns an exit code: 3 if an image cannot be built."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"images {time.monotonic() - began:2.0f} s: {text}", file=sys.stderr, flush=True)

    def build(what: str, image: Callable[[DockerClient], str]) -> None:
        say(f"looking for {what}; building it takes about a minute")
        say(f"{image(client)} is there")

    try:
        client = connect()
        if only_look:
            print(" ".join(lacking(client)))
            return 0
        with ThreadPoolExecutor() as pool:
            asked = [
                pool.submit(build, "the toolbox (iptables, tc)", toolbox_image),
                pool.submit(build, f"Kafka {DEFAULT_VERSION}", lambda client: kafka_image(client, DEFAULT_VERSION)),
            ]
            for image in asked:
                image.result()
    except (EnvironmentLacks, ScenarioError) as exc:
        print(f"images: {exc}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(only_look="--lacking" in sys.argv[1:]))
