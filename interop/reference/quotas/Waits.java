import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

/**
 * How long Apache Kafka's own measures would have clients wait, in milliseconds. Each line of the input begins a measure
 * ({@code rate|bucket WINDOWS WINDOW_MS LIMIT}) or records a value ({@code record VALUE NOW_MS}) and is answered then.
 */
public final class Waits {
    private interface Measure {
        long record(double value, long nowMs);
    }

    private Waits() {}

    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        Measure measure = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "rate" -> measure = rate(config(words), Double.parseDouble(words[3]));
                case "bucket" -> measure = bucket(config(words), Double.parseDouble(words[3]));
                default -> System.out.println(
                        measure.record(Double.parseDouble(words[1]), Long.parseLong(words[2])));
            }
        }
    }

    private static MetricConfig config(String[] words) {
        return new MetricConfig()
                .samples(Integer.parseInt(words[1]))
                .timeWindow(Long.parseLong(words[2]), TimeUnit.MILLISECONDS)
                .quota(Quota.upperBound(Double.parseDouble(words[3])));
    }

    /** As {@code QuotaUtils.throttleTime} takes it from a rate. */
    private static Measure rate(MetricConfig config, double limit) {
        var rate = new Rate();
        return (value, nowMs) -> {
            rate.record(config, value, nowMs);
            double measured = rate.measure(config, nowMs);
            return measured > limit ? Math.round((measured - limit) / limit * rate.windowSize(config, nowMs)) : 0;
        };
    }

    /** As {@code ControllerMutationQuotaManager} takes it from a bucket. */
    private static Measure bucket(MetricConfig config, double limit) {
        var bucket = new TokenBucket();
        return (value, nowMs) -> {
            bucket.record(config, value, nowMs);
            double tokens = bucket.measure(config, nowMs);
            return tokens < 0 ? Math.round(-tokens / limit * 1000) : 0;
        };
    }
}
