package barnabas;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.util.ArrayList;
import java.util.List;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.matcher.ElementMatcher;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;

/** Small changes of classes of Kafka's as they are loaded, where a class of ours cannot stand in their place. */
public final class Rewrites {
    private Rewrites() {
    }

    static void install() {
        AgentBuilder agent = new AgentBuilder.Default().disableClassFormatChanges();
        String created = "org.apache.kafka.common.message.CreateTopicsRequestData$";
        agent = advise(agent, created + "CreatableTopic", named("setReplicationFactor"), FewerReplicas.class);
        agent = advise(agent, created + "CreatableReplicaAssignment", named("setBrokerIds"), FewerBrokers.class);
        agent = advise(agent, "org.apache.kafka.common.test.junit.RaftClusterInvocationContext", named("getAdditionalExtensions"), OneOfTwoTypes.class);
        agent = advise(agent, "kafka.server.ControllerServer", named("startup").and(takesArguments(0)), NoController.class);
        agent.installOn(ByteBuddyAgent.install());
    }

    private static AgentBuilder advise(AgentBuilder agent, String type, ElementMatcher<? super MethodDescription> method, Class<?> advice) {
        return agent.type(named(type)).transform((builder, description, loader, module, domain) -> builder.visit(Advice.to(advice).on(method)));
    }

    /** A topic of a test that asks for several brokers has one replica. */
    public static final class FewerReplicas {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) short factor) {
            factor = Rewrites.replicas(factor);
        }
    }

    public static short replicas(short asked) {
        return CurrentTest.brokersAsked() > 1 && asked > 1 && asked <= CurrentTest.brokersAsked() ? 1 : asked;
    }

    /** ... also where the test says on which brokers. */
    public static final class FewerBrokers {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) List<Integer> ids) {
            ids = Rewrites.brokers(ids);
        }
    }

    public static List<Integer> brokers(List<Integer> asked) {
        return CurrentTest.brokersAsked() > 1 && asked.size() > 1 ? asked.subList(0, 1) : asked;
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
}
