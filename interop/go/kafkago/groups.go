package main

import (
	"context"
	"errors"
	"os"
	"time"

	"barnabas.interop/lines"
	"github.com/segmentio/kafka-go"
)

func join(c lines.Command, member *lines.Membership) (func() error, error) {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.Group, Brokers: []string{os.Args[1]}, Topics: []string{c.Topic},
		HeartbeatInterval: 200 * time.Millisecond, StartOffset: kafka.FirstOffset,
	})
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- generations(group, c.Topic, member) }()
	return func() error { return errors.Join(group.Close(), <-done) }, nil
}

// generations reads what each generation of the group assigns, until the group is closed.
func generations(group *kafka.ConsumerGroup, topic string, member *lines.Membership) error {
	for {
		generation, err := group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		owned := []int32{}
		for _, assigned := range generation.Assignments[topic] {
			owned = append(owned, int32(assigned.ID))
			generation.Start(func(ctx context.Context) { read(ctx, generation, topic, assigned, member) })
		}
		member.Owns(owned)
	}
}

// read reads one partition until the generation ends, and commits each record.
func read(
	ctx context.Context, generation *kafka.Generation, topic string,
	assigned kafka.PartitionAssignment, member *lines.Membership,
) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{os.Args[1]}, Topic: topic, Partition: assigned.ID, MaxWait: 100 * time.Millisecond,
	})
	defer reader.Close()
	if err := reader.SetOffset(assigned.Offset); err != nil {
		panic(err)
	}
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return
		}
		member.Took(message.Value)
		next := map[string]map[int]int64{topic: {assigned.ID: message.Offset + 1}}
		if err := generation.CommitOffsets(next); err != nil {
			return
		}
	}
}
