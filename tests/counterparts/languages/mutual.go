// Requests a URL with the certificate of a client, and prints the status and the body, or the error.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	config := &tls.Config{InsecureSkipVerify: true}
	if len(os.Args) > 2 {
		pair, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
		if err != nil {
			panic(err)
		}
		// Whatever authorities the server names.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair, nil
		}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	answer, err := client.Get(os.Args[1])
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	body, err := io.ReadAll(answer.Body)
	fmt.Println(answer.StatusCode, string(body), err)
}
