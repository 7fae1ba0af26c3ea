// Uploads a file COUNT times over HTTP/2, each time on a new connection: upload URL FILE COUNT
//
// Prints the status of each, or the error.
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

func upload(url string, body []byte) string {
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}
	client := &http.Client{Transport: transport, Timeout: 60 * time.Second}
	answer, err := client.Post(url, "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err != nil {
		return err.Error()
	}
	if answer.ProtoMajor != 2 {
		return answer.Proto
	}
	return strconv.Itoa(answer.StatusCode)
}

func main() {
	body, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	for nth := 0; nth < count; nth++ {
		fmt.Println(upload(os.Args[1], body))
	}
}
