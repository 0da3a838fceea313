package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	offsetCommitKey, offsetCommitVersion       = 8, 9
	offsetFetchKey, offsetFetchVersion         = 9, 8
	findCoordinatorKey, findCoordinatorVersion = 10, 4
)

// commit keeps depth OffsetCommit requests of one partition in flight on every connection; each has a group of its own.
func commit(o options) map[string]float64 {
	findCoordinators(o, groups("committing", o.connections))
	var done atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	deadline := start.Add(time.Duration(o.seconds * float64(time.Second)))
	for index, group := range groups("committing", o.connections) {
		all.Add(1)
		go func() {
			defer all.Done()
			frame := offsetCommitRequest(group, o.topic, int32(index%o.partitions), 1)
			done.Add(pipelined(o.dial(), frame, o.depth, deadline, checkCommitted))
		}()
	}
	all.Wait()
	return map[string]float64{"commits_per_s": float64(done.Load()) / time.Since(start).Seconds()}
}

// offsets has count groups commit an offset for every partition of the topic.
func offsets(o options) map[string]float64 {
	names := groups("loaded", o.count)
	findCoordinators(o, names[:1])
	c := o.dial()
	received := 0
	for sent, group := range names {
		c.send(offsetCommitRequest(group, o.topic, 0, o.partitions))
		for ; received <= sent-o.depth; received++ {
			checkCommitted(c.receive())
		}
	}
	for ; received < len(names); received++ {
		checkCommitted(c.receive())
	}
	return map[string]float64{"offsets": float64(len(names) * o.partitions)}
}

// loaded waits until every one of those groups has its offset.
func loaded(o options) map[string]float64 {
	start := time.Now()
	c := o.dial()
	frame := offsetFetchRequest(groups("loaded", o.count), o.topic, int32(o.partitions-1))
	for !allFetched(c.call(frame)) {
		time.Sleep(10 * time.Millisecond)
	}
	return map[string]float64{"waited_s": time.Since(start).Seconds()}
}

func groups(prefix string, count int) []string {
	names := make([]string, count)
	for index := range names {
		names[index] = fmt.Sprintf("%s-%d", prefix, index)
	}
	return names
}

// findCoordinators asks until every group has one: only then may it commit.
func findCoordinators(o options, names []string) {
	m := request(findCoordinatorKey, findCoordinatorVersion)
	m.int8(0)
	m.count(len(names))
	for _, name := range names {
		m.text(name)
	}
	m.noTags()
	c := o.dial()
	for !allCoordinated(c.call(m.frame())) {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Second) // a coordinator that is known may still be loading
}

func allCoordinated(r response) bool {
	r.skip(4)
	all := true
	for count := r.length(); count > 0; count-- {
		r.text()
		r.skip(4)
		r.text()
		r.skip(4)
		all = r.int16() == 0 && all
		r.skip(max(r.length(), 0))
		r.skip(1)
	}
	return all
}

// offsetCommitRequest commits an offset for partitions from first on, as a consumer that assigns itself does.
func offsetCommitRequest(group, topic string, first int32, partitions int) []byte {
	m := request(offsetCommitKey, offsetCommitVersion)
	m.text(group)
	m.int32(-1)
	m.text("")
	m.null()
	m.count(1)
	m.text(topic)
	m.count(partitions)
	for index := range partitions {
		m.int32(first + int32(index))
		m.int64(1_000_000)
		m.int32(3)
		m.text("")
		m.noTags()
	}
	m.noTags()
	m.noTags()
	return m.frame()
}

func checkCommitted(r response) {
	r.skip(4)
	for topics := r.length(); topics > 0; topics-- {
		r.text()
		for partitions := r.length(); partitions > 0; partitions-- {
			r.skip(4)
			refuse("OffsetCommit", r.int16())
			r.skip(1)
		}
		r.skip(1)
	}
}

func offsetFetchRequest(names []string, topic string, partition int32) []byte {
	m := request(offsetFetchKey, offsetFetchVersion)
	m.count(len(names))
	for _, name := range names {
		m.text(name)
		m.count(1)
		m.text(topic)
		m.count(1)
		m.int32(partition)
		m.noTags()
		m.noTags()
	}
	m.int8(0)
	m.noTags()
	return m.frame()
}

// allFetched tells whether every group gave an offset and no error.
func allFetched(r response) bool {
	r.skip(4)
	for count := r.length(); count > 0; count-- {
		r.text()
		for topics := r.length(); topics > 0; topics-- {
			r.text()
			for partitions := r.length(); partitions > 0; partitions-- {
				r.skip(4)
				if offset := int64(binary.BigEndian.Uint64(r)); offset < 0 {
					return false
				}
				r.skip(12)
				r.skip(max(r.length(), 0))
				r.skip(3)
			}
			r.skip(1)
		}
		if r.int16() != 0 {
			return false
		}
		r.skip(1)
	}
	return true
}
