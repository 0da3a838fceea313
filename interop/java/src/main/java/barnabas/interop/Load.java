package barnabas.interop;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Produces at a steady rate with the producer's default settings until its input ends: {@code Load HOST:PORT TOPIC NAME
 * RATE}.
 *
 * <p>It prints a line for each record that is acknowledged: number, partition, offset, and when it was sent and
 * acknowledged, in milliseconds; or the number and the error.
 */
public final class Load {
    private static final int KEYS = 32;

    private Load() {}

    public static void main(String[] arguments) {
        Map<String, Object> configs = Map.of("bootstrap.servers", arguments[0]);
        long pauseNanos = 1_000_000_000L / Integer.parseInt(arguments[3]);
        try (var producer = new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer())) {
            long start = System.nanoTime();
            var input = new Thread(Load::awaitEndOfInput);
            input.start();
            for (int number = 0; input.isAlive(); number++) {
                send(producer, arguments[1], arguments[2], number);
                LockSupport.parkNanos(start + (number + 1) * pauseNanos - System.nanoTime());
            }
        }
    }

    private static void awaitEndOfInput() {
        try {
            System.in.readAllBytes();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void send(KafkaProducer<String, String> producer, String topic, String name, int number) {
        long sent = System.currentTimeMillis();
        var record = new ProducerRecord<>(topic, "key " + number % KEYS, name + " " + number);
        producer.send(record, (metadata, error) -> print(number, sent, metadata, error));
    }

    private static void print(int number, long sent, RecordMetadata metadata, Exception error) {
        if (error != null) {
            System.out.println(number + " " + error);
            return;
        }
        System.out.println(number + " " + metadata.partition() + " " + metadata.offset() + " " + sent + " "
                + System.currentTimeMillis());
    }
}
