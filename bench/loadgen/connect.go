package main

import (
	"net"
	"slices"
	"sync"
	"time"
)

const apiVersionsKey, apiVersionsVersion = 18, 3

// connect has clients connect, log in, ask for the versions of APIs and disconnect, again and again. Each has a local
// address of its own: closed connections would use up the ports of one.
func connect(o options) map[string]float64 {
	start := time.Now()
	deadline := start.Add(time.Duration(o.seconds * float64(time.Second)))
	taken := make([][]time.Duration, o.connections)
	var all sync.WaitGroup
	for index := range o.connections {
		all.Add(1)
		go func() {
			defer all.Done()
			local := &net.TCPAddr{IP: net.IPv4(127, byte(o.network), byte(index/250), byte(index%250+1))}
			for time.Now().Before(deadline) {
				began := time.Now()
				c := o.dialFrom(local, 4096)
				askForVersions(c)
				taken[index] = append(taken[index], time.Since(began))
				check(c.socket.Close())
			}
		}()
	}
	all.Wait()
	lasted := time.Since(start).Seconds()
	each := slices.Sorted(slices.Values(slices.Concat(taken...)))
	return map[string]float64{
		"connections": float64(len(each)), "connections_per_s": float64(len(each)) / lasted,
		"p50_us": percentile(each, 0.50), "p99_us": percentile(each, 0.99),
	}
}

func askForVersions(c *connection) {
	m := request(apiVersionsKey, apiVersionsVersion)
	m.text("load")
	m.text("1")
	m.noTags()
	c.send(m.frame())
	r := c.receiveAll()
	r.skip(4)
	refuse("ApiVersions", r.int16())
}
