package main

import (
	"context"
	"errors"
	"os"
	"time"

	"barnabas.interop/lines"
	"github.com/IBM/sarama"
)

var strategies = map[string]sarama.BalanceStrategy{
	"": sarama.NewBalanceStrategyRange(), "range": sarama.NewBalanceStrategyRange(),
	"sticky": sarama.NewBalanceStrategySticky(),
}

// claims is what sarama calls when partitions come and go.
type claims struct {
	topic  string
	member *lines.Membership
}

func (at claims) Setup(session sarama.ConsumerGroupSession) error {
	at.member.Owns(session.Claims()[at.topic])
	return nil
}

func (at claims) Cleanup(sarama.ConsumerGroupSession) error {
	at.member.Owns(nil)
	return nil
}

func (at claims) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		at.member.Took(message.Value)
		session.MarkMessage(message, "")
	}
	return nil
}

func join(c lines.Command, member *lines.Membership) (func() error, error) {
	config := newConfig()
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[c.Strategy]}
	group, err := sarama.NewConsumerGroup([]string{os.Args[1]}, c.Group, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{c.Topic}, claims{c.Topic, member}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return func() error {
		stop()
		return errors.Join(<-done, group.Close())
	}, nil
}
