import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.serialization.AbstractDeserializationSchema;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;

/**
 * 15 bins of count, scores and outcomes for each model and pane of event time, by tumbling windows in heap state.
 *
 * Sums BROKERS TOPIC
 */
public class Sums {
    static final int BINS = 15;
    static final JsonFactory JSON = new JsonFactory();

    public static class Event {
        public String model = "";
        public long time;
        public double score;
        public double outcome;
    }

    static class Decode extends AbstractDeserializationSchema<Event> {
        @Override
        public Event deserialize(byte[] record) throws java.io.IOException {
            Event e = new Event();
            try (JsonParser json = JSON.createParser(record)) {
                json.nextToken();
                while (json.nextToken() == JsonToken.FIELD_NAME) {
                    String name = json.currentName();
                    json.nextToken();
                    switch (name) {
                        case "model" -> e.model = json.getText();
                        case "time_ms" -> e.time = json.getLongValue();
                        case "score" -> e.score = json.getDoubleValue();
                        case "outcome" -> e.outcome = json.getDoubleValue();
                        default -> json.skipChildren();
                    }
                }
            }
            return e;
        }
    }

    static class Bins implements AggregateFunction<Event, double[], double[]> {
        @Override
        public double[] createAccumulator() {
            return new double[3 * BINS];
        }

        @Override
        public double[] add(Event e, double[] sums) {
            int bin = Math.min((int) (e.score * BINS), BINS - 1);
            sums[bin] += 1;
            sums[BINS + bin] += e.score;
            sums[2 * BINS + bin] += e.outcome;
            return sums;
        }

        @Override
        public double[] getResult(double[] sums) {
            return sums;
        }

        @Override
        public double[] merge(double[] a, double[] b) {
            for (int i = 0; i < a.length; i++) {
                a[i] += b[i];
            }
            return a;
        }
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        env.getConfig().enableObjectReuse();
        KafkaSource<Event> source = KafkaSource.<Event>builder()
            .setBootstrapServers(args[0])
            .setTopics(args[1])
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setBounded(OffsetsInitializer.latest())
            .setValueOnlyDeserializer(new Decode())
            .build();
        WatermarkStrategy<Event> times = WatermarkStrategy
            .<Event>forBoundedOutOfOrderness(Duration.ofSeconds(5))
            .withTimestampAssigner((e, at) -> e.time);
        env.fromSource(source, times, "events")
            .keyBy(e -> e.model)
            .window(TumblingEventTimeWindows.of(Duration.ofMinutes(1)))
            .aggregate(new Bins())
            .sinkTo(new DiscardingSink<>());
        env.execute();
    }
}
