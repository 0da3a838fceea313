package barnabas;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;

import com.yammer.metrics.core.Gauge;
import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyStore;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.pool.TypePool;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;

/** Small changes of classes of Kafka's as they are loaded, where a class of ours cannot stand in their place. */
public final class Rewrites implements ClassFileTransformer {
    private static final String CREATED = "org.apache.kafka.common.message.CreateTopicsRequestData$";
    private static final String CONSTRUCTOR = "<init>";
    private static final Map<String, Rewrite> BY_CLASS = new HashMap<>();

    static {
        add(CREATED + "CreatableTopic", "setReplicationFactor", "FewerReplicas");
        add(CREATED + "CreatableReplicaAssignment", "setBrokerIds", "FewerBrokers");
        add("org.apache.kafka.common.message.CreatePartitionsRequestData$CreatePartitionsAssignment", "setBrokerIds", "FewerBrokers");
        add("org.apache.kafka.common.config.ConfigResource", CONSTRUCTOR, "OnlyBroker");
        add("org.apache.kafka.common.test.junit.RaftClusterInvocationContext", "getAdditionalExtensions", "OneOfTwoTypes");
        add("kafka.server.ControllerServer", "startup", "NoController");
        add("org.apache.kafka.metadata.storage.Formatter", "setScramArguments", "ScramUsers");
        add("org.apache.kafka.test.TestSslUtils", Map.of("createEmptyKeyStore", "Pkcs12Stores", "generateKeyPair", "KeptKeyPairs"));
        add("kafka.utils.TestUtils$", "totalMetricValue", "BrokerTotal");
        add("kafka.api.EndToEndAuthorizationTest", "getGauge", "BrokerGauge");
        add("kafka.server.DynamicBrokerReconfigurationTest", "waitForConfigOnServer", "BrokerConfig");
    }

    /** Called by the JVM before the program, as the manifest says. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        instrumentation.addTransformer(new Rewrites());
    }

    private static void add(String type, String method, String advice) {
        add(type, Map.of(method, advice));
    }

    private static void add(String type, Map<String, String> adviceByMethod) {
        BY_CLASS.put(type.replace('.', '/'), new Rewrite(type, adviceByMethod));
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> before, ProtectionDomain domain, byte[] content) {
        Rewrite rewrite = name == null ? null : BY_CLASS.get(name);
        return rewrite == null ? null : rewrite.apply(loader, content);
    }

    private record Rewrite(String type, Map<String, String> adviceByMethod) {
        byte[] apply(ClassLoader loader, byte[] content) {
            ClassFileLocator files = new ClassFileLocator.Compound(ClassFileLocator.Simple.of(type, content), ClassFileLocator.ForClassLoader.of(loader));
            TypePool types = TypePool.Default.of(files);
            DynamicType.Builder<?> builder = new ByteBuddy().redefine(types.describe(type).resolve(), files);
            for (Map.Entry<String, String> each : adviceByMethod.entrySet()) {
                TypeDescription advice = types.describe(Rewrites.class.getName() + "$" + each.getValue()).resolve();
                builder = builder.visit(Advice.to(advice, files).on(each.getKey().equals(CONSTRUCTOR) ? isConstructor() : named(each.getKey())));
            }
            return builder.make().getBytes();
        }
    }

    /** A topic of a test that asks for several brokers and gets one has one replica. */
    public static final class FewerReplicas {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) short factor) {
            factor = Rewrites.replicas(factor);
        }
    }

    public static short replicas(short asked) {
        return CurrentTest.hasFewerBrokers() && asked > 1 && asked <= CurrentTest.brokersAsked() ? 1 : asked;
    }

    /** ... also where the test says on which brokers. */
    public static final class FewerBrokers {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) List<Integer> ids) {
            ids = Rewrites.brokers(ids);
        }
    }

    public static List<Integer> brokers(List<Integer> asked) {
        int first = CurrentTest.brokerId();
        boolean known = asked.stream().distinct().filter(id -> id >= first && id < first + CurrentTest.brokersAsked()).count() == asked.size();
        return CurrentTest.hasFewerBrokers() && known && !asked.isEmpty() ? List.of(first) : asked;
    }

    /** ... and the configuration of each broker is that of the one. */
    public static final class OnlyBroker {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) ConfigResource.Type type, @Advice.Argument(value = 1, readOnly = false) String name) {
            name = Rewrites.resource(type, name);
        }
    }

    public static String resource(ConfigResource.Type type, String name) {
        if (type != ConfigResource.Type.BROKER || !CurrentTest.hasFewerBrokers() || !name.matches("\\d{1,9}"))
            return name;
        int first = CurrentTest.brokerId();
        int id = Integer.parseInt(name);
        return id > first && id < first + CurrentTest.brokersAsked() ? String.valueOf(first) : name;
    }

    /** A node that is broker and controller at the same time is what Barnabas is like; the other type is the same test. */
    public static final class OneOfTwoTypes {
        @Advice.OnMethodExit
        static void exit(@Advice.FieldValue("clusterConfig") ClusterConfig config, @Advice.FieldValue("isCombined") boolean combined,
                         @Advice.Return(readOnly = false) List<Extension> extensions) {
            if (!combined && config.clusterTypes().contains(Type.CO_KRAFT))
                extensions = Rewrites.duplicate(extensions);
        }
    }

    /** The first extension ends the test; the others are needed before, for the parameters of a class's constructor. */
    public static List<Extension> duplicate(List<Extension> extensions) {
        List<Extension> all = new ArrayList<>();
        all.add((BeforeEachCallback) context -> {
            throw CurrentTest.notApplicable(CurrentTest.Kind.DUPLICATE, "the combined node type runs, too");
        });
        all.addAll(extensions);
        return all;
    }

    /** QuorumTestHarness makes a controller, which says how its storage was formatted; nothing else is asked of it. */
    public static final class NoController {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return true;
        }
    }

    /** Stores of keys and certificates are PKCS#12, which Java's own "JKS" opens too. */
    public static final class Pkcs12Stores {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) KeyStore store) throws GeneralSecurityException, IOException {
            store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
        }
    }

    /** Key pairs of the algorithm that nearly all tests use are kept. */
    public static final class KeptKeyPairs {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(0) String algorithm) {
            return algorithm.equals("RSA");
        }

        @Advice.OnMethodExit
        static void exit(@Advice.Enter boolean rsa, @Advice.Return(readOnly = false) KeyPair pair) {
            if (rsa)
                pair = KeyPairs.next();
        }
    }

    /** Counts of logins are the broker process's. */
    public static final class BrokerTotal {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return true;
        }

        @Advice.OnMethodExit
        static void exit(@Advice.Argument(1) String name, @Advice.Return(readOnly = false) long total) {
            total = LoginCounts.total(name);
        }
    }

    /** ... also where a test looks for them in its JVM. */
    public static final class BrokerGauge {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return true;
        }

        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) String name, @Advice.Return(readOnly = false) Gauge<Object> gauge) {
            gauge = LoginCounts.gauge(name);
        }
    }

    /** Whether a config has arrived is asked of the broker process. */
    public static final class BrokerConfig {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(1) String name, @Advice.Argument(2) String value, @Advice.Argument(3) long timeoutMs) {
            RemoteConfigs.await(name, value, timeoutMs);
            return true;
        }
    }

    /** Users of SCRAM that storage is formatted with. */
    public static final class ScramUsers {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) List<String> users) {
            CurrentTest.scramUsers(users);
        }
    }
}
