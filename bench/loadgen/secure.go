package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	saslHandshakeKey, saslHandshakeVersion       = 17, 1
	saslAuthenticateKey, saslAuthenticateVersion = 36, 2
)

const scramMechanism = "SCRAM-SHA-512"

// security is how clients connect: with TLS if there is an authority, and with a login if there is a user.
type security struct {
	authority   string
	certificate string
	tlsVersion  string
	user        string
	password    string
	config      *tls.Config // nil without TLS
}

var tlsVersions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

// allowedSuites have the same cipher in each version of TLS.
var allowedSuites = map[string][]uint16{
	"1.2": {tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384},
	"1.3": {tls.TLS_AES_256_GCM_SHA384},
}

// load reads the files, which are in PEM. There is no cache of sessions: every handshake is a full one.
func (s *security) load(broker string) {
	if s.authority == "" {
		return
	}
	version, known := tlsVersions[s.tlsVersion]
	if !known {
		fail(fmt.Errorf("no version %q of TLS", s.tlsVersion))
	}
	host, _, err := net.SplitHostPort(broker)
	check(err)
	authority, err := os.ReadFile(s.authority)
	check(err)
	s.config = &tls.Config{
		ServerName: host, RootCAs: x509.NewCertPool(), MinVersion: version, MaxVersion: version,
		CipherSuites: allowedSuites["1.2"], CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}, // the second one for the keys of certificates
	}
	s.config.RootCAs.AppendCertsFromPEM(authority)
	if s.certificate != "" {
		pair, err := tls.LoadX509KeyPair(s.certificate, s.certificate)
		check(err)
		s.config.Certificates = []tls.Certificate{pair}
	}
}

// dial connects, and logs in if there is a user.
func (o options) dial() *connection { return o.dialFrom(nil, 1<<20) }

// dialFrom connects from a local address; bufferBytes of what the broker sends are read at once.
func (o options) dialFrom(local net.Addr, bufferBytes int) *connection {
	dialer := &net.Dialer{Timeout: 5 * time.Second, LocalAddr: local}
	socket, err := dialer.Dial("tcp", o.broker)
	check(err)
	if o.security.config != nil {
		socket = o.security.shakeHands(socket)
	}
	c := newConnection(socket, bufferBytes)
	if o.security.user != "" {
		c.logIn(o.security.user, o.security.password)
	}
	return c
}

func (s *security) shakeHands(socket net.Conn) net.Conn {
	secure := tls.Client(socket, s.config)
	check(secure.Handshake())
	state := secure.ConnectionState()
	if !slices.Contains(allowedSuites[s.tlsVersion], state.CipherSuite) {
		fail(fmt.Errorf("the broker has chosen %s", tls.CipherSuiteName(state.CipherSuite)))
	}
	return secure
}

// logIn is RFC 5802, without a channel binding.
func (c *connection) logIn(user, password string) {
	c.chooseMechanism()
	first := "n=" + user + ",r=" + rand.Text()
	challenge := c.authenticate("n,," + first)
	parts := attributes(challenge)
	iterations, err := strconv.Atoi(parts["i"])
	check(err)
	key := saltedPassword(password, decoded(parts["s"]), iterations)
	final := "c=biws,r=" + parts["r"]
	signed := first + "," + challenge + "," + final
	clientKey := mac(key, "Client Key")
	storedKey := sha512.Sum512(clientKey)
	proof := mac(storedKey[:], signed)
	for index := range proof {
		proof[index] ^= clientKey[index]
	}
	outcome := attributes(c.authenticate(final + ",p=" + base64.StdEncoding.EncodeToString(proof)))
	if !bytes.Equal(decoded(outcome["v"]), mac(mac(key, "Server Key"), signed)) {
		fail(fmt.Errorf("the broker does not know the password of %s", user))
	}
}

func (c *connection) chooseMechanism() {
	m := message(make([]byte, 4, 64))
	m.int16(saslHandshakeKey)
	m.int16(saslHandshakeVersion)
	m.int32(0)
	m.int16(-1)
	m.int16(int16(len(scramMechanism)))
	m = append(m, scramMechanism...)
	c.send(m.frame())
	r := c.receiveAll()
	r.skip(4)
	refuse("SaslHandshake", r.int16())
}

// authenticate sends a message of the mechanism and gives the broker's.
func (c *connection) authenticate(text string) string {
	m := request(saslAuthenticateKey, saslAuthenticateVersion)
	m.bytes([]byte(text))
	m.noTags()
	r := c.call(m.frame())
	refuse("SaslAuthenticate", r.int16())
	r.skip(max(r.length(), 0))
	sizeBytes := r.length()
	return string(r[:sizeBytes])
}

func attributes(text string) map[string]string {
	found := map[string]string{}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		found[name] = value
	}
	return found
}

func decoded(text string) []byte {
	value, err := base64.StdEncoding.DecodeString(text)
	check(err)
	return value
}

func mac(key []byte, text string) []byte {
	hash := hmac.New(sha512.New, key)
	hash.Write([]byte(text))
	return hash.Sum(nil)
}

var (
	saltedLock sync.Mutex
	salted     = map[string][]byte{}
)

// saltedPassword is derived once for each salt: the clients share a user, and are not what is measured.
func saltedPassword(password string, salt []byte, iterations int) []byte {
	saltedLock.Lock()
	defer saltedLock.Unlock()
	if _, known := salted[string(salt)]; !known {
		key, err := pbkdf2.Key(sha512.New, password, salt, iterations, sha512.Size)
		check(err)
		salted[string(salt)] = key
	}
	return salted[string(salt)]
}
