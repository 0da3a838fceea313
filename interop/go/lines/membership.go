package lines

import (
	"context"
	"slices"
	"sync"
)

// Membership is what a member of a group has: its partitions, and the values that it has read.
type Membership struct {
	mutex      sync.Mutex
	Partitions []int32  `json:"partitions"`
	Values     []string `json:"values"`
}

// Took notes a value that was read.
func (m *Membership) Took(value []byte) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.Values = append(m.Values, string(value))
}

// Owns notes all partitions that are assigned now.
func (m *Membership) Owns(partitions []int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.Partitions = slices.Sorted(slices.Values(partitions))
}

// Gained and Lost note partitions that come and go.
func (m *Membership) Gained(partitions []int32) {
	m.Owns(append(m.owned(), partitions...))
}

// Lost notes partitions that go.
func (m *Membership) Lost(partitions []int32) {
	m.Owns(slices.DeleteFunc(m.owned(), func(each int32) bool { return slices.Contains(partitions, each) }))
}

func (m *Membership) owned() []int32 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.Partitions)
}

func (m *Membership) copied() *Membership {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return &Membership{Partitions: append([]int32{}, m.Partitions...), Values: append([]string{}, m.Values...)}
}

// Join begins to read as a member of a group, and gives what leaves it.
type Join func(c Command, m *Membership) (leave func() error, err error)

// Member offers the operations of one member of a group at a time.
func Member(join Join) map[string]Operation {
	var current *Membership
	var leave func() error
	return map[string]Operation{
		"join_group": func(_ context.Context, c Command) (result any, err error) {
			current = &Membership{}
			leave, err = join(c, current)
			return nil, err
		},
		"membership":  func(context.Context, Command) (any, error) { return current.copied(), nil },
		"leave_group": func(context.Context, Command) (any, error) { return nil, leave() },
	}
}
