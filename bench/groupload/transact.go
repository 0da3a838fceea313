package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const recordsInTransaction = 10

// transact measures how many transactions of ten records one producer commits in a second, one after the other.
func transact(broker, topic string, seconds float64) (map[string]float64, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic),
		kgo.TransactionalID(fmt.Sprintf("transact-%d", time.Now().UnixNano())),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := transaction(client); err != nil { // who the producer is, and where partitions are, is found out here
		return nil, err
	}
	committed, started := 0, time.Now()
	for time.Since(started).Seconds() < seconds {
		if err := transaction(client); err != nil {
			return nil, err
		}
		committed++
	}
	return map[string]float64{"transactions_per_s": float64(committed) / time.Since(started).Seconds()}, nil
}

func transaction(client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	records := make([]*kgo.Record, recordsInTransaction)
	for index := range records {
		records[index] = &kgo.Record{Value: make([]byte, 100)}
	}
	produced := client.ProduceSync(ctx, records...).FirstErr()
	return errors.Join(produced, client.EndTransaction(ctx, kgo.TransactionEndTry(produced == nil)))
}
