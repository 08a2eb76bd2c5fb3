package scale_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// What a process of unidentified clients finds in its environment: the address of the xDS server and its CA.
const (
	clientsVariable = "SCALE_CLIENTS"
	caVariable      = "SCALE_CA"
)

// unidentifiedClients is how many there are, and saysRunning what their process says when each has tried once.
const (
	unidentifiedClients = 2000
	saysRunning         = "every client has tried to connect"
)

// connectUnidentified connects clients that prove nothing, again and again, as soon as they are rejected. They run on machines
// of their own in life; here they leave the processors to others.
func connectUnidentified(address, caFile string) error {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		return fmt.Errorf("lower the priority: %w", err)
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	attempts := []func(string, *tls.Config) error{connectSilently, askAsAnother, askAsNobody, sendLargeRequest}
	var once sync.WaitGroup
	var tried atomic.Int64
	for i := range unidentifiedClients {
		once.Add(1)
		go func() {
			for first := true; ; first = false {
				_ = attempts[i%len(attempts)](address, config)
				tried.Add(1)
				if first {
					once.Done()
				}
			}
		}()
	}
	once.Wait()
	fmt.Println(saysRunning)
	for range time.Tick(time.Second) {
		fmt.Println(tried.Load(), "attempts")
	}
	return nil
}

// connectSilently opens a connection and says nothing until it is closed.
func connectSilently(address string, _ *tls.Config) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = connection.Read(make([]byte, 1))
	return err
}

func askAsAnother(address string, config *tls.Config) error {
	return ask(address, config, meshName+"."+meshDataplane(0).Name, "")
}

func askAsNobody(address string, config *tls.Config) error {
	return ask(address, config, meshName+".nobody", "")
}

func sendLargeRequest(address string, config *tls.Config) error {
	return ask(address, config, meshName+".nobody", strings.Repeat("x", 1<<20))
}

// ask asks for everything that a proxy has, over a connection of its own, until it is rejected.
func ask(address string, config *tls.Config, node, name string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: node, UserAgentName: name}, TypeUrl: resource.Cluster.URL()}); err != nil {
		return err
	}
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}
