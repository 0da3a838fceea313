package barnabas;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.EngineFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs one class and appends a JSON line when a test begins and when it ends. Arguments: the file, a file of ids to pass over, the class. */
public final class Runner {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Kafka's own harness does not say how many brokers a test asks for. */
    private static final boolean OWN_HARNESS = System.getProperty("barnabas.program") != null;
    private static final int TRACE_CHARACTERS = 6000;

    private Runner() {
    }

    public static void main(String[] arguments) throws Exception {
        Selection.done = Set.copyOf(Files.readAllLines(Path.of(arguments[1])));
        String seconds = System.getProperty("test.seconds", "60") + " s";
        var request = LauncherDiscoveryRequestBuilder.request()
            .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true")
            .configurationParameter("junit.jupiter.execution.timeout.testable.method.default", seconds)
            .configurationParameter("junit.jupiter.execution.timeout.lifecycle.method.default", "120 s")
            .selectors(arguments[2].contains("#") ? DiscoverySelectors.selectMethod(arguments[2]) : DiscoverySelectors.selectClass(arguments[2]))
            .filters(EngineFilter.includeEngines("junit-jupiter")).build();
        try (PrintStream out = new PrintStream(new FileOutputStream(arguments[0], true), true, StandardCharsets.UTF_8)) {
            LauncherFactory.create().execute(request, new Listener(out));
        }
        System.exit(0);
    }

    private record Listener(PrintStream out, Map<String, Long> begun) implements TestExecutionListener {
        Listener(PrintStream out) {
            this(out, new ConcurrentHashMap<>());
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            begun.put(test.getUniqueId(), System.currentTimeMillis());
            if (test.isTest()) {
                CurrentTest.begin();
                write(line(test, "STARTED"));
            }
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            if (reason.contains(Selection.DONE))
                return;
            Map<String, Object> line = line(test, "SKIPPED");
            line.put("message", reason);
            write(line);
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            if (!test.isTest() && result.getStatus() == TestExecutionResult.Status.SUCCESSFUL)
                return;
            Map<String, Object> line = line(test, result.getStatus().name());
            line.put("ms", System.currentTimeMillis() - begun.get(test.getUniqueId()));
            line.put("brokers", OWN_HARNESS ? CurrentTest.brokersAsked() : 1);
            line.put("several", OWN_HARNESS && CurrentTest.hasSeveralBrokers());
            line.put("not_applicable", CurrentTest.notApplicable());
            line.put("log", String.valueOf(CurrentTest.log()));
            result.getThrowable().ifPresent(error -> {
                line.put("message", String.valueOf(error));
                line.put("trace", trace(error));
            });
            write(line);
        }

        private static Map<String, Object> line(TestIdentifier test, String status) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("status", status);
            line.put("test", test.isTest());
            test.getSource().ifPresent(source -> {
                if (source instanceof MethodSource method) {
                    line.put("class", method.getClassName());
                    line.put("method", method.getMethodName());
                } else if (source instanceof ClassSource type)
                    line.put("class", type.getClassName());
            });
            line.put("name", test.getDisplayName());
            line.put("id", test.getUniqueId());
            return line;
        }

        private static String trace(Throwable error) {
            StringWriter text = new StringWriter();
            error.printStackTrace(new PrintWriter(text));
            return text.toString().substring(0, Math.min(TRACE_CHARACTERS, text.toString().length()));
        }

        private void write(Map<String, Object> line) {
            try {
                out.println(JSON.writeValueAsString(line));
            } catch (JsonProcessingException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
