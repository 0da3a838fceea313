// Package values encodes and decodes the values of records with schemas, and moves the bytes over a broker.
package values

import (
	"encoding/base64"
	"encoding/json"

	"github.com/linkedin/goavro/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// JSON is a value as its JSON.
type JSON []byte

// Codec turns values into bytes and back.
type Codec struct {
	Encode func(JSON) ([]byte, error)
	Decode func([]byte) (JSON, error)
	// Index is where the message is in its file; only of Protobuf.
	Index []int
}

// Avro has values in plain JSON, without the names of the types of unions.
func Avro(schema string) (Codec, error) {
	codec, err := goavro.NewCodecForStandardJSONFull(schema)
	if err != nil {
		return Codec{}, err
	}
	return Codec{
		Encode: func(value JSON) ([]byte, error) {
			native, _, err := codec.NativeFromTextual(value)
			if err != nil {
				return nil, err
			}
			return codec.BinaryFromNative(nil, native)
		},
		Decode: func(data []byte) (JSON, error) {
			native, _, err := codec.NativeFromBinary(data)
			if err != nil {
				return nil, err
			}
			return codec.TextualFromNative(nil, native)
		},
	}, nil
}

// Plain leaves the JSON as it is, if it passes the check.
func Plain(check func(value any) error) Codec {
	pass := func(value []byte) ([]byte, error) {
		var parsed any
		if err := json.Unmarshal(value, &parsed); err != nil {
			return nil, err
		}
		return value, check(parsed)
	}
	return Codec{
		Encode: func(value JSON) ([]byte, error) { return pass(value) },
		Decode: func(data []byte) (JSON, error) { return pass(data) },
	}
}

// File reads a descriptor in base64, and gives it the name by which others import it.
func File(encoded, name string) (*descriptorpb.FileDescriptorProto, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	file := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(data, file); err != nil {
		return nil, err
	}
	file.Name = &name
	return file, nil
}

// Protobuf is for a message of the last file, or its first message.
func Protobuf(files []*descriptorpb.FileDescriptorProto, message string) (Codec, error) {
	registered, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: files})
	if err != nil {
		return Codec{}, err
	}
	file, err := registered.FindFileByPath(files[len(files)-1].GetName())
	if err != nil {
		return Codec{}, err
	}
	descriptor := file.Messages().Get(0)
	if message != "" {
		found, err := registered.FindDescriptorByName(protoreflect.FullName(message))
		if err != nil {
			return Codec{}, err
		}
		descriptor = found.(protoreflect.MessageDescriptor)
	}
	return Codec{
		Index: index(descriptor),
		Encode: func(value JSON) ([]byte, error) {
			parsed := dynamicpb.NewMessage(descriptor)
			if err := protojson.Unmarshal(value, parsed); err != nil {
				return nil, err
			}
			return proto.Marshal(parsed)
		},
		Decode: func(data []byte) (JSON, error) {
			parsed := dynamicpb.NewMessage(descriptor)
			if err := proto.Unmarshal(data, parsed); err != nil {
				return nil, err
			}
			return protojson.Marshal(parsed)
		},
	}, nil
}

func index(descriptor protoreflect.Descriptor) []int {
	if _, isFile := descriptor.(protoreflect.FileDescriptor); isFile {
		return nil
	}
	return append(index(descriptor.Parent()), descriptor.Index())
}
