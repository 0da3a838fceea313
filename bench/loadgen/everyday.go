package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	listOffsetsKey, listOffsetsVersion = 2, 7
	joinGroupKey, joinGroupVersion     = 11, 7
	syncGroupKey, syncGroupVersion     = 14, 5
	heartbeatKey, heartbeatVersion     = 12, 4
	memberIDRequired                   = 79
)

// everyday keeps depth requests of one kind in flight on every connection: what consumers send between their records.
func everyday(o options) map[string]float64 {
	names := groups("everyday", o.connections)
	findCoordinators(o, names)
	var done atomic.Int64
	var all, ready sync.WaitGroup
	ready.Add(o.connections)
	var start, deadline time.Time
	begin := make(chan struct{})
	for _, group := range names {
		all.Add(1)
		go func() {
			defer all.Done()
			c := o.dial()
			frame, check := everydayRequest(o, c, group)
			ready.Done()
			<-begin
			done.Add(pipelined(c, frame, o.depth, deadline, check))
		}()
	}
	ready.Wait()
	start = time.Now()
	deadline = start.Add(time.Duration(o.seconds * float64(time.Second)))
	close(begin)
	all.Wait()
	return map[string]float64{
		"requests": float64(done.Load()), "requests_per_s": float64(done.Load()) / time.Since(start).Seconds(),
	}
}

func everydayRequest(o options, c *connection, group string) ([]byte, func(response)) {
	switch o.kind {
	case "heartbeat":
		return heartbeatRequest(c, group), func(r response) {
			r.skip(4)
			refuse("Heartbeat", r.int16())
		}
	case "list-offsets":
		return listOffsetsRequest(o.topic, o.partitions), func(r response) {
			r.skip(4)
			r.length()
			r.text()
			r.length()
			r.skip(4)
			refuse("ListOffsets", r.int16())
		}
	case "poll":
		return pollRequest(o.topic, o.partitions), func(r response) {
			r.skip(4)
			refuse("Fetch", r.int16())
		}
	}
	fail(fmt.Errorf("no kind %q", o.kind))
	return nil, nil
}

// heartbeatRequest has a connection join a group of its own, and gives the heartbeat of its only member.
func heartbeatRequest(c *connection, group string) []byte {
	member, generation := join(c, group, "")
	m := request(syncGroupKey, syncGroupVersion)
	m.text(group)
	m.int32(generation)
	m.text(member)
	m.null()
	m.text("consumer")
	m.text("range")
	m.count(1)
	m.text(member)
	m.bytes([]byte{0})
	m.noTags()
	m.noTags()
	r := c.call(m.frame())
	r.skip(4)
	refuse("SyncGroup", r.int16())
	m = request(heartbeatKey, heartbeatVersion)
	m.text(group)
	m.int32(generation)
	m.text(member)
	m.null()
	m.noTags()
	return m.frame()
}

// join asks for a member id first, as clients do (KIP-394).
func join(c *connection, group, member string) (string, int32) {
	m := request(joinGroupKey, joinGroupVersion)
	m.text(group)
	m.int32(60_000)
	m.int32(60_000)
	m.text(member)
	m.null()
	m.text("consumer")
	m.count(1)
	m.text("range")
	m.bytes([]byte{0})
	m.noTags()
	m.noTags()
	r := c.call(m.frame())
	r.skip(4)
	code := r.int16()
	generation := int32(binary.BigEndian.Uint32(r))
	r.skip(4)
	for range 2 { // protocol type and name, null at first
		r.skip(max(r.length(), 0))
	}
	r.text() // the leader
	id := string(r[1 : 1+max(int(r[0])-1, 0)])
	if code == memberIDRequired {
		return join(c, group, id)
	}
	refuse("JoinGroup", code)
	return id, generation
}

// listOffsetsRequest asks for the end of each partition.
func listOffsetsRequest(topic string, partitions int) []byte {
	m := request(listOffsetsKey, listOffsetsVersion)
	m.int32(-1)
	m.int8(0)
	m.count(1)
	m.text(topic)
	m.count(partitions)
	for index := range partitions {
		m.int32(int32(index))
		m.int32(-1)
		m.int64(-1)
		m.noTags()
	}
	m.noTags()
	m.noTags()
	return m.frame()
}

// pollRequest reads up to 4 KiB from the beginning of each partition and does not wait.
func pollRequest(topic string, partitions int) []byte {
	m := request(fetchKey, fetchVersion)
	m.int32(-1)
	m.int32(0)
	m.int32(1)
	m.int32(1 << 20)
	m.int8(0)
	m.int32(0)
	m.int32(-1)
	m.count(1)
	m.text(topic)
	m.count(partitions)
	for index := range partitions {
		m.int32(int32(index))
		m.int32(-1)
		m.int64(0)
		m.int32(-1)
		m.int64(-1)
		m.int32(4096)
		m.noTags()
	}
	m.noTags()
	m.count(0)
	m.text("")
	m.noTags()
	return m.frame()
}
