"""kafka-trial: bring up a real Kafka, break it, record everything, and judge what happened to every record."""
