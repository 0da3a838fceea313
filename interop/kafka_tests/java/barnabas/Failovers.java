package barnabas;

import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/** A test that stops the broker of a coordinator, and then commits until another broker has taken over, does not begin with one broker. */
public final class Failovers implements InvocationInterceptor {
    @Override
    public void interceptTestTemplateMethod(Invocation<Void> run, ReflectiveInvocationContext<Method> call, ExtensionContext context) throws Throwable {
        if (CurrentTest.hasFewerBrokers() && context.getRequiredTestMethod().getName().matches("test\\w*CoordinatorFailover.*"))
            throw CurrentTest.notApplicable(CurrentTest.Kind.BROKERS, "the coordinator's broker stops, and another takes over");
        run.proceed();
    }
}
