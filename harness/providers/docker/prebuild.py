"""Builds the images of the default version before a run needs them: ``python -m harness.providers.docker.prebuild``.

With ``--lacking`` it builds nothing, and prints the Debian packages that this machine lacks to build them.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from docker import DockerClient

from harness.cluster.spec import DEFAULT_VERSION
from harness.core.errors import EnvironmentLacks, ScenarioError
from harness.providers.docker.engine import connect
from harness.providers.docker.images import kafka_image, lacking, toolbox_image

#: Seconds between two lines about images that are still being built.
_EVERY_S = 10.0


def await_all(building: dict[Future[None], str], say: Callable[[str], None], every_s: float = _EVERY_S) -> None:
    """Wait for all images, and say every few seconds which are still being built. Raises the error of the first that
    failed, when none is built any more."""
    waiting, failed = dict(building), []
    while waiting:
        ended = wait(waiting, every_s, return_when="FIRST_COMPLETED").done
        for image in ended:
            del waiting[image]
            failed += [error] if (error := image.exception()) is not None else []
        if not ended:
            say(f"still waiting for {' and '.join(waiting.values())}")
    if failed:
        raise failed[0]


def main(connect: Callable[[], DockerClient] = connect, only_look: bool = False) -> int:
    """Build what is missing, and report progress on stderr. Returns an exit code: 3 if an image cannot be built."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"images {time.monotonic() - began:2.0f} s: {text}", file=sys.stderr, flush=True)

    def build(image: Callable[[DockerClient], str]) -> None:
        say(f"{image(client)} is there")

    try:
        client = connect()
        if only_look:
            print(" ".join(lacking(client)))
            return 0
        with ThreadPoolExecutor() as pool:
            building = {
                pool.submit(build, toolbox_image): "the toolbox (iptables, tc)",
                pool.submit(build, lambda client: kafka_image(client, DEFAULT_VERSION)): f"Kafka {DEFAULT_VERSION}",
            }
            say(f"looking for {' and '.join(building.values())}; each takes about a minute to build")
            await_all(building, say)
    except (EnvironmentLacks, ScenarioError) as exc:
        print(f"images: {exc}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(only_look="--lacking" in sys.argv[1:]))
