package main

import (
	"context"
	"time"

	"barnabas.interop/lines"
	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]kgo.GroupBalancer{
	"": kgo.RangeBalancer(), "range": kgo.RangeBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func join(c lines.Command, member *lines.Membership) (func() error, error) {
	type partitions = map[string][]int32
	lost := func(_ context.Context, _ *kgo.Client, gone partitions) { member.Lost(gone[c.Topic]) }
	client := connect(
		kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Topic), kgo.Balancers(balancers[c.Strategy]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, more partitions) { member.Gained(more[c.Topic]) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, gone partitions) {
			client.CommitUncommittedOffsets(ctx)
			lost(ctx, client, gone)
		}),
		kgo.OnPartitionsLost(lost),
	)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(record *kgo.Record) { member.Took(record.Value) })
		}
	}()
	return func() error {
		stop()
		<-done
		defer client.Close()
		return client.CommitUncommittedOffsets(context.Background())
	}, nil
}
