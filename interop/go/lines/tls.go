package lines

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// TLS is what a client needs to connect with TLS, from files in PEM that the environment names; nil without TLS.
func TLS() *tls.Config {
	authority, keystore := os.Getenv("INTEROP_AUTHORITY"), os.Getenv("INTEROP_KEYSTORE")
	if authority == "" {
		return nil
	}
	config := tls.Config{RootCAs: x509.NewCertPool()}
	content, err := os.ReadFile(authority)
	if err != nil {
		panic(err)
	}
	config.RootCAs.AppendCertsFromPEM(content)
	if keystore != "" {
		own, err := tls.LoadX509KeyPair(keystore, keystore)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return &config
}
