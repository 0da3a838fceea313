package barnabas;

import com.yammer.metrics.core.Gauge;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** How many logins ended how, by the names of Kafka's metrics: what brokers count in /metrics, without those of the harness. */
public final class LoginCounts {
    private static final String METRIC = "barnabas_logins_total{";
    private static final Map<String, String> OUTCOMES = Map.of(
        "successful-authentication-total", "succeeded",
        "failed-authentication-total", "failed",
        "failed-reauthentication-total", "failed",
        "expired-connections-killed-count", "expired",
        "ExpiredConnectionsKilledCount", "expired");

    private LoginCounts() {
    }

    /** The sum over all brokers that run. Any other metric ends the test as not applicable. */
    public static long total(String name) {
        if (!OUTCOMES.containsKey(name))
            throw CurrentTest.notApplicable(CurrentTest.Kind.JVM, "the metric " + name);
        return BrokerProcess.running().stream().map(each -> each.settings.metricsPort).filter(port -> port != 0).flatMap(port -> lines(port).stream())
            .filter(line -> line.startsWith(METRIC) && line.contains("outcome=\"" + OUTCOMES.get(name) + "\"") && !line.contains("listener=\"HARNESS\""))
            .mapToLong(line -> (long) Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1))).sum();
    }

    public static Gauge<Object> gauge(String name) {
        double total = total(name);
        return new Gauge<>() {
            @Override
            public Object value() {
                return total;
            }
        };
    }

    private static List<String> lines(int port) {
        try (var page = URI.create("http://127.0.0.1:" + port + "/metrics").toURL().openStream()) {
            return new String(page.readAllBytes(), StandardCharsets.UTF_8).lines().toList();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
