// An origin that tells what it reads: the address to listen on is the argument.
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	http.ListenAndServe(os.Args[1], http.HandlerFunc(func(to http.ResponseWriter, request *http.Request) {
		value := ""
		if cookie, err := request.Cookie("my_key"); err == nil {
			value = cookie.Value
		}
		fmt.Fprintf(to, "method=%s\nfield=%s\nclient=%s\nhost=%s\ncookie=%s\nargument=%s\n",
			request.Method, request.Header.Get("X-Api-Key"), request.Header.Get("X-Forwarded-For"),
			request.Host, value, request.URL.Query().Get("my_key"))
	}))
}
