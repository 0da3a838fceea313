// franz-go produces at a steady rate with its default settings until its input ends: load HOST:PORT TOPIC NAME RATE.
//
// It prints a line for each record that is acknowledged: number, partition, offset, and when it was sent and
// acknowledged, in milliseconds; or the number and the error.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const keys = 32

func main() {
	rate, err := strconv.Atoi(os.Args[4])
	if err != nil {
		panic(err)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...), kgo.AlwaysRetryEOF(), kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, stamp)),
	)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		os.Stdin.Read(make([]byte, 1))
	}()
	ticks := time.NewTicker(time.Second / time.Duration(rate))
	for number := 0; ; number++ {
		select {
		case <-stopped:
			if err := client.Flush(context.Background()); err != nil {
				panic(err)
			}
			return
		case <-ticks.C:
			send(client, os.Args[2], os.Args[3], number)
		}
	}
}

// stamp begins each line of the log.
func stamp() string {
	return time.Now().UTC().Format("15:04:05.000 ")
}

func send(client *kgo.Client, topic, name string, number int) {
	sent := time.Now().UnixMilli()
	record := &kgo.Record{
		Topic: topic, Key: fmt.Appendf(nil, "key %d", number%keys), Value: fmt.Appendf(nil, "%s %d", name, number),
	}
	client.Produce(context.Background(), record, func(record *kgo.Record, err error) {
		if err != nil {
			fmt.Println(number, err)
			return
		}
		fmt.Println(number, record.Partition, record.Offset, sent, time.Now().UnixMilli())
	})
}
