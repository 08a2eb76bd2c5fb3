// Package latency delays what an operator tells the API server, and what it hears, so that a test that looks before it has
// waited is red on every machine.
//
// FAIRLEAD_LATENCY=2s has each write take up to 2 s longer, each read up to half a second, and each watch tell of events up to 2 s
// late: each watch by another time, so that events of two kinds arrive in any order. Operators call another address then: tests of the
// connection itself, which look for it, are red.
package latency

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Variable names the environment variable that sets the latency.
const Variable = "FAIRLEAD_LATENCY"

// Through returns arguments of an operator whose kubeconfig leads through a proxy that delays, and a function that ends the
// proxy. Without a latency, or without a kubeconfig that can be read, they are the arguments as they were.
func Through(args []string) ([]string, func(), error) {
	set := os.Getenv(Variable)
	at, path := kubeconfigOf(args)
	if set == "" || path == "" {
		return args, func() {}, nil
	}
	limit, err := time.ParseDuration(set)
	if err != nil || limit <= 0 {
		return nil, nil, fmt.Errorf("%s=%s is no time, such as 1s", Variable, set)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return args, func() {}, nil
	}
	server, err := proxy(config, limit)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "latency-")
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	end := func() { _ = errors.Join(server.Close(), os.RemoveAll(dir)) }
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfigTo("http://" + server.Addr), kubeconfig); err != nil {
		end()
		return nil, nil, err
	}
	args = slices.Clone(args)
	args[at] = strings.TrimSuffix(args[at], path) + kubeconfig
	return args, end, nil
}

// kubeconfigOf returns the path of the kubeconfig that counts, which is the last one, and the argument that ends with it.
func kubeconfigOf(args []string) (int, string) {
	for i, arg := range slices.Backward(args) {
		if path, found := strings.CutPrefix(arg, "--kubeconfig="); found {
			return i, path
		}
		if i > 0 && args[i-1] == "--kubeconfig" {
			return i, arg
		}
	}
	return 0, ""
}

func kubeconfigTo(url string) *api.Config {
	config := api.NewConfig()
	config.Clusters["latency"] = &api.Cluster{Server: url}
	config.Contexts["latency"] = &api.Context{Cluster: "latency"}
	config.CurrentContext = "latency"
	return config
}

// proxy passes requests on as the user of the config.
func proxy(config *rest.Config, limit time.Duration) (*http.Server, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Addr: listener.Addr().String(), Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     delayed{transport, limit},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // operators are killed in the middle of requests
		// As a connection that fails, not as an answer of the API server.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

type delayed struct {
	to    http.RoundTripper
	limit time.Duration
}

func (d delayed) RoundTrip(request *http.Request) (*http.Response, error) {
	delay := rand.N(d.limit)
	watches := request.URL.Query().Get("watch") != ""
	switch {
	case watches:
		delay = 0
	case request.Method == http.MethodGet:
		delay /= 4
	}
	select {
	case <-time.After(delay):
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	response, err := d.to.RoundTrip(request)
	if err == nil && watches {
		response.Body = late(response.Body, rand.N(d.limit))
	}
	return response, err
}

// late delays what is read from a body by a time. Order and pace stay as they are.
func late(body io.ReadCloser, by time.Duration) io.ReadCloser {
	type chunk struct {
		text []byte
		due  time.Time
		err  error
	}
	chunks := make(chan chunk, 1<<16)
	go func() {
		defer close(chunks)
		text := make([]byte, 32<<10)
		for {
			n, err := body.Read(text)
			chunks <- chunk{bytes.Clone(text[:n]), time.Now().Add(by), err}
			if err != nil {
				return
			}
		}
	}()
	reader, writer := io.Pipe()
	go func() {
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			_, err := writer.Write(c.text)
			if err = errors.Join(err, c.err); err != nil {
				_ = writer.CloseWithError(c.err)
			}
		}
	}()
	return closer{reader, body}
}

type closer struct {
	*io.PipeReader
	body io.Closer
}

func (c closer) Close() error { return errors.Join(c.PipeReader.Close(), c.body.Close()) }
