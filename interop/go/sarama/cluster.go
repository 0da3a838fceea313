package main

import (
	"context"

	"barnabas.interop/lines"
	"github.com/IBM/sarama"
)

// clusterOperations are what sarama does to configs, ACLs, quotas, SCRAM credentials, leaders and replicas.
func clusterOperations(at administration) map[string]lines.Operation {
	return map[string]lines.Operation{
		"replace_topic_configs": at.replaceTopicConfigs,
		"alter_topic_config":    at.alterTopicConfig,
		"create_acl":            at.createACL,
		"acls":                  at.acls,
		"delete_acls":           at.deleteACLs,
		"alter_quota":           at.alterQuota,
		"quotas":                at.quotas,
		"alter_scram":           at.alterScram,
		"scram":                 at.scram,
		"delete_scram":          at.deleteScram,
		"elect_leader":          at.electLeader,
		"reassign":              at.reassign,
		"reassignments":         at.reassignments,
		"log_dirs":              at.logDirs,
	}
}

// check is nil where there is no error: sarama has a code for that.
func check(code sarama.KError) error {
	if code == sarama.ErrNoError {
		return nil
	}
	return code
}

func (at administration) alterTopicConfig(_ context.Context, c lines.Command) (any, error) {
	change := sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: c.Value}
	if c.Value == nil {
		change.Operation = sarama.IncrementalAlterConfigsOperationDelete
	}
	changes := map[string]sarama.IncrementalAlterConfigsEntry{c.Key: change}
	return nil, at.admin.IncrementalAlterConfig(sarama.TopicResource, c.Topic, changes, false)
}

func (at administration) replaceTopicConfigs(_ context.Context, c lines.Command) (any, error) {
	configs := map[string]*string{}
	for key, value := range c.Configs {
		configs[key] = &value
	}
	return nil, at.admin.AlterConfig(sarama.TopicResource, c.Topic, configs, false)
}

func (at administration) createACL(_ context.Context, c lines.Command) (any, error) {
	resource := sarama.Resource{
		ResourceType: sarama.AclResourceTopic, ResourceName: c.Topic, ResourcePatternType: sarama.AclPatternLiteral,
	}
	acl := sarama.Acl{
		Principal: c.Principal, Host: "*",
		Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow,
	}
	return nil, at.admin.CreateACL(resource, acl)
}

func aclsOf(c lines.Command) sarama.AclFilter {
	return sarama.AclFilter{
		ResourceType: sarama.AclResourceTopic, ResourceName: &c.Topic,
		ResourcePatternTypeFilter: sarama.AclPatternLiteral,
		Operation:                 sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny,
	}
}

func (at administration) acls(_ context.Context, c lines.Command) (any, error) {
	found, err := at.admin.ListAcls(aclsOf(c))
	principals := []string{}
	for _, resource := range found {
		for _, acl := range resource.Acls {
			principals = append(principals, acl.Principal)
		}
	}
	return principals, err
}

func (at administration) deleteACLs(_ context.Context, c lines.Command) (any, error) {
	deleted, err := at.admin.DeleteACL(aclsOf(c), false)
	principals := []string{}
	for _, acl := range deleted {
		principals = append(principals, acl.Principal)
	}
	return principals, err
}

func (at administration) alterQuota(_ context.Context, c lines.Command) (any, error) {
	user := sarama.QuotaEntityComponent{
		EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Name: c.User,
	}
	change := sarama.ClientQuotasOp{Key: c.Key, Remove: c.Limit == nil}
	if c.Limit != nil {
		change.Value = *c.Limit
	}
	return nil, at.admin.AlterClientQuotas([]sarama.QuotaEntityComponent{user}, change, false)
}

func (at administration) quotas(_ context.Context, c lines.Command) (any, error) {
	user := sarama.QuotaFilterComponent{
		EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Match: c.User,
	}
	found, err := at.admin.DescribeClientQuotas([]sarama.QuotaFilterComponent{user}, true)
	limits := map[string]float64{}
	for _, entry := range found {
		for key, limit := range entry.Values {
			limits[key] = limit
		}
	}
	return limits, err
}

func (at administration) alterScram(_ context.Context, c lines.Command) (any, error) {
	results, err := at.admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{{
		Name: c.User, Mechanism: sarama.SCRAM_MECHANISM_SHA_256, Iterations: c.Iterations,
		Salt: []byte("salt"), Password: []byte("secret"),
	}})
	if err != nil {
		return nil, err
	}
	return nil, check(results[0].ErrorCode)
}

func (at administration) scram(_ context.Context, c lines.Command) (any, error) {
	results, err := at.admin.DescribeUserScramCredentials([]string{c.User})
	if err != nil {
		return nil, err
	}
	iterations := map[string]int32{}
	for _, info := range results[0].CredentialInfos {
		iterations[info.Mechanism.String()] = info.Iterations
	}
	return iterations, check(results[0].ErrorCode)
}

func (at administration) deleteScram(_ context.Context, c lines.Command) (any, error) {
	results, err := at.admin.DeleteUserScramCredentials([]sarama.AlterUserScramCredentialsDelete{{
		Name: c.User, Mechanism: sarama.SCRAM_MECHANISM_SHA_256,
	}})
	if err != nil {
		return nil, err
	}
	return nil, check(results[0].ErrorCode)
}

func (at administration) electLeader(_ context.Context, c lines.Command) (any, error) {
	partitions := map[string][]int32{c.Topic: {c.Partition}}
	results, err := at.admin.ElectLeaders(sarama.PreferredElection, partitions)
	if err != nil {
		return nil, err
	}
	return nil, check(results[c.Topic][c.Partition].ErrorCode)
}

func (at administration) reassign(_ context.Context, c lines.Command) (any, error) {
	return nil, at.admin.AlterPartitionReassignments(c.Topic, [][]int32{c.Replicas})
}

func (at administration) reassignments(_ context.Context, c lines.Command) (any, error) {
	found, err := at.admin.ListPartitionReassignments(c.Topic, []int32{c.Partition})
	moving := []int32{}
	for partition := range found[c.Topic] {
		moving = append(moving, partition)
	}
	return moving, err
}

func (at administration) logDirs(_ context.Context, c lines.Command) (any, error) {
	directories, err := at.admin.DescribeLogDirs([]int32{c.Broker})
	partitions := []int32{}
	for _, directory := range directories[c.Broker] {
		if err == nil {
			err = check(directory.ErrorCode)
		}
		for _, topic := range directory.Topics {
			for _, partition := range topic.Partitions {
				if topic.Topic == c.Topic {
					partitions = append(partitions, partition.PartitionID)
				}
			}
		}
	}
	return partitions, err
}
