package barnabas;

import java.lang.reflect.Method;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/** Tests of share groups (KIP-932) and streams groups (KIP-1071), told by their names and arguments, do not begin. */
public final class OtherGroups implements BeforeEachCallback, InvocationInterceptor {
    private static final Pattern NAMES = Pattern.compile("(?s).*(Share|Streams)(Group|Consumer|Fetch|Acknowledge|Protocol|State).*");
    private static final Pattern ARGUMENTS = Pattern.compile("(?is).*(protocol[a-z]*\\s*=\\s*(streams|share)|(newProtocol|streamsProtocol|useStreams)[a-z]*\\s*=\\s*true).*");

    @Override
    public void beforeEach(ExtensionContext context) {
        String name = context.getRequiredTestClass().getName() + "." + context.getRequiredTestMethod().getName();
        boolean withBroker = System.getProperty("barnabas.program") != null && (context.getDisplayName().contains("MetadataVersion=") || context.getRequiredTestInstance() instanceof kafka.server.QuorumTestHarness);
        if (withBroker && (NAMES.matcher(name).matches() || ARGUMENTS.matcher(context.getDisplayName()).matches()))
            throw CurrentTest.notApplicable(CurrentTest.Kind.GROUPS, "share or streams groups");
    }

    @Override
    public void interceptTestTemplateMethod(Invocation<Void> run, ReflectiveInvocationContext<Method> call, ExtensionContext context) throws Throwable {
        if (System.getProperty("barnabas.program") != null && call.getArguments().stream().map(String::valueOf).anyMatch(text -> text.matches("(?i)streams|share")))
            throw CurrentTest.notApplicable(CurrentTest.Kind.GROUPS, "share or streams groups");
        run.proceed();
    }
}
