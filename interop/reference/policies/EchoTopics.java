import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/** Refuses topics in words that tell what it was asked; "ok..." passes, "crash..." meets an error. */
public class EchoTopics implements CreateTopicPolicy {
    private String setting;

    @Override
    public void configure(Map<String, ?> configs) {
        setting = String.valueOf(configs.get("acme.setting"));
    }

    @Override
    public void validate(RequestMetadata request) {
        if (request.topic().startsWith("crash")) {
            throw new IllegalStateException("crash");
        }
        if (!request.topic().startsWith("ok")) {
            throw new PolicyViolationException(String.join("|", setting, request.topic(),
                String.valueOf(request.numPartitions()), String.valueOf(request.replicationFactor()),
                request.replicasAssignments() == null ? "null" : new TreeMap<>(request.replicasAssignments()).toString(),
                new TreeMap<>(request.configs()).toString()));
        }
    }

    @Override
    public void close() {
    }
}
