package barnabas;

import java.util.List;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.UserScramCredentialsDescription;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.security.CredentialProvider;

/** The broker's delegation tokens and users of SCRAM, in the caches of Kafka's where tests look whether they are there. */
final class Credentials {
    private static final List<String> MECHANISMS = List.of("SCRAM-SHA-256", "SCRAM-SHA-512");

    private Credentials() {
    }

    static DelegationTokenCache tokens(Admin admin) {
        try {
            DelegationTokenCache cache = new DelegationTokenCache(MECHANISMS);
            for (DelegationToken each : admin.describeDelegationToken().delegationTokens().get())
                cache.addToken(each.tokenInfo().tokenId(), each.tokenInfo());
            return cache;
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Keys are not to be had; a test asks whether there is a credential. */
    static CredentialProvider scram(Admin admin) {
        try {
            CredentialProvider provider = new CredentialProvider(MECHANISMS, new DelegationTokenCache(MECHANISMS));
            for (UserScramCredentialsDescription user : admin.describeUserScramCredentials().all().get().values())
                user.credentialInfos().forEach(info -> provider.updateCredential(info.mechanism(), user.name(),
                    new ScramCredential(new byte[0], new byte[0], new byte[0], info.iterations())));
            return provider;
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException(error);
        }
    }
}
