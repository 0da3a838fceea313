import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;

/** Refuses configs in words that tell what it was asked, unless flush.ms is among them; 13 for it meets an error. */
public class EchoConfigs implements AlterConfigPolicy {
    @Override
    public void configure(Map<String, ?> configs) {
    }

    @Override
    public void validate(RequestMetadata request) {
        String flush = request.configs().get("flush.ms");
        if ("13".equals(flush)) {
            throw new IllegalStateException("crash");
        }
        if (flush == null) {
            throw new PolicyViolationException(String.join("|", request.resource().type().name(),
                request.resource().name(), new TreeMap<>(request.configs()).toString()));
        }
    }

    @Override
    public void close() {
    }
}
