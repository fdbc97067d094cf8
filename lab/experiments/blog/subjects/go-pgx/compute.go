package main

// sumOfPrimes sums the primes below limit, by trial division. Not inlined, so that a profile can
// name it.
//
//go:noinline
func sumOfPrimes(limit int64) int64 {
	var sum int64
	for number := int64(2); number < limit; number++ {
		if isPrime(number) {
			sum += number
		}
	}
	return sum
}

func isPrime(number int64) bool {
	for divisor := int64(2); divisor*divisor <= number; divisor++ {
		if number%divisor == 0 {
			return false
		}
	}
	return true
}
