package barnabas;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.AclDeleteResult.AclBindingDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

/** The ACLs of the broker, written and read through its admin API. */
final class RemoteAuthorizer implements Authorizer {
    private final BrokerProcess process;

    RemoteAuthorizer(BrokerProcess process) {
        this.process = process;
    }

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo info) {
        return Map.of();
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        throw CurrentTest.notApplicable(CurrentTest.Kind.JVM, "Authorizer.authorize");
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(AuthorizableRequestContext context, List<AclBinding> bindings) {
        Map<AclBinding, KafkaFuture<Void>> done = process.admin().createAcls(bindings).values();
        return bindings.stream().map(each -> done.get(each).toCompletionStage()
            .handle((nothing, error) -> error == null ? AclCreateResult.SUCCESS : new AclCreateResult(cause(error)))).toList();
    }

    private static ApiException cause(Throwable error) {
        return (ApiException) (error instanceof CompletionException ? error.getCause() : error);
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(AuthorizableRequestContext context, List<AclBindingFilter> filters) {
        var done = process.admin().deleteAcls(filters).values();
        return filters.stream().map(each -> done.get(each).toCompletionStage().thenApply(found ->
            new AclDeleteResult(found.values().stream().map(acl -> new AclBindingDeleteResult(acl.binding())).toList()))).toList();
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        try {
            return process.admin().describeAcls(filter).values().get();
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {
    }

    @Override
    public void close() {
    }
}
