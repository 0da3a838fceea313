package barnabas;

import java.util.Set;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Passes over tests that an earlier run of the class has done. */
public final class Selection implements ExecutionCondition {
    static final String DONE = "done before";
    static Set<String> done = Set.of();

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        return done.contains(context.getUniqueId()) ? ConditionEvaluationResult.disabled(DONE) : ConditionEvaluationResult.enabled("");
    }
}
