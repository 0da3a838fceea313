package barnabas;

import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.opentest4j.TestAbortedException;

/** What the harness notes about the test that runs now. Tests run one after another in a JVM. */
public final class CurrentTest {
    private static final Set<String> NOT_APPLICABLE = Collections.synchronizedSet(new LinkedHashSet<>());
    private static volatile int brokersAsked;
    private static volatile Path log;

    private CurrentTest() {
    }

    static void begin() {
        NOT_APPLICABLE.clear();
        brokersAsked = 0;
        log = null;
    }

    /** Note why the test does not apply. The caller throws what is returned; a test may still swallow it. */
    public static TestAbortedException notApplicable(Kind kind, String what) {
        NOT_APPLICABLE.add(kind + ": " + what);
        return new TestAbortedException("not applicable: " + kind + ": " + what);
    }

    static List<String> notApplicable() {
        synchronized (NOT_APPLICABLE) {
            return List.copyOf(NOT_APPLICABLE);
        }
    }

    public static void asksForBrokers(int count) {
        brokersAsked = count;
    }

    public static int brokersAsked() {
        return brokersAsked;
    }

    static void log(Path path) {
        log = path;
    }

    static Path log() {
        return log;
    }

    /** Why a test cannot be run against Barnabas; the report has a column for each. */
    public enum Kind {
        SEVERAL_BROKERS, GROUPS, JVM, CONTROLLER, METADATA_VERSION, TIERED, PLUGIN, TLS, SASL, TOKENS, DUPLICATE;

        @Override
        public String toString() {
            return name().toLowerCase(java.util.Locale.ROOT).replace('_', ' ');
        }
    }
}
