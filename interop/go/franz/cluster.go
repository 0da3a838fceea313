package main

import (
	"context"

	"barnabas.interop/lines"
	"github.com/twmb/franz-go/pkg/kadm"
)

// clusterOperations are what kadm does to configs, ACLs, quotas, SCRAM credentials, leaders and replicas.
var clusterOperations = map[string]adminOperation{
	"replace_topic_configs": replaceTopicConfigs,
	"alter_topic_config":    alterTopicConfig,
	"create_acl":            createACL,
	"acls":                  acls,
	"delete_acls":           deleteACLs,
	"alter_quota":           alterQuota,
	"quotas":                quotas,
	"alter_scram":           alterScram,
	"scram":                 scram,
	"delete_scram":          deleteScram,
	"elect_leader":          electLeader,
	"reassign":              reassign,
	"reassignments":         reassignments,
	"log_dirs":              logDirs,
}

func alterTopicConfig(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: c.Key, Value: c.Value}
	if c.Value == nil {
		change.Op = kadm.DeleteConfig
	}
	responses, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, c.Topic)
	if err != nil {
		return nil, err
	}
	return nil, responses[0].Err
}

func replaceTopicConfigs(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	var configs []kadm.AlterConfig
	for key, value := range c.Configs {
		configs = append(configs, kadm.AlterConfig{Name: key, Value: &value})
	}
	responses, err := admin.AlterTopicConfigsState(ctx, configs, c.Topic)
	if err != nil {
		return nil, err
	}
	return nil, responses[0].Err
}

func createACL(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	acl := kadm.NewACLs().Topics(c.Topic).Allow(c.Principal).Operations(kadm.OpRead)
	results, err := admin.CreateACLs(ctx, acl)
	if err != nil {
		return nil, err
	}
	return nil, results[0].Err
}

func aclsOf(c lines.Command) *kadm.ACLBuilder {
	return kadm.NewACLs().Topics(c.Topic).Allow().AllowHosts().Operations(kadm.OpAny)
}

func acls(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	results, err := admin.DescribeACLs(ctx, aclsOf(c))
	if err != nil {
		return nil, err
	}
	principals := []string{}
	for _, acl := range results[0].Described {
		principals = append(principals, acl.Principal)
	}
	return principals, results[0].Err
}

func deleteACLs(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	results, err := admin.DeleteACLs(ctx, aclsOf(c))
	if err != nil {
		return nil, err
	}
	principals := []string{}
	for _, acl := range results[0].Deleted {
		principals = append(principals, acl.Principal)
	}
	return principals, results[0].Err
}

func alterQuota(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	change := kadm.AlterClientQuotaOp{Key: c.Key, Remove: c.Limit == nil}
	if c.Limit != nil {
		change.Value = *c.Limit
	}
	altered, err := admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "user", Name: &c.User}},
		Ops:    []kadm.AlterClientQuotaOp{change},
	}})
	if err != nil {
		return nil, err
	}
	return nil, altered[0].Err
}

func quotas(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	user := kadm.DescribeClientQuotaComponent{Type: "user", MatchName: &c.User}
	found, err := admin.DescribeClientQuotas(ctx, true, []kadm.DescribeClientQuotaComponent{user})
	limits := map[string]float64{}
	for _, quota := range found {
		for _, limit := range quota.Values {
			limits[limit.Key] = limit.Value
		}
	}
	return limits, err
}

func alterScram(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	credential := kadm.UpsertSCRAM{
		User: c.User, Mechanism: kadm.ScramSha256, Iterations: c.Iterations, Password: "secret",
	}
	altered, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{credential})
	if err != nil {
		return nil, err
	}
	return nil, altered[c.User].Err
}

func scram(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	described, err := admin.DescribeUserSCRAMs(ctx, c.User)
	if err != nil {
		return nil, err
	}
	iterations := map[string]int32{}
	for _, each := range described[c.User].CredInfos {
		iterations[each.Mechanism.String()] = each.Iterations
	}
	return iterations, described[c.User].Err
}

func deleteScram(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	credential := kadm.DeleteSCRAM{User: c.User, Mechanism: kadm.ScramSha256}
	altered, err := admin.AlterUserSCRAMs(ctx, []kadm.DeleteSCRAM{credential}, nil)
	if err != nil {
		return nil, err
	}
	return nil, altered[c.User].Err
}

func only(c lines.Command) kadm.TopicsSet {
	set := kadm.TopicsSet{}
	set.Add(c.Topic, c.Partition)
	return set
}

func electLeader(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	results, err := admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, only(c))
	if err != nil {
		return nil, err
	}
	return nil, results[c.Topic][c.Partition].Err
}

func reassign(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	var request kadm.AlterPartitionAssignmentsReq
	request.Assign(c.Topic, c.Partition, c.Replicas)
	responses, err := admin.AlterPartitionAssignments(ctx, request)
	if err != nil {
		return nil, err
	}
	return nil, responses[c.Topic][c.Partition].Err
}

func reassignments(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	responses, err := admin.ListPartitionReassignments(ctx, only(c))
	moving := []int32{}
	for _, each := range responses.Sorted() {
		moving = append(moving, each.Partition)
	}
	return moving, err
}

func logDirs(ctx context.Context, admin *kadm.Client, c lines.Command) (any, error) {
	described, err := admin.DescribeBrokerLogDirs(ctx, c.Broker, nil)
	if err != nil {
		return nil, err
	}
	partitions := []int32{}
	for _, each := range described.SortedPartitions() {
		if each.Topic == c.Topic {
			partitions = append(partitions, each.Partition)
		}
	}
	return partitions, described.Error()
}
