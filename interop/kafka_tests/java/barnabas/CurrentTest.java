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
    private static volatile int brokerId;
    private static volatile boolean single;
    private static volatile Path log;
    private static volatile List<String> scramUsers = List.of();

    private CurrentTest() {
    }

    static void begin() {
        NOT_APPLICABLE.clear();
        brokersAsked = 0;
        single = false;
        log = null;
        scramUsers = List.of();
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

    /** A test asks for this many brokers; the one that it gets has this id. */
    public static void asksForBrokers(int count, int id) {
        brokersAsked = count;
        brokerId = id;
    }

    /** A test gets one broker, however many it asks for. */
    public static void getsOneBroker() {
        single = true;
    }

    /** Whether a test has asked for several brokers and got one. */
    public static boolean hasFewerBrokers() {
        return single && brokersAsked > 1;
    }

    static boolean hasSeveralBrokers() {
        return !single && brokersAsked > 1;
    }

    public static int brokerId() {
        return brokerId;
    }

    public static int brokersAsked() {
        return brokersAsked;
    }

    /** The users that a test formats its storage with, as `kafka-storage format --add-scram` takes them. */
    public static void scramUsers(List<String> users) {
        scramUsers = List.copyOf(users);
    }

    static List<String> scramUsers() {
        return scramUsers;
    }

    static void log(Path path) {
        log = path;
    }

    static Path log() {
        return log;
    }

    /** Why a test cannot be run against Barnabas; the report has a column for each. */
    public enum Kind {
        BROKERS("several brokers"),
        GROUPS("share or streams groups"),
        JVM("internals of the JVM"),
        CONTROLLER("controller listener"),
        METADATA_VERSION("old metadata.version"),
        TIERED("tiered storage"),
        PLUGIN("Java plugin"),
        SASL("SASL mechanism"),
        DUPLICATE("duplicate");

        private final String label;

        Kind(String label) {
            this.label = label;
        }

        @Override
        public String toString() {
            return label;
        }
    }
}
