// An origin over TLS that chooses HTTP/2: origin CERT KEY. Prints its port.
// `/large` is 64 MB, `/events` has small events without end, `/whole` 300,000 bytes, and the rest `ok`.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

func serve(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 {
		http.Error(w, "not over HTTP/2", http.StatusHTTPVersionNotSupported)
		return
	}
	switch r.URL.Path {
	case "/large":
		piece := []byte(strings.Repeat("x", 65536))
		for nth := 0; nth < 1024; nth++ {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	case "/events":
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, "data: an event of some bytes\n\n"); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	case "/whole":
		fmt.Fprint(w, strings.Repeat("y", 300000))
	default:
		fmt.Fprint(w, "ok")
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.ServeTLS(listener, http.HandlerFunc(serve), os.Args[1], os.Args[2]))
}
