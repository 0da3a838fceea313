// Package lines is the form every client program has: a JSON command on each
// input line, its answer on an output line. interop/README.md lists the commands.
package lines

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Patience is how long a client waits for what it was promised.
const Patience = 20 * time.Second

// Command is one input line; each operation reads the fields that it needs.
type Command struct {
	Do          string            `json:"do"`
	Topic       string            `json:"topic"`
	Partition   int32             `json:"partition"`
	Partitions  int32             `json:"partitions"`
	Configs     map[string]string `json:"configs"`
	Codec       string            `json:"codec"`
	Idempotent  bool              `json:"idempotent"`
	Records     []Record          `json:"records"`
	Transaction string            `json:"transactional_id"`
	Commit      bool              `json:"commit"`
	Count       int               `json:"count"`
	Timestamp   *int64            `json:"timestamp"`
	Before      int64             `json:"before"`
	Broker      int32             `json:"broker"`
	Key         string            `json:"key"`
	Value       *string           `json:"value"`
	Principal   string            `json:"principal"`
	User        string            `json:"user"`
	Limit       *float64          `json:"limit"`
	Iterations  int32             `json:"iterations"`
	Replicas    []int32           `json:"replicas"`
	Group       string            `json:"group"`
	Strategy    string            `json:"strategy"`
	Subject     string            `json:"subject"`
	Schema      Schema            `json:"schema"`
	Version     int               `json:"version"`
	Level       string            `json:"level"`
	Mode        string            `json:"mode"`
	Permanent   bool              `json:"permanent"`
	Deleted     bool              `json:"deleted"`
}

// Schema is a schema as the commands to registries carry it.
type Schema struct {
	Type       string      `json:"type"`
	Text       string      `json:"text"`
	References []Reference `json:"references"`
	Message    string      `json:"message"`
}

// Reference is a version of a subject, and the name by which a schema refers to it.
type Reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// Record is a record as the commands carry it: text or null, timestamps in milliseconds.
type Record struct {
	Key       *string     `json:"key"`
	Value     *string     `json:"value"`
	Headers   [][2]string `json:"headers"`
	Timestamp *int64      `json:"timestamp"`
	Offset    int64       `json:"offset"`
}

// Time is when the record says it was made, or now.
func (r Record) Time() time.Time {
	if r.Timestamp == nil {
		return time.Now()
	}
	return time.UnixMilli(*r.Timestamp)
}

// Metadata answers the metadata command.
type Metadata struct {
	Brokers []string           `json:"brokers"`
	Topics  map[string][]int32 `json:"topics"`
}

// Offsets answers the offsets command.
type Offsets struct {
	Earliest int64 `json:"earliest"`
	Latest   int64 `json:"latest"`
}

// Operation does one command.
type Operation func(ctx context.Context, command Command) (any, error)

// Bytes turns text into bytes; null stays null.
func Bytes(text *string) []byte {
	if text == nil {
		return nil
	}
	return append([]byte{}, *text...)
}

// Text turns bytes into text; null stays null.
func Text(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

// Found is an offset, or null where the client says that there is none with a negative number.
func Found(offset int64) *int64 {
	if offset < 0 {
		return nil
	}
	return &offset
}

// Serve answers every command on standard input until it ends; name is what
// the client's users see an error as.
func Serve(operations map[string]Operation, name func(error) string) {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	for input.Scan() {
		answer, err := json.Marshal(answer(operations, name, input.Bytes()))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(answer))
	}
}

func answer(operations map[string]Operation, name func(error) string, line []byte) map[string]any {
	var command Command
	if err := json.Unmarshal(line, &command); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	result, err := operations[command.Do](ctx, command)
	if err != nil {
		return map[string]any{"error": name(err), "message": err.Error()}
	}
	return map[string]any{"ok": result}
}
