"""15 bins of count, scores and outcomes for each model and pane of event time: confluent-kafka, orjson, numpy.

sums.py BROKERS TOPIC EVENTS
"""

import sys
from collections import defaultdict

import confluent_kafka
import numpy
import orjson

BINS, PANE_MS = 15, 60_000
brokers, topic, events = sys.argv[1], sys.argv[2], int(sys.argv[3])
consumer = confluent_kafka.Consumer(
    {"bootstrap.servers": brokers, "group.id": "peers", "enable.auto.commit": False}
)
partitions = consumer.list_topics(topic).topics[topic].partitions
consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in partitions])
panes = defaultdict(lambda: numpy.zeros(3 * BINS))
seen = 0
while seen < events:
    batch = defaultdict(lambda: ([], []))
    for message in consumer.consume(10_000, 1.0):
        if message.error():
            sys.exit(str(message.error()))
        event = orjson.loads(message.value())
        scores, outcomes = batch[event["model"], event["time_ms"] // PANE_MS]
        scores.append(event["score"])
        outcomes.append(event["outcome"])
        seen += 1
    for key, (scores, outcomes) in batch.items():
        scores, outcomes = numpy.array(scores), numpy.array(outcomes)
        bins = numpy.minimum((scores * BINS).astype(int), BINS - 1)
        parts = [numpy.bincount(bins, w, BINS) for w in (None, scores, outcomes)]
        panes[key] += numpy.concatenate(parts)
print(seen)
