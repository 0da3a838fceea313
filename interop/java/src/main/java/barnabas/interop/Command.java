package barnabas.interop;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/** One input line; each operation reads the fields that it needs. interop/README.md lists the commands. */
record Command(
        String topic,
        int partition,
        int partitions,
        Map<String, String> configs,
        String codec,
        boolean idempotent,
        @JsonProperty("transactional_id") String transactionalId,
        boolean commit,
        List<Line> records,
        int count,
        Long timestamp,
        long before,
        int broker,
        String key,
        String value,
        String principal,
        String user,
        Double limit,
        int iterations,
        List<Integer> replicas,
        String group,
        String strategy,
        String protocol,
        String instance) {

    /** A record as the commands carry it: text or null, the timestamp in milliseconds. */
    record Line(String key, String value, List<List<String>> headers, Long timestamp, Long offset) {}

    TopicPartition topicPartition() {
        return new TopicPartition(topic, partition);
    }
}
