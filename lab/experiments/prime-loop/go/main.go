// The blog's /compute without the web: the loop of the subject go-pgx, called in turn.
//
// prime-loop CALLS: prints how long each batch of ten calls took, in nanoseconds a call.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

const batch = 10

func main() {
	calls := 100
	if len(os.Args) > 1 {
		typed, err := strconv.Atoi(os.Args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		calls = typed
	}
	var sum int64
	for range (calls + batch - 1) / batch {
		began := time.Now()
		for range batch {
			sum = sumOfPrimes(20_000)
		}
		fmt.Println(time.Since(began).Nanoseconds() / batch)
	}
	if sum != 21_171_191 {
		panic("not the sum of the primes below 20,000")
	}
}
