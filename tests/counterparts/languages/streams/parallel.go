// Uploads SIZE bytes COUNT times at once over one connection of HTTP/2: parallel URL COUNT SIZE
//
// Prints a line for each: the status, or the error.
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

func upload(client *http.Client, url string, body []byte) string {
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
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}
	client := &http.Client{Transport: transport, Timeout: 60 * time.Second}
	url := os.Args[1]
	count, _ := strconv.Atoi(os.Args[2])
	size, _ := strconv.Atoi(os.Args[3])
	body := bytes.Repeat([]byte("x"), size)
	// A first request, so that all others find its connection.
	first, err := client.Get(url + "/none")
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, first.Body)
	first.Body.Close()
	var all sync.WaitGroup
	told := make([]string, count)
	for nth := range told {
		all.Add(1)
		go func(nth int) {
			defer all.Done()
			told[nth] = upload(client, url, body)
		}(nth)
	}
	all.Wait()
	for _, it := range told {
		fmt.Println(it)
	}
}
