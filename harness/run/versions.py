"""The versions that a run was made with, for run.json."""

import platform
from importlib.metadata import version

import confluent_kafka


def versions(kafka: str) -> dict[str, str]:
    """What a reader needs to repeat a run."""
    return {
        "kafka": kafka,
        "kafka-trial": version("kafka-trial"),
        "librdkafka": confluent_kafka.libversion()[0],
        "confluent-kafka": version("confluent-kafka"),
        "pyspark": version("pyspark"),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }
