package barnabas;

import java.util.List;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.utils.Utils;
import org.junit.jupiter.api.Assertions;

/** The configs of the brokers that run, as their admin API describes them. */
public final class RemoteConfigs {
    private RemoteConfigs() {
    }

    /** Return when all brokers have a value; of one that is secret, when they have any. */
    public static void await(String name, String value, long timeoutMs) {
        long end = System.currentTimeMillis() + timeoutMs;
        for (BrokerProcess each : BrokerProcess.running()) {
            ConfigEntry now = entry(each, name);
            while (now == null || !(now.isSensitive() || value.equals(now.value()))) {
                Assertions.assertTrue(System.currentTimeMillis() < end, () -> name + " is not " + value);
                Utils.sleep(100);
                now = entry(each, name);
            }
        }
    }

    private static ConfigEntry entry(BrokerProcess broker, String name) {
        ConfigResource which = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(broker.nodeId()));
        try {
            return broker.admin().describeConfigs(List.of(which)).all().get().get(which).get(name);
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException(error);
        }
    }
}
