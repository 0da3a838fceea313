// franz-go reads, transforms and writes in transactions until it is killed: transform HOST:PORT INPUT OUTPUT GROUP.
//
// Whatever goes wrong, it starts again with the same transactional id: that ends what it has left open.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const pause = 200 * time.Millisecond

func main() {
	for {
		if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, "starts again:", err)
		}
		time.Sleep(pause)
	}
}

// stamp begins each line of the log.
func stamp() string {
	return time.Now().UTC().Format("15:04:05.000 ")
}

func run(bootstrap, input, output, group string) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.TransactionalID(group), kgo.TransactionTimeout(10*time.Second),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(input),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(3*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, stamp)),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	incarnation := fmt.Sprintf("%x", time.Now().UnixNano())
	for number := 0; ; number++ {
		if err := transform(session, output, fmt.Sprintf("%s.%d", incarnation, number)); err != nil {
			return err
		}
	}
}

// transform is one transaction: an output for each input, and how far the inputs are read.
func transform(session *kgo.GroupTransactSession, output, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	fetches := session.PollRecords(ctx, 50)
	if fetches.NumRecords() == 0 {
		return nil
	}
	if err := session.Begin(); err != nil {
		return err
	}
	failed := kgo.AbortingFirstErrPromise(session.Client())
	transaction := fmt.Sprintf(" %s/%d", name, fetches.NumRecords())
	fetches.EachRecord(func(record *kgo.Record) {
		value := append(append([]byte{}, record.Value...), transaction...)
		session.Produce(ctx, &kgo.Record{Topic: output, Partition: record.Partition, Value: value}, failed.Promise())
	})
	committed, err := session.End(ctx, failed.Err() == nil)
	if err == nil && !committed {
		fmt.Fprintln(os.Stderr, "aborted")
	}
	return err
}
