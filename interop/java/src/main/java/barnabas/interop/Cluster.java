package barnabas.interop;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;

/** What the Java Admin client does to configs, ACLs, quotas, SCRAM credentials, leaders, replicas and the cluster. */
final class Cluster {
    private static final ScramMechanism MECHANISM = ScramMechanism.SCRAM_SHA_256;

    private final Admin admin;

    Cluster(Admin admin) {
        this.admin = admin;
    }

    Object alterTopicConfig(Command command) throws Exception {
        var change = command.value() == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET;
        var operation = new AlterConfigOp(new ConfigEntry(command.key(), command.value()), change);
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, command.topic());
        admin.incrementalAlterConfigs(Map.of(resource, List.of(operation))).all().get();
        return null;
    }

    Object createAcl(Command command) throws Exception {
        var pattern = new ResourcePattern(ResourceType.TOPIC, command.topic(), PatternType.LITERAL);
        var entry = new AccessControlEntry(command.principal(), "*", AclOperation.READ, AclPermissionType.ALLOW);
        admin.createAcls(List.of(new AclBinding(pattern, entry))).all().get();
        return null;
    }

    Object acls(Command command) throws Exception {
        return principals(admin.describeAcls(aclsOf(command)).values().get());
    }

    Object deleteAcls(Command command) throws Exception {
        return principals(admin.deleteAcls(List.of(aclsOf(command))).all().get());
    }

    private static AclBindingFilter aclsOf(Command command) {
        var pattern = new ResourcePatternFilter(ResourceType.TOPIC, command.topic(), PatternType.LITERAL);
        return new AclBindingFilter(pattern, AccessControlEntryFilter.ANY);
    }

    private static List<String> principals(Collection<AclBinding> acls) {
        return acls.stream().map(acl -> acl.entry().principal()).toList();
    }

    Object alterQuota(Command command) throws Exception {
        var entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, command.user()));
        var change = new ClientQuotaAlteration.Op(command.key(), command.limit());
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(change)))).all().get();
        return null;
    }

    Object quotas(Command command) throws Exception {
        var user = ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.USER, command.user());
        var found = admin.describeClientQuotas(ClientQuotaFilter.containsOnly(List.of(user))).entities().get();
        return found.values().stream().findFirst().orElse(Map.of());
    }

    Object alterScram(Command command) throws Exception {
        var info = new ScramCredentialInfo(MECHANISM, command.iterations());
        return alter(new UserScramCredentialUpsertion(command.user(), info, "secret"));
    }

    Object scram(Command command) throws Exception {
        var found = admin.describeUserScramCredentials(List.of(command.user())).description(command.user()).get();
        return found.credentialInfos().stream()
                .collect(Collectors.toMap(each -> each.mechanism().mechanismName(), ScramCredentialInfo::iterations));
    }

    Object deleteScram(Command command) throws Exception {
        return alter(new UserScramCredentialDeletion(command.user(), MECHANISM));
    }

    private Object alter(UserScramCredentialAlteration alteration) throws Exception {
        admin.alterUserScramCredentials(List.of(alteration)).all().get();
        return null;
    }

    Object electLeader(Command command) throws Exception {
        var partition = command.topicPartition();
        var outcomes = admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions().get();
        if (outcomes.get(partition).isPresent()) {
            throw (Exception) outcomes.get(partition).get();
        }
        return null;
    }

    Object reassign(Command command) throws Exception {
        var target = Optional.of(new NewPartitionReassignment(command.replicas()));
        admin.alterPartitionReassignments(Map.of(command.topicPartition(), target)).all().get();
        return null;
    }

    Object reassignments(Command command) throws Exception {
        var found = admin.listPartitionReassignments(Set.of(command.topicPartition())).reassignments().get();
        return found.keySet().stream().map(TopicPartition::partition).toList();
    }

    Object logDirs(Command command) throws Exception {
        var directories = admin.describeLogDirs(List.of(command.broker())).allDescriptions().get();
        return directories.get(command.broker()).values().stream()
                .flatMap(directory -> directory.replicaInfos().keySet().stream())
                .filter(partition -> partition.topic().equals(command.topic()))
                .map(TopicPartition::partition)
                .toList();
    }

    Object configResources(Command command) throws Exception {
        var found = new TreeMap<String, List<String>>();
        for (var resource : admin.listConfigResources().all().get()) {
            found.computeIfAbsent(resource.type().name(), type -> new ArrayList<>()).add(resource.name());
        }
        return found;
    }
}
