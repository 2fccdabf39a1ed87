import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;

/**
 * 15 bins of count, scores and outcomes for each model and pane of event time, by the Processor API and in plain
 * memory: the cheapest way that Kafka Streams has. Sums of partitions are not merged, and nothing is stored.
 *
 * Sums BROKERS TOPIC EVENTS
 */
public class Sums {
    static final int BINS = 15;
    static final long PANE_MS = 60_000;
    static final JsonFactory JSON = new JsonFactory();

    static class Bins implements Processor<byte[], byte[], Void, Void> {
        final Map<String, Map<Long, double[]>> panes = new HashMap<>();
        final AtomicLong seen;

        Bins(AtomicLong seen) {
            this.seen = seen;
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            String model = "";
            long time = 0;
            double score = 0, outcome = 0;
            try (JsonParser json = JSON.createParser(record.value())) {
                json.nextToken();
                while (json.nextToken() == JsonToken.FIELD_NAME) {
                    String name = json.currentName();
                    json.nextToken();
                    switch (name) {
                        case "model" -> model = json.getText();
                        case "time_ms" -> time = json.getLongValue();
                        case "score" -> score = json.getDoubleValue();
                        case "outcome" -> outcome = json.getDoubleValue();
                        default -> json.skipChildren();
                    }
                }
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
            double[] sums = panes.computeIfAbsent(model, m -> new HashMap<>())
                .computeIfAbsent(time / PANE_MS, p -> new double[3 * BINS]);
            int bin = Math.min((int) (score * BINS), BINS - 1);
            sums[bin] += 1;
            sums[BINS + bin] += score;
            sums[2 * BINS + bin] += outcome;
            seen.incrementAndGet();
        }
    }

    public static void main(String[] args) throws Exception {
        long events = Long.parseLong(args[2]);
        AtomicLong seen = new AtomicLong();
        Topology topology = new Topology();
        topology.addSource("events", Serdes.ByteArray().deserializer(), Serdes.ByteArray().deserializer(), args[1]);
        topology.addProcessor("bins", () -> new Bins(seen), "events");
        Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, "peers-" + System.nanoTime());
        p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        p.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("java.io.tmpdir") + "/peers-" + ProcessHandle.current().pid());
        p.put("auto.offset.reset", "earliest");
        try (KafkaStreams streams = new KafkaStreams(topology, p)) {
            streams.start();
            while (seen.get() < events) {
                Thread.sleep(20);
            }
        }
        System.out.println(seen.get());
    }
}
