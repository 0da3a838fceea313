package main

import (
	"os"

	"barnabas.interop/lines"
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

var hashes = map[string]scram.HashGeneratorFcn{
	sarama.SASLTypeSCRAMSHA256: scram.SHA256, sarama.SASLTypeSCRAMSHA512: scram.SHA512,
}

// newConfig is the library's defaults, with the login and the certificates from the environment.
func newConfig() *sarama.Config {
	config := sarama.NewConfig()
	if secured := lines.TLS(); secured != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, secured
	}
	if mechanism := os.Getenv("INTEROP_MECHANISM"); mechanism != "" {
		login := &config.Net.SASL
		login.Enable, login.Mechanism = true, sarama.SASLMechanism(mechanism)
		login.User, login.Password = os.Getenv("INTEROP_USER"), os.Getenv("INTEROP_PASSWORD")
		login.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{hash: hashes[mechanism]} }
	}
	return config
}

// conversation is one login with SCRAM, which sarama leaves to another library.
type conversation struct {
	*scram.ClientConversation
	hash scram.HashGeneratorFcn
}

func (at *conversation) Begin(user, password, authorization string) error {
	client, err := at.hash.NewClient(user, password, authorization)
	if err == nil {
		at.ClientConversation = client.NewConversation()
	}
	return err
}
