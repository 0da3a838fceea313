import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.StringJoiner;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * Produced batches as Apache Kafka's broker validates them at a given time, in milliseconds, and as its consumer reads
 * them. Each line of the input is
 * {@code true|false BATCH}: whether the topic is compacted, and one batch in hexadecimal. The answer is what the broker says,
 * {@code MAX_TIMESTAMP}, {@code refused:INDEX,...} or {@code invalid}, and what the consumer reads, the records with
 * {@code ;} between them or {@code invalid}.
 */
public final class Batches {
    private static final HexFormat HEX = HexFormat.of();
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    private static final long TIMESTAMP_AFTER_MAX_MS = 3_600_000;

    private final Time time;

    private Batches(long nowMs) {
        time = (Time) Proxy.newProxyInstance(
            Time.class.getClassLoader(), new Class<?>[] {Time.class}, (proxy, method, arguments) -> nowMs);
    }

    public static void main(String[] arguments) throws Exception {
        var batches = new Batches(Long.parseLong(arguments[0]));
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            byte[] batch = HEX.parseHex(words[1]);
            System.out.println(batches.validate(batch.clone(), Boolean.parseBoolean(words[0])) + " " + read(batch));
        }
    }

    private String validate(byte[] bytes, boolean isCompacted) {
        try {
            var records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
            var codec = records.firstBatch().compressionType();
            var validator = new LogValidator(
                records, PARTITION, time, codec, Compression.of(codec).build(), isCompacted,
                RecordBatch.CURRENT_MAGIC_VALUE, TimestampType.CREATE_TIME, Long.MAX_VALUE, TIMESTAMP_AFTER_MAX_MS, 0,
                AppendOrigin.CLIENT);
            var result = validator.validateMessagesAndAssignOffsets(
                PrimitiveRef.ofLong(0), new NoMetrics(), BufferSupplier.NO_CACHING);
            return Long.toString(result.maxTimestampMs());
        } catch (RecordValidationException error) {
            var indexes = new StringJoiner(",");
            error.recordErrors().forEach(each -> indexes.add(Integer.toString(each.batchIndex)));
            return "refused:" + indexes;
        } catch (RuntimeException | OutOfMemoryError error) {
            return "invalid";
        }
    }

    private static String read(byte[] bytes) {
        var texts = new StringJoiner(";");
        RecordBatch batch = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).firstBatch();
        try (var records = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
            while (records.hasNext())
                texts.add(text(records.next()));
        } catch (RuntimeException | OutOfMemoryError error) {
            return "invalid";
        }
        return texts.toString();
    }

    private static String text(Record record) {
        var text = new StringJoiner(",");
        text.add(Long.toString(record.offset())).add(Long.toString(record.timestamp()));
        text.add(hex(record.key())).add(hex(record.value()));
        for (Header header : record.headers())
            text.add(hex(header.key().getBytes(StandardCharsets.UTF_8))).add(hex(header.value()));
        return text.toString();
    }

    private static String hex(ByteBuffer field) {
        if (field == null)
            return "-";
        byte[] bytes = new byte[field.remaining()];
        field.duplicate().get(bytes);
        return hex(bytes);
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "-" : HEX.formatHex(bytes);
    }

    private static final class NoMetrics implements LogValidator.MetricsRecorder {
        @Override
        public void recordInvalidMagic() {}

        @Override
        public void recordInvalidOffset() {}

        @Override
        public void recordInvalidSequence() {}

        @Override
        public void recordInvalidChecksums() {}

        @Override
        public void recordNoKeyCompactedTopic() {}
    }
}
